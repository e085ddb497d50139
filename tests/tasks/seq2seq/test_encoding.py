"""Pairs as tokens and batches: sources are cut and lend their unknown words, masks say what is real."""

import numpy as np
import pytest
import torch

from weft.tasks.seq2seq.batch_search import SourceReader, pad
from weft.tasks.seq2seq.encoding import collate_pairs, encode_pairs
from weft.text.vocabulary import UNK, Vocabulary

LINES = ["the cat sat on the mat .", "the dog saw the cat ."]


def vocabulary(kind: str = "word", **how: object) -> Vocabulary:
    return Vocabulary.train(LINES, kind=kind, size=None, **how)


def test_unknown_words_get_numbers_behind_the_vocabulary_in_the_order_in_which_they_come() -> None:
    words = vocabulary()
    size = len(words)
    reader = SourceReader(words, cut=None, copies=True)
    text = "the  zebra saw Ibsen , the zebra sat"
    assert reader.copyable(text) == [" zebra", " Ibsen", " ,"]
    plain = words.encode(text)
    assert plain.count(UNK) == 4
    named = iter([size, size + 1, size + 2, size])
    assert reader.encode(text) == [number if number != UNK else next(named) for number in plain]
    beside = words.extended(reader.copyable(text))
    assert beside.decode([size + 1, size, *words.encode("sat")]) == "Ibsen zebra sat"
    assert beside.pieces([size]) == ["▁zebra"] and len(beside) == size + 3
    assert len(words) == size and words.encode(text) == plain  # the vocabulary itself is what it was


def test_targets_are_spelled_with_the_words_of_their_own_source_alone() -> None:
    words = vocabulary()
    size = len(words)
    reader = SourceReader(words, cut=None, copies=True)
    sources, targets = ["the zebra sat", "Ibsen saw"], ["zebra Ibsen", "zebra Ibsen cat"]
    pairs = encode_pairs(reader, words, sources, targets)
    assert pairs.target == [[size, UNK], [UNK, size, *words.encode("cat")]]
    plain = encode_pairs(SourceReader(words, cut=None, copies=False), words, sources, targets)
    assert plain.target == [[UNK, UNK], [UNK, UNK, *words.encode("cat")]]
    assert encode_pairs(words, words, sources, targets) == plain


@pytest.mark.parametrize("copies", [False, True])
def test_a_cut_source_lends_only_what_is_read(copies: bool) -> None:
    words = vocabulary()
    reader = SourceReader(words, cut=3, copies=copies)
    texts = ["zebra sat on Ibsen", "Ibsen", "the cat sat"]
    assert [len(row) for row in reader.encode_batch(texts)] == [3, 1, 3]
    assert reader.num_cut(texts) == 1
    assert list(reader.copyable(texts[0])) == ([" zebra"] if copies else [])
    pairs = encode_pairs(reader, words, texts[:1], ["Ibsen zebra"])
    assert pairs.target == [[UNK, len(words) if copies else UNK]]
    assert reader.extended(reader.copyable(texts[0])).encode(texts[0]) == reader.encode(texts[0])


def test_unknown_characters_are_lent_too() -> None:
    letters = Vocabulary.train(["aab ba"], kind="character", size=None)
    reader = SourceReader(letters, cut=None, copies=True)
    assert reader.copyable("ac a!c") == ["c", "!"]
    beside = letters.extended(["c", "!"])
    assert beside.decode(reader.encode("ac a!c")) == "ac a!c"


def test_a_batch_has_what_the_model_reads_and_writes() -> None:
    batch = collate_pairs([[7, 8, 9], [5]], [np.array([6]), np.array([4, 5])])
    assert batch.source.tolist() == [[7, 8, 9], [5, 0, 0]]
    assert batch.source_mask.tolist() == [[True] * 3, [True, False, False]]
    assert batch.target_in.tolist() == [[2, 6, 0], [2, 4, 5]]
    assert batch.target_out.tolist() == [[6, 3, 0], [4, 5, 3]]
    assert batch.target_mask.tolist() == [[True, True, False], [True] * 3]
    assert batch.target_tokens == 5
    assert batch.to(torch.device("cpu")).target_tokens == 5


def test_an_empty_row_keeps_one_real_position() -> None:
    tokens, mask = pad([[], [7, 8]])
    assert (tokens.tolist(), mask.tolist()) == ([[0, 0], [7, 8]], [[True, False], [True, True]])
    assert pad([[]])[1].tolist() == [[True]]


@pytest.mark.parametrize("width", [2, 5])
def test_a_wider_batch_has_more_padding_only(width: int) -> None:
    tokens, mask = pad([[7, 8], [9]], width)
    assert tokens.shape == mask.shape == (2, width)
    assert tokens.tolist() == [[7, 8, *[0] * (width - 2)], [9, *[0] * (width - 1)]]
    assert mask.sum(1).tolist() == [2, 1]
