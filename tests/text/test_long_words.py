"""Reading a word of a million letters takes linear time."""

import time
from collections import Counter

import pytest

from tests.slow import leading
from weft.text import learn
from weft.text.vocabulary import Vocabulary


@pytest.mark.parametrize("kind", leading(["bpe", "word", "character", "unigram"]))
def test_a_word_of_a_million_letters_is_learnt_and_read(kind: str) -> None:
    begun = time.process_time()
    lines = ["the cat sat on a mat", "a cat", "the mat", "ab" * 500_000] * 2
    vocabulary = Vocabulary.train(lines, kind=kind, size=None if kind in ("word", "character") else 20)
    rows = vocabulary.encode_batch(lines)
    assert vocabulary.decode(rows[0]) == lines[0]
    assert time.process_time() - begun < 30  # took more than 400 s before


def test_pieces_of_ordinary_words_do_not_depend_on_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    words = Counter({" low": 5, " lower": 2, " newest": 6, " widest": 3})
    sizes = {"kind": "bpe", "size": 19, "min_count": 1, "progress": False}
    usual = learn.learn(words, 4, **sizes)
    monkeypatch.setattr(learn, "LONGEST_WORD", 7)  # " newest" and " widest" have seven letters
    assert learn.learn(words, 4, **sizes).token_to_id("est") == usual.token_to_id("est") is not None
