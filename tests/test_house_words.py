"""What Weft says is plain English: no phrase that natives stumble over stands in a text of weft/.

Read next: test_house.py, the other rules; CONTRIBUTING.md.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = sorted((ROOT / "weft").rglob("*.py"))

# Write instead: "PLACE: expected X, got Y; what to do".
ODD = re.compile(
    r"\bcame\b.*(?:needed|give|;)|\bcame, |\b(?:is|are) needed\b|whole or not at all|\bthe same bits\b"
    r"|to the bit\b|nobody who is dead|\bmake room\b|\bmend (?:it|or|the)\b|\bthere is no such\b"
    r"|, need \{|\bno \S+ is called\b"
)
# Files with such phrases still in them; it may only get shorter.
STILL = {"weft/search/step.py"}


def odd_sentences(source: str) -> list[str]:
    """Texts with a phrase of ODD, as they stand in the source; docstrings are not looked at."""
    tree = ast.parse(source)
    told, inner = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inner |= {id(part) for part in ast.walk(node) if part is not node}
        elif isinstance(node, ast.Expr):
            told.add(id(node.value))
    texts = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if id(node) not in told | inner
        and (
            isinstance(node, ast.JoinedStr)
            or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        )
    ]
    return [text for text in texts if ODD.search(text)]


def test_odd_sentences_are_found() -> None:
    odd = 'def f(n):\n    """0 came, 1 is needed."""\n    raise ValueError(f"{n} came, 1 is needed")\n'
    assert odd_sentences(odd) == ["f'{n} came, 1 is needed'"]
    assert odd_sentences('raise ValueError(f"n: expected at least 1, got {n}")') == []


def test_messages_are_plain_english() -> None:
    found = {path.relative_to(ROOT).as_posix(): odd_sentences(path.read_text()) for path in PACKAGE}
    assert {name: texts for name, texts in found.items() if texts and name not in STILL} == {}
    assert all(found.get(name) for name in STILL), "STILL names a file that is in order: remove it there"
