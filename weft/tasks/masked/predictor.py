"""A trained masked language model: it fills the gaps of a text, each by itself."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from weft.tasks import predictor
from weft.tasks.masked.model import SPECIALS, Masked
from weft.tasks.predictor import Answer, Json, Place, Raw
from weft.text.vocabulary import EOS, SOS, Vocabulary

MASK = "[MASK]"
SERVED = 5
"""Pieces of each gap in the JSON of an answer."""


class Filled(NamedTuple):
    """A text with its gaps filled, and for each gap the likeliest pieces with their probabilities."""

    text: str
    gaps: list[list[tuple[str, float]]]


class FilledText(Answer):
    """What belongs into the gaps of a text.

    Args:
        vocabulary: its pieces.
        tokens: of the text.
        logp: [gaps, V] of each gap; the special tokens have -inf.
        count: number of pieces of each gap in `text`.
        scores: whether `text` says their probabilities.
    """

    def __init__(
        self, vocabulary: Vocabulary, tokens: Sequence[int], logp: Tensor, *, count: int, scores: bool
    ) -> None:
        self._vocabulary = vocabulary
        self._tokens = tokens
        self._logp = logp
        self._count = count
        self._scores = scores

    def filled(self, count: int) -> Filled:
        """The text with the likeliest pieces, and `count` pieces for each gap."""
        vocabulary, tokens = self._vocabulary, list(self._tokens)
        gaps = []
        places = [place for place, token in enumerate(tokens) if token == len(vocabulary)]
        for place, logp in zip(places, self._logp, strict=True):
            best = logp.topk(min(count, len(vocabulary) - SPECIALS))
            found = zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
            gaps.append([(vocabulary.decode([piece]), prob) for piece, prob in found])
            tokens[place] = int(best.indices[0])
        return Filled(vocabulary.decode(tokens[1:-1]), gaps)

    def text(self) -> str:
        """The text with its gaps filled; with several pieces or scores, the pieces, a tab between gaps."""
        filled = self.filled(self._count)
        if self._count == 1 and not self._scores:
            return filled.text
        return "\t".join(
            " ".join(f"{piece}:{prob:.4f}" if self._scores else piece for piece, prob in gap)
            for gap in filled.gaps
        )

    def json(self) -> Json:
        """The text with its gaps filled, and pieces with probabilities for each gap."""
        filled = self.filled(SERVED)
        gaps: list[Json] = [[{"piece": piece, "prob": prob} for piece, prob in gap] for gap in filled.gaps]
        return {"text": filled.text, "gaps": gaps}


class Filler(predictor.Predictor[list[int]]):
    """Fills gaps, each by itself.

    Args:
        model: trained, in evaluation mode.
        vocabulary: its pieces.
        count: number of pieces of each gap in the text of an answer.
        scores: whether the text says their probabilities.
    """

    window = 64  # an answer holds the probabilities of the whole vocabulary

    def __init__(
        self, model: Masked, vocabulary: Vocabulary, *, count: int = 1, scores: bool = False
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self._count = count
        self._scores = scores

    def parse(self, raw: Raw, place: Place) -> list[int]:
        """A text with [MASK] in it, as tokens."""
        if MASK not in str(raw):
            raise place.refuse(f"expected {MASK} where a word is missing, got {str(raw)[:40]!r}")
        return self.tokens(str(raw))

    def answers(self, inputs: Sequence[list[int]]) -> Iterator[Answer]:
        return (self._answer(tokens) for tokens in inputs)

    def fill(self, text: str, count: int = 5) -> Filled:
        """The likeliest pieces for each [MASK]; the first one is put into the text.

        Raises:
            DataError: there is no [MASK] in the text.
        """
        return self._answer(self.parse(text, Place("input"))).filled(count)

    def predict(self, raw: str) -> str:
        """The text with its gaps filled."""
        return self.fill(raw, 1).text

    def tokens(self, text: str) -> list[int]:
        """<sos>, the pieces and the masks, <eos>."""
        tokens = [SOS]
        *before, last = text.split(MASK)
        for part in before:  # the space before a gap belongs to the missing piece
            tokens += [*self.vocabulary.encode(part.rstrip(" ")), len(self.vocabulary)]
        tokens += self.vocabulary.encode(last)
        return [*tokens, EOS]

    def _answer(self, tokens: list[int]) -> FilledText:
        size = len(self.vocabulary)
        source = torch.tensor([tokens], device=next(self.model.parameters()).device)
        with torch.no_grad():
            logp = self.model(source, torch.ones_like(source, dtype=torch.bool))[0, :, :size].float().cpu()
        gaps = logp[[place for place, token in enumerate(tokens) if token == size]]
        gaps[:, :SPECIALS] = -torch.inf
        return FilledText(self.vocabulary, tokens, gaps, count=self._count, scores=self._scores)
