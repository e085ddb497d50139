"""The encoder of a trained run, which a model of another task starts with: `training.start: runs/bert`.

A task that trains an encoder says in `Task.encoder_of` what to take from a run of it; one that can start with
it says in `Task.started` what that means for its own recipe. Read next: ../run/training.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from weft.nn.embed.contextual import Pieces
from weft.text.vocabulary import EOS, PAD, SOS, Vocabulary

Frame = Literal["none", "before", "after", "both"]
"""Symbols that a text is read between: </s> before it, </s> after it, or <s> before and </s> after it."""

_SYMBOLS: dict[Frame, tuple[list[int], list[int]]] = {
    "none": ([], []),
    "before": ([EOS], []),
    "after": ([], [EOS]),
    "both": ([SOS], [EOS]),
}

VOCABULARIES = ("tokenizer.json", "tokenizer.source.json")
"""Files of a run, of which the first that exists is the vocabulary of its encoder."""


def symbols(frame: Frame) -> tuple[list[int], list[int]]:
    """The numbers before a text and after it."""
    return _SYMBOLS[frame]


def framed(rows: Sequence[Sequence[int]], most: int, frame: Frame) -> list[list[int]]:
    """The first tokens of texts with the symbols around them."""
    before, after = symbols(frame)
    return [[*before, *row[:most], *after] for row in rows]


def words_in_pieces(
    vocabulary: Vocabulary,
    sentences: Sequence[Sequence[str]],
    length: int,
    *,
    frame: Frame = "both",
    leading: bool = False,
) -> Pieces:
    """Sentences of words as an encoder reads them: the pieces of each word, and symbols around a sentence.

    A part of a sentence has at most `length` pieces; with `leading`, only the first piece of a word counts.

    Example:
        >>> letters = Vocabulary.train(["ab"], kind="character", size=None)
        >>> words_in_pieces(letters, [["b", "ab"]], 9).which.tolist()
        [[0, 0, 1, 1, 0]]
    """
    begin, end = (len(each) for each in vocabulary.around())

    def encoded(texts: Sequence[str]) -> list[list[int]]:
        return [row[begin : len(row) - end] for row in vocabulary.encode_batch(texts)]

    first, later = encoded(["a", " a"])
    marked = "".join(vocabulary.pieces(first)).startswith("▁")  # byte-level tokenizers leave that to the text
    inner = "" if first == later or marked else " "
    texts = [[(inner if place else "") + word for place, word in enumerate(words)] for words in sentences]
    different = sorted({text for words in texts for text in words})
    spelled = dict(zip(different, encoded(different), strict=True))
    longest = max(map(len, texts))
    parts: list[list[tuple[int, list[int]]]] = []  # each word's place in [B S], and its pieces
    for row, words in enumerate(texts):
        room = 0
        for word, text in enumerate(words):
            pieces = spelled[text][:length]
            if word == 0 or len(pieces) > room:
                parts.append([])
                room = length
            parts[-1].append((row * longest + word, pieces))
            room -= len(pieces)
    before, after = (own + around for own, around in zip(symbols(frame), vocabulary.around(), strict=True))
    width = max(sum(len(pieces) for _, pieces in part) for part in parts) + len(before) + len(after)
    tokens = np.full((len(parts), width), PAD, dtype=np.int64)
    which, share = np.zeros_like(tokens), np.zeros(tokens.shape, dtype=np.float32)
    for place, part in enumerate(parts):
        every = [number for _, pieces in part for number in pieces]
        counts = np.array([len(pieces) for _, pieces in part])
        here = slice(len(before), len(before) + len(every))
        tokens[place, : len(before) + len(every) + len(after)] = [*before, *every, *after]
        which[place, here] = np.repeat([word for word, _ in part], counts)
        share[place, here] = np.repeat(1 / np.maximum(counts, 1), counts)
        if leading:
            starts = np.arange(len(every)) - np.repeat(counts.cumsum() - counts, counts)
            share[place, here] = starts == 0
    return Pieces(*(torch.from_numpy(each) for each in (tokens, tokens != PAD, which, share)))


class ReusedEncoder(NamedTuple):
    """An encoder over tokens."""

    encoder: Mapping[str, Any]  # its settings, as `model.encoder` of a recipe
    size: int  # features of a token
    frame: Frame  # what its run read texts between, beside the symbols of the vocabulary itself
    embed: str = "embed"  # the part of its run's model that embeds tokens,
    network: str = "encoder"  # and the one that reads them
    inner: str = ""  # path of `network` inside the encoder of these settings; empty for all of it

    def parts(self, part: str = "") -> dict[str, str]:
        """`training.start_parts` of a model that has an embedding and an encoder in a part of this name."""
        encoder = ".".join(filter(None, (part, "encoder", self.inner)))
        embed = ".".join(filter(None, (part, "embed")))
        return {"vocabulary": "vocabulary", embed: self.embed, encoder: self.network}
