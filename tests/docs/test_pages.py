"""Everything that docs/ tells readers to type exists: commands, options, recipes, scripts, pictures."""

import importlib
import re
import shlex
from collections import Counter
from pathlib import Path

import click
import pytest

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
