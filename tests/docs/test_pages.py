"""What docs/ tells readers to type exists and runs; links lead somewhere; calculated figures are right."""

import functools
import importlib
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import click
import pytest

from weft.config.recipe import read_recipe
from weft.run.training import check_recipe

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "index",
    "start/install",
    "start/first-translator",
    "start/recipes-and-runs",
    "course/lecturer",
    "guides/add-a-cell",
    "guides/gpu",
)
TYPED = re.compile(r"(?:^\$ (?:\.venv/bin/)?|`)(weft [^`\n]+)", re.MULTILINE)


def typed() -> list[tuple[str, str]]:
    """(page, command) for every command line of the pages."""
    texts = {page: (ROOT / "docs" / f"{page}.md").read_text("utf-8") for page in PAGES}
    return [(page, line) for page, text in texts.items() for line in TYPED.findall(text)]


@pytest.mark.parametrize(("page", "line"), typed())
def test_a_command_of_a_page_is_understood(page: str, line: str) -> None:
    words = shlex.split(re.sub(r" (?:<<<|[<>]) .*", "", line))[1:]
    command = importlib.import_module(f"weft.commands.{words.pop(0)}").command
    while isinstance(command, click.Group) and words:
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None, line
        command = found
    command.make_parser(click.Context(command)).parse_args(words)  # fails for an unknown option
    missing = [word for word in words if word.startswith("recipes/") and not (ROOT / word).is_file()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_scripts_and_pictures_of_a_page_are_there(page: str) -> None:
    path = ROOT / "docs" / f"{page}.md"
    text = path.read_text("utf-8")
    named = [path.parent / name for name in re.findall(r"\]\(([\w/.-]+\.(?:png|svg|md))\)", text)]
    named += [ROOT / name for name in re.findall(r"(?:experiments|benchmarks|deploy)/\w+\.(?:py|sh)", text)]
    assert [str(name) for name in named if not name.is_file()] == []


def test_the_cell_on_the_page_is_the_one_that_contributing_tests() -> None:
    def code(name: str) -> str:
        return (ROOT / name).read_text("utf-8").partition("```python")[2].partition("```")[0]

    assert code("docs/guides/add-a-cell.md") == code("CONTRIBUTING.md")


def test_no_stretch_of_the_changelog_stands_there_twice() -> None:
    """Merges left halves of entries that had been changed on both sides."""
    words = (ROOT / "CHANGELOG.md").read_text("utf-8").split()
    stretches = Counter(" ".join(words[start : start + 12]) for start in range(len(words)))
    assert [stretch for stretch, number in stretches.items() if number > 1] == []


MARKDOWN = sorted(
    path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
)
BLOCK = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?^\1`*$", re.MULTILINE | re.DOTALL)
LEFT = re.compile(r"\{[a-z:-]+\}`|\{\{|^\([\w-]+\)=$|^:::+\{(?:equation|figure|vote)", re.MULTILINE)
"""A role, a placeholder, a target: what a plain viewer shows as it is."""


@functools.cache
def prose(page: str) -> str:
    """The text of a page without blocks of code."""
    return BLOCK.sub("", (ROOT / page).read_text("utf-8"))


@functools.cache
def anchors(page: str) -> set[str]:
    """What a Git host calls the headings of a page."""
    words = [
        re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", one) for one in re.findall(r"^#+ +(.+)$", prose(page), re.M)
    ]
    return {re.sub(r"[^\w\- ]", "", one.strip().lower()).replace(" ", "-") for one in words}


def left(text: str) -> list[str]:
    return LEFT.findall(re.sub(r"(?<!\})(`+)[^`\n].*?\1", "", text))


@pytest.mark.parametrize("page", MARKDOWN)
def test_nothing_is_left_that_only_sphinx_understands(page: str) -> None:
    assert left(prose(page)) == []


def test_roles_placeholders_and_targets_are_found() -> None:
    assert len(left("See {term}`attention` and {{ demo.beam }}.\n(here)=\n")) == 3
    assert left("`{{ x|upper }}`, `{count}` and ``{term}`x` `` are code") == []


@pytest.mark.parametrize("page", MARKDOWN)
def test_every_link_leads_to_a_file_and_a_heading(page: str) -> None:
    wrong = []
    for target in re.findall(r"\]\(([^)\s:]+)\)", re.sub(r"`[^`\n]+`", "", prose(page))):
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        known = (
            anchors(str(file.resolve().relative_to(ROOT)))
            if file.suffix == ".md" and file.exists()
            else {anchor}
        )
        wrong += [target] if not file.exists() or (anchor and anchor not in known) else []
    assert wrong == []


GPU = (ROOT / "docs" / "guides" / "gpu.md").read_text("utf-8")


def test_the_search_from_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GPU, re.DOTALL)
    found: dict[str, Any] = {}
    exec(compile(code, "gpu.md", "exec"), found)
    assert capsys.readouterr().out == "torch.Size([3, 1])\n"
    assert found["found"].score.isfinite().all()


def test_the_training_is_one_that_weft_begins() -> None:
    lines = [line for line in re.findall(r"(?:\$ |!)(weft train .*)", GPU) if "help-transformer" in line]
    assert len(lines) == 2
    for line in lines:
        recipe, *overrides = shlex.split(line)[2:5]
        settings = check_recipe(read_recipe(recipe, overrides)).settings
        assert settings.cuda_graphs and settings.scale == "gpu"


def test_the_extra_that_the_page_installs_is_declared() -> None:
    extras = set(re.findall(r"weft-seq\[([\w,]+)\]|linux_x86_64\.whl\[([\w,]+)\]", GPU))
    names = {name for pair in extras for one in pair for name in one.split(",") if name}
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert names == {"gpu", "all"} and all(re.search(rf"^{name} = ", project, re.MULTILINE) for name in names)


LOOP = (ROOT / "docs" / "guides" / "own-loop.md").read_text("utf-8")
CELLS = re.findall(r"```\{code-cell\} python\n(.*?)```", LOOP, re.DOTALL)
SHOWN = re.findall(r"```python\n(.*?)```", LOOP, re.DOTALL)


def test_the_models_of_the_page_learn_in_a_few_steps() -> None:
    names: dict[str, Any] = {}
    for cell in CELLS[::2]:  # the data and the models
        exec(cell, names)
    exec(CELLS[1].replace("range(400)", "range(2)"), names)
    exec(CELLS[3].replace("range(120)", "range(2)").replace("range(150)", "range(2)"), names)
    assert names["found"].tokens.shape[:2] == (200, 1)


@pytest.mark.filterwarnings(r"ignore:`isinstance\(treespec, LeafSpec\)` is deprecated")  # in lightning 2.6
@pytest.mark.parametrize(("library", "code"), list(zip(("lightning", "accelerate"), SHOWN, strict=True)))
def test_the_same_in_other_loops(library: str, code: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed: pip install --group loop-tests")
    names: dict[str, Any] = {}
    exec(CELLS[0].partition("class Tagger")[0], names)
    exec(CELLS[2], names)
    exec(code, names)


SCALE = (ROOT / "docs" / "appendix" / "scale.md").read_text("utf-8")
ROW = r"\| (.+) \| ([\d.]+) M \| (?:(\d+) \+ (\d+) M|0) \| (\d+) MB \| (\d+) MB \| (\d+) MB \|"


def test_what_is_sent_for_each_model() -> None:
    """b = 4; a ring sends 2 (N - 1)/N of an all-reduce and (N - 1)/N of what is gathered or scattered."""
    rows = re.findall(ROW, SCALE)
    assert len(rows) == 3
    for name, numbers, encoder, decoder, two, many, full in rows:
        p, e, d = float(numbers), float(encoder or 0), float(decoder or 0)
        found = [round(4 * p), round(8 * p), round(4 * (2 * p + e + 3 * d))]
        assert [int(two), int(many), int(full)] == found, name


def test_shares_of_lost_time() -> None:
    """V/B / (T_c + V/B) = 0.05 gives T_c = 19 V/B, V = 2 (N - 1)/N 4 P."""
    for processes, p, speed, sent, seconds in (
        (8, 65, 300, 0.46, 0.029),
        (64, 65, 50, 0.51, 0.2),
        (1000, 213, 50, 1.7, 0.65),
    ):
        volume = 2 * (processes - 1) / processes * 4 * p / 1000  # GB
        assert abs(volume - sent) < 0.01 and abs(19 * volume / speed - seconds) < 0.03 * seconds
        shown = f"{seconds * 1000:.0f} ms" if seconds < 0.1 else f"{seconds:g} s"
        assert re.search(rf"\| {p} M \| .* \| {sent} GB \| {shown} \|", SCALE)


def test_a_billion_pairs() -> None:
    assert "1e9 · (50 · 4 + 32) = 232 GB" in SCALE and 50 * 4 + 32 == 232
    assert "954 blocks" in SCALE and -(-(10**9) // 2**20) == 954
    assert "6,100 updates" in SCALE and 25e9 // (4096 * 1000) in range(6100, 6105)
