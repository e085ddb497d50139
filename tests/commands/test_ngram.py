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
    weft("ngram", "count", corpus / "train.txt", "--order", 3, "-o", corpus / "my.arpa", code=0)
    assert (corpus / "my.arpa").read_text().startswith("\\data\\\nngram 1=10\n")
    answer = weft("ngram", "score", corpus / "my.arpa", stdin=b"a a b\n\na zebra\n", code=0)
    hand, past, want = ByHand(text(), 3), (), 0.0
    for token in flat([[3, 3, 4]]).tolist():
        want += 0.0 if token == 0 else math.log10(hand.prob(past[-2:], token))
        past = (*past, token)
    shown, line = answer.lines[0].split("\t")
    assert line == "a a b" and math.isclose(float(shown), want, abs_tol=2e-4)
    assert len(answer.lines) == 3 and "8 tokens with </s>, 1 unknown word" in answer.err


def test_characters(corpus: Path) -> None:
    for arguments in (("count", corpus / "train.txt", "-o", corpus / "c.arpa"), ("score", corpus / "c.arpa")):
        answer = weft("ngram", *arguments, "--kind", "character", stdin=b"a b\n", code=0)
    assert np.isfinite(float(answer.lines[0].split("\t")[0])) and "0 unknown" in answer.err


def test_what_it_refuses(corpus: Path) -> None:
    (corpus / "bad.txt").write_text("a <s> b\n")
    said = refused(weft("ngram", "count", corpus / "bad.txt", "-o", corpus / "x.arpa"))
    assert "'<s>' is both a word and a special symbol" in said and not (corpus / "x.arpa").exists()
    assert "order: " in refused(
        weft("ngram", "count", corpus / "train.txt", "--order", 0, "-o", corpus / "x.arpa")
    )
    assert "incomplete ARPA file" in refused(weft("ngram", "score", corpus / "train.txt", stdin=b"a\n"))


def test_an_unknown_word_of_the_text_is_counted_like_any_other(tmp_path: Path) -> None:
    """By hand, as SRILM has it with -unk; the discounts of single words are those of a short text."""
    (tmp_path / "t.txt").write_text("a b a\nb <unk> a\na b\nc a b\n")
    answer = weft("ngram", "count", tmp_path / "t.txt", "--order", 2, "-o", tmp_path / "t.arpa", code=0)
    # <unk> <s> </s> a b c, as the file says too; and the ten different pairs
    assert "orders 1 to 2: 6, 10;" in answer.out
    rows = [line.split("\t") for line in (tmp_path / "t.arpa").read_text().splitlines() if "\t" in line]
    assert "ngram 1=6\nngram 2=10\n" in (tmp_path / "t.arpa").read_text()
    logp = {row[1]: float(row[0]) for row in rows}
    # before a: <s> b <unk> c; b: <s> a; </s>: a b; <unk>: b; c: <s>: 10 pairs, of which discounts take
    # 1.5 + 1 + 1 + 0.5 + 0.5; the five words that can be predicted share that
    left = (1.5 + 1 + 1 + 0.5 + 0.5) / 10 / 5
    wanted = {"a": 2.5, "b": 1.0, "</s>": 1.0, "<unk>": 0.5, "c": 0.5}
    for word, count in wanted.items():
        assert logp[word] == pytest.approx(math.log10(count / 10 + left), abs=1e-6)
    # six pairs stand there once, three twice, one three times: Y = 1/2, D_1 = 1/2, D_2 = 3/2
    # after b: a, <unk>, </s> twice: 4 pairs
    unknown = (1 - 0.5) / 4 + (0.5 + 0.5 + 1.5) / 4 * (0.5 / 10 + left)
    assert logp["b <unk>"] == pytest.approx(math.log10(unknown), abs=1e-6)
