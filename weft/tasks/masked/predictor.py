"""A masked language model at work: it fills [MASK]."""

from typing import NamedTuple

import torch

from weft.errors import DataError
from weft.tasks.masked.model import SPECIALS, Masked
from weft.text.vocabulary import EOS, SOS, Vocabulary

MASK = "[MASK]"


class Filled(NamedTuple):
    """A text with its gaps filled, and for each gap the likeliest pieces with their probabilities."""

    text: str
    gaps: list[list[tuple[str, float]]]


class Filler:
    """Fills gaps, each by itself.

    Args:
        model: trained, in evaluation mode.
        vocabulary: its pieces.
    """

    def __init__(self, model: Masked, vocabulary: Vocabulary) -> None:
        self.model, self.vocabulary = model, vocabulary

    def fill(self, text: str, count: int = 5) -> Filled:
        """The likeliest pieces for each [MASK]; the first one is put into the text.

        Raises:
            DataError: there is no [MASK] in the text.
        """
        parts = text.split(MASK)
        if len(parts) < 2:
            raise DataError(f"expected {MASK} where a word is missing, got {text[:40]!r}")
        size = len(self.vocabulary)
        tokens = [SOS]
        for number, part in enumerate(parts):
            tokens += [size] * (number > 0) + self.vocabulary.encode(part)
        tokens.append(EOS)
        device = next(self.model.parameters()).device
        source = torch.tensor([tokens], device=device)
        with torch.no_grad():
            logp = self.model(source, torch.ones_like(source, dtype=torch.bool))[0, :, :size].float().cpu()
        logp[:, :SPECIALS] = -torch.inf
        gaps = []
        for place in [place for place, token in enumerate(tokens) if token == size]:
            best = logp[place].topk(min(count, size - SPECIALS))
            found = zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
            gaps.append([(self.vocabulary.decode([piece]), prob) for piece, prob in found])
            tokens[place] = int(best.indices[0])
        return Filled(self.vocabulary.decode(tokens[1:-1]), gaps)

    def predict(self, text: str) -> str:
        """The text, its gaps filled."""
        return self.fill(text, 1).text
