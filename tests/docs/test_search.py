"""The site's search shows chapters and guides before the thousands of entries of the reference."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOUND = {  # for "lstm": [page, title, anchor, description, Sphinx's score, file, kind], the best first
    "chapter": ["course/lstm", "The LSTM", "", None, 15, "", "text"],
    "term": ["reference/glossary", "Glossary > LSTM", "#lstm", None, 15, "", "title"],
    "notebook": ["course/scratch/lstm", "The LSTM by hand", "", None, 16, "", "text"],
    "guide": ["guides/recurrences", "Guide > LSTM", "#lstm", None, 15, "", "title"],
    "class": ["reference/api/cells", "weft.nn.cells.lstm.LSTM", "#LSTM", "", 16, "", "object"],
    "page": ["guides/scale", "From one process to many", "", None, 5, "", "text"],
    "results": ["results", "Results", "", None, 5, "", "text"],
    "module": [
        "reference/api/cells",
        "weft.nn.cells.lstm",
        "#module-weft.nn.cells.lstm",
        "",
        26,
        "",
        "object",
    ],
    "entries": ["reference/api/runs", "Runs", "", None, 5, "", "text"],
    "part": ["reference/api/cells", "weft.nn.cells.lstm.LSTM.step", "#step", "", 5, "", "object"],
}


def test_the_site_uses_the_scorer() -> None:
    conf = (DOCS / "conf.py").read_text("utf-8")
    parts = re.findall(r'^html_search_scorer = str\(DOCS / "(.+)" / "(.+)"\)', conf, re.MULTILINE)
    assert [DOCS.joinpath(*one).is_file() for one in parts] == [True]


def test_chapters_then_guides_then_the_reference() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    scorer = (DOCS / "_ext" / "scorer.js").read_text("utf-8")
    program = f"{scorer}\nconsole.log(JSON.stringify({json.dumps(list(FOUND.values()))}.map(Scorer.score)))"
    said = subprocess.run([node, "-e", program], capture_output=True, text=True, check=True, timeout=60)
    scores = dict(zip(FOUND, json.loads(said.stdout), strict=True))
    assert sorted(scores, key=lambda name: -scores[name]) == list(FOUND)
    assert len(set(scores.values())) == len(FOUND)


def test_the_pages_are_there() -> None:
    pages = {one[0] for one in FOUND.values()}
    assert {page for page in pages if not list(DOCS.glob(f"{page}.*"))} == set()
