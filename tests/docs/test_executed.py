"""The outputs that docs/_executed keeps belong to the code on the pages of today."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.docs.tools import tool

DOCS = Path(__file__).resolve().parents[2] / "docs"
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


@pytest.mark.parametrize("page", pages())
def test_kept_outputs_are_of_the_cells_of_the_page(page: str) -> None:
    kept = json.loads((DOCS / "_executed" / f"{page}.ipynb").read_text("utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in kept]
    assert cells((DOCS / f"{page}.md").read_text("utf-8")) == sources, (
        "run `make docs` and commit docs/_executed"
    )


def test_a_cell_is_its_code() -> None:
    text = "```{code-cell} python3\n:tags: [remove-input]\nx = 1\n\ny = 2\n```\n\n```python\nz = 3\n```\n"
    assert cells(text) == ["x = 1\n\ny = 2"]
    assert cells(f"````markdown\n{text}````\n") == []


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
