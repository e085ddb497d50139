"""Word pairs and analogies in a file."""

from pathlib import Path

import pytest

from weft.data.questions import Analogy, WordPair, read_questions
from weft.errors import DataError


def test_pairs_with_tabs_or_spaces(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("# a comment\ntiger\tbig cat\t7.35\n\nsun moon 5\n")
    found = read_questions(tmp_path / "p")
    assert (
        found.pairs == [WordPair("tiger", "big cat", 7.35), WordPair("sun", "moon", 5.0)]
        and not found.analogies
    )


def test_analogies_have_sections(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("a b c d\n: capitals\nAthens Greece Oslo Norway\n")
    found = read_questions(tmp_path / "q")
    assert found.analogies == [
        Analogy(("a", "b", "c", "d"), "q"),
        Analogy(("Athens", "Greece", "Oslo", "Norway"), "capitals"),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a b 1\na b\n", "q:2: .*2 columns"),
        ("a b nan\n", "q:1: .*3 columns"),
        ("a b c d\na b 1\n", "q:2: .*3 columns"),
        (": head\n", "q: .*analogies"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "q").write_text(text)
    with pytest.raises(DataError, match=sentence):
        read_questions(tmp_path / "q")
