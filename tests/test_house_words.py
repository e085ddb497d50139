"""Messages, docstrings and comments are plain English: known bad phrases are errors.

Read next: test_house.py, the other rules; CONTRIBUTING.md.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.source import broken, nodes, text_of

# Write instead: "PLACE: expected X, got Y; what to do".
ODD = re.compile(
    r"\bcame\b.*(?:needed|give|;)|\bcame, |\b(?:is|are) needed\b|whole or not at all|\bthe same bits\b"
    r"|to the bit\b|nobody who is dead|\bmake room\b|\bmend (?:it|or|the)\b|\bthere is no such\b"
    r"|, need \{|\bno \S+ is called\b"
)
# Phrases in docstrings and comments that a native engineer would not write. Say "again", "next to",
# "atomically", "bit-identical", "per file", "ties go to the first", "resumes", "contains", "is not".
ODD_PROSE = re.compile(
    r"\banew\b|\b(?:whence|thereof|whereof|thereby)\b|\bas it were\b|\bat work\b|\b(?:go|goes|went) on\b"
    r"|\b(?:is|are|was|were) asked for\b|\bwhat (?:is|was) given\b|\b(?:is|are) told\b"
    r"|\bwhole or not at all\b"
    r"|\bto the bit\b|\bthe same bits\b|\bstands? (?:twice|there|beside|behind|above|below|in|on)\b|\bstood\b"
    r"|\bof equals\b|\bthe same of\b|\b(?:it|that|which) is no (?!longer|better|more|less)|\bsmall letters\b"
    r"|\bfor the eye\b|\bas [\w' ]{1,40} (?:has|have) (?:it|them)\b|\bsees? to it\b|\bwhoever\b|\bnobody\b"
    r"|\bcame\b|\bmend(?:s|ed)?\b|\bmake room\b|\bone a (?:file|line|row|token|layer|word|sentence)\b"
    r"|\bgive or take\b|\bnear enough\b|\bbut for (?:its|the|a)\b|\bwhat there is\b|\bnothing of it\b",
    re.IGNORECASE,
)


def odd_sentences(source: str) -> list[str]:
    """String constants of a source, without docstrings, that match ODD."""
    tree = nodes(source)
    told, inner = set(), set()
    for node in tree:
        if isinstance(node, ast.JoinedStr):
            inner |= {id(part) for part in ast.walk(node) if part is not node}
        elif isinstance(node, ast.Expr):
            told.add(id(node.value))
    texts = [
        ast.unparse(node)
        for node in tree
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
    assert broken(lambda path: odd_sentences(text_of(path))) == []


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Lines of docstrings and comments with their line numbers."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in nodes(source):
        text = node.value if isinstance(node, ast.Expr) else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield from enumerate(text.value.split("\n"), node.lineno)


def odd_prose(path: Path) -> list[str]:
    source = text_of(path)
    if not ODD_PROSE.search(source):  # most files; finding comments takes far longer
        return []
    return [f"line {line}: {text.strip()}" for line, text in prose(source) if ODD_PROSE.search(text)]


def test_odd_prose_is_found() -> None:
    source = 'x = "came"  # built anew\n\n\ndef f():\n    """Words.\n\n    Of equals the first.\n    """\n'
    assert [line for line, text in prose(source) if ODD_PROSE.search(text)] == [1, 7]


def test_docstrings_and_comments_are_plain_english() -> None:
    assert broken(odd_prose) == []
