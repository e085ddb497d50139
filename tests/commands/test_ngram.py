"""`weft ngram`: ARPA files from text, and text under ARPA files."""

import math
from pathlib import Path

import numpy as np
import pytest

from tests.commands.shell import refused, weft
from tests.ngram.test_kneser_ney import ByHand, flat, text

NAMES = "zero one <unk> a b c d e f g".split()  # noqa: SIM905  as a text has it


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    lines = [" ".join(NAMES[token] for token in one) for one in text()]
    (tmp_path / "train.txt").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def test_a_text_is_counted_and_scored(corpus: Path) -> None:
    answer = weft("ngram", "count", corpus / "train.txt", "--order", 3, "-o", corpus / "my.arpa")
    assert answer.code == 0, answer.err
    assert (corpus / "my.arpa").read_text().startswith("\\data\\\nngram 1=10\n")
    answer = weft("ngram", "score", corpus / "my.arpa", stdin=b"a a b\n\na zebra\n")
    assert answer.code == 0, answer.err
    hand, past, want = ByHand(text(), 3), (), 0.0
    for token in flat([[3, 3, 4]]).tolist():
        want += 0.0 if token == 0 else math.log10(hand.prob(past[-2:], token))
        past = (*past, token)
    shown, line = answer.lines[0].split("\t")
    assert line == "a a b" and math.isclose(float(shown), want, abs_tol=2e-4)
    assert len(answer.lines) == 3 and "8 tokens with </s>, 1 unknown words" in answer.err


def test_characters(corpus: Path) -> None:
    for arguments in (("count", corpus / "train.txt", "-o", corpus / "c.arpa"), ("score", corpus / "c.arpa")):
        answer = weft("ngram", *arguments, "--kind", "character", stdin=b"a b\n")
        assert answer.code == 0, answer.err
    assert np.isfinite(float(answer.lines[0].split("\t")[0])) and "0 unknown" in answer.err


def test_what_it_refuses(corpus: Path) -> None:
    (corpus / "bad.txt").write_text("a <s> b\n")
    said = refused(weft("ngram", "count", corpus / "bad.txt", "-o", corpus / "x.arpa"))
    assert "'<s>' stands for two tokens" in said and not (corpus / "x.arpa").exists()
    assert "order: 0 came" in refused(
        weft("ngram", "count", corpus / "train.txt", "--order", 0, "-o", corpus / "x.arpa")
    )
    assert "no whole ARPA file" in refused(weft("ngram", "score", corpus / "train.txt", stdin=b"a\n"))
