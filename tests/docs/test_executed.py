"""The outputs that docs/_executed keeps belong to the code on the pages of today."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.docs.tools import tool

DOCS = Path(__file__).resolve().parents[2] / "docs"
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?(?!\w)")
ELSEWHERE = {
    "elman": "200 0.167",  # adding, in the appendix
    "evaluating": "36 223 615",  # of a copy of the corpus with page names
    "payoff": "79.5 84.4 89.7",  # TREC, in the appendix
    "positions": "0.125",  # one of eight symbols
    "pretraining": "0.870 0.898 0.918",  # three seeds, not one
    "scratch/bptt": "0.96",  # h = tanh(2 h)
    "self-attention": "19,728 0.93 1.3",  # by hand; clips, in the appendix; in the inspector's picture
    "stacks": "0.00005 95",  # claim 14
    "transformer": "512 1.3 1.4 1.7 100,",  # AVX-512, claim 8, copying
}
"""Numbers that follow a cell of a chapter and are not its output."""

FENCE = re.compile(r"^(`{3,})([^`\n]*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
RUNS = "---\nfile_format: mystnb\n"


def pages() -> list[str]:
    found = (
        page.relative_to(DOCS) for page in DOCS.rglob("*.md") if page.read_text("utf-8").startswith(RUNS)
    )
    return sorted(page.with_suffix("").as_posix() for page in found)


def cells(text: str) -> list[str]:
    """The code of every cell that runs, without its options."""
    inside = [code for _, name, code in FENCE.findall(text) if name.startswith("{code-cell}")]
    return [re.sub(r"\A(:[\w-]+:[^\n]*\n)*\n?", "", code).rstrip("\n") for code in inside]


def tags(text: str) -> list[list[str]]:
    """The tags of every cell that runs."""
    inside = [code for _, name, code in FENCE.findall(text) if name.startswith("{code-cell}")]
    found = [re.match(r":tags: \[(.*)\]\n", code) for code in inside]
    return [one[1].split(", ") if one else [] for one in found]


@pytest.mark.parametrize("page", pages())
def test_kept_outputs_are_of_the_cells_of_the_page(page: str) -> None:
    kept = json.loads((DOCS / "_executed" / f"{page}.ipynb").read_text("utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in kept]
    text = (DOCS / f"{page}.md").read_text("utf-8")
    assert cells(text) == sources, "run `make docs` and commit docs/_executed"
    assert tags(text) == [cell["metadata"].get("tags", []) for cell in kept], (
        "else a build runs the page again"
    )


def printed(page: str) -> str:
    """What the cells of a page printed, and their code."""
    kept = json.loads((DOCS / "_executed" / f"{page}.ipynb").read_text("utf-8"))["cells"]
    outputs = [output for cell in kept for output in cell["outputs"]]
    texts = [output.get("text", output.get("data", {}).get("text/plain", "")) for output in outputs]
    return re.sub(r"\x1b\[\d*m", "", "\n".join(map("".join, [*texts, *(cell["source"] for cell in kept)])))


def quoted(text: str) -> list[tuple[str, bool]]:
    """The numbers between a cell and the next cell or heading: decimals, percentages and from 100 on."""
    found = []
    for part in re.split(r"^```\{code-cell\}.*?^```$", text, flags=re.MULTILINE | re.DOTALL)[1:]:
        prose = re.sub(r"\]\([^)]*\)", "]", FENCE.sub("", re.split(r"^#+ ", part, flags=re.MULTILINE)[0]))
        for number in NUMBER.finditer(prose):
            share = prose[number.end() :].lstrip(" \\").startswith("%")
            if share or "." in number[0] or len(number[0]) > 2:
                found.append((number[0], share))
    return found


@pytest.mark.parametrize("page", [page for page in pages() if page.startswith("course/")])
def test_a_number_after_a_cell_is_in_its_output(page: str) -> None:
    known = [
        float(one.replace(",", "")) for one in re.findall(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", printed(page))
    ]
    missing = set()
    for text, share in quoted((DOCS / f"{page}.md").read_text("utf-8")):
        value, digits = float(text.replace(",", "")), len(text.partition(".")[2])
        scales = (1, 100) if share else (1,)
        if not any(abs(one * by - value) <= 0.5 * 10**-digits + 1e-9 for one in known for by in scales):
            missing.add(text)
    assert missing == set(ELSEWHERE.get(page.removeprefix("course/"), "").split()), "no cell printed these"


def test_a_cell_is_its_code() -> None:
    text = "```{code-cell} python3\n:tags: [remove-input]\nx = 1\n\ny = 2\n```\n\n```python\nz = 3\n```\n"
    assert cells(text) == ["x = 1\n\ny = 2"] and tags(text) == [["remove-input"]]
    assert cells(f"````markdown\n{text}````\n") == []


@pytest.mark.slow
def test_a_build_that_runs_nothing_keeps_the_outputs(tmp_path: Path) -> None:
    pytest.importorskip("myst_nb")
    kept = tmp_path / "docs" / "_executed" / "course"
    kept.mkdir(parents=True)
    for name in ("runs", "text", "gone"):
        (kept / f"{name}.ipynb").write_text("{}", "utf-8")
    (tmp_path / "docs" / "course").mkdir()
    (tmp_path / "docs" / "course" / "runs.md").write_text(f"{RUNS}---\n# Title\n", "utf-8")
    (tmp_path / "docs" / "course" / "text.md").write_text("# Title\n", "utf-8")
    config = SimpleNamespace(nb_execution_cache_path=str(tmp_path / "cache"), html_baseurl="")
    app = SimpleNamespace(srcdir=tmp_path / "docs", outdir=tmp_path / "site", config=config)
    tool("executed").keep(app, SimpleNamespace(nb_metadata={}))  # as with -D nb_execution_mode=off
    assert [path.name for path in kept.iterdir()] == ["runs.ipynb"]
