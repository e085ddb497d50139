"""The site's own tools: links are checked, docstrings become reStructuredText."""

from pathlib import Path

import pytest

from tests.docs.tools import tool


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ('<a href="b.html#here">', None),
        ('<a href="https://example.org/x">', None),
        ('<a href="c.html">', "not there"),
        ('<a href="b.html#gone">', "no such anchor"),
        ('<a href="#gone">', "no such anchor"),
        ('<script src="https://cdn.example.org/x.js"></script>', "docs/_static"),
        ('<link rel="stylesheet" href="//cdn.example.org/x.css">', "docs/_static"),
        ('<img src="gone.png">', "not there"),
    ],
)
def test_a_broken_link_and_a_file_from_another_server_are_found(
    tmp_path: Path, body: str, word: str | None
) -> None:
    (tmp_path / "a.html").write_text(body, "utf-8")
    (tmp_path / "b.html").write_text('<p id="here">', "utf-8")
    wrong, _ = tool("links").check(tmp_path)
    assert len(wrong) == (word is not None)
    assert all(word and word in one and one.startswith("a.html") for one in wrong)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["The `x` of a * b.", "Read next: y.py."], ["The ``x`` of a \\* b."]),
        (
            ["Args:", "    x: of", "        shape [B].", "    y: two"],
            ["Args:", "    x: of shape [B].", "    y: two"],
        ),
        (["First:", "    a = b", "then"], ["First:", "", "::", "", "    a = b", "", "then"]),
        (["Rules:", "  1. one", "     more", "  2. two"], ["Rules:", "", "1. one more", "2. two"]),
        ([">>> 1 + 1", "2"], [">>> 1 + 1", "2"]),
    ],
    ids=["prose", "arguments", "formula", "list", "example"],
)
def test_a_docstring_becomes_restructuredtext(lines: list[str], expected: list[str]) -> None:
    found = tool("docstrings").rewritten(lines)
    while found and not found[-1]:
        found.pop()
    assert found == expected


def test_a_line_that_came_in_two_pieces_is_one_line() -> None:
    pytest.importorskip("myst_nb")
    pieces = [
        {"output_type": "stream", "name": "stdout", "text": text}
        for text in ("first\nupdate 1,000:", " loss 2\n", "last\n")
    ]
    (whole,) = tool("executed").joined(pieces)
    assert whole["text"] == "first\nupdate 1,000: loss 2\nlast\n"
