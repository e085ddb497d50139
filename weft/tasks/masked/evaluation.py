"""How well a masked language model says hidden tokens: perplexity and accuracy, beside token frequencies."""

import math
from collections import Counter
from typing import NamedTuple

import numpy as np
import torch

from weft.metrics.means import mean_of, ratio
from weft.metrics.scored import fingerprint
from weft.tasks.masked.model import SPECIALS, MaskedLanguageModel, hide
from weft.tasks.running_text.base import ContextEvaluation, Side, perplexity
from weft.tasks.running_text.data import Parts
from weft.text.vocabulary import Vocabulary

ROWS = 32
SHARE = 0.15
"""The share of the tokens that is chosen where a model is scored."""


class HiddenScores(NamedTuple):
    """The chosen tokens, one after the other.

    Fields:
        each, hit: [N] nats, and 1.0 where the likeliest token is right.
        line, near: [N] the number of its line, and how many tokens it is from the nearer end.
        place, best: [N] its place in the line, and the likeliest piece.
        lines: number of lines.
    """

    each: np.ndarray
    hit: np.ndarray
    line: np.ndarray
    near: np.ndarray
    place: np.ndarray
    best: np.ndarray
    lines: int

    @property
    def nats(self) -> float:
        """The mean."""
        return float(self.each.mean())

    @property
    def right(self) -> float:
        """The share of the tokens whose likeliest token is right."""
        return float(self.hit.mean())

    @property
    def tokens(self) -> int:
        """Number of chosen tokens."""
        return len(self.each)

    def by_line(self, values: np.ndarray) -> np.ndarray:
        """[lines] the sum over the chosen tokens of each."""
        return np.bincount(self.line, values, self.lines)

    def filled(self, lines: list[list[int]]) -> list[list[int]]:
        """The lines with the likeliest piece in each chosen place."""
        found = [list(line) for line in lines]
        for line, place, best in zip(self.line, self.place, self.best, strict=True):
            found[line][place] = int(best)
        return found


def score(model: MaskedLanguageModel, lines: list[list[int]], size: int) -> HiddenScores:
    """Hide tokens of each line, always the same ones, and score what the model says of them.

    Args:
        model: trained, in evaluation mode.
        lines: tokens, without <sos> and <eos>.
        size: of the vocabulary.
    """
    order = sorted(range(len(lines)), key=lambda n: len(lines[n]))
    device = next(model.parameters()).device
    parts: list[list[np.ndarray]] = [[] for _ in range(6)]
    for at in range(0, len(order), ROWS):
        numbers = order[at : at + ROWS]
        some = [lines[n] for n in numbers]
        batch = hide(some, size, share=SHARE, seed=[1, at]).to(device)
        with torch.no_grad():
            h, _ = model.predictor.features(batch.source, batch.source_mask)
            logp = model.predictor.head(h[batch.chosen])
            pieces = logp[:, SPECIALS:size].argmax(1) + SPECIALS
        wanted = batch.target[batch.chosen]
        row, place = (where.cpu().numpy() for where in batch.chosen.nonzero(as_tuple=True))
        lengths = np.array([len(line) for line in some])[row]
        found = (
            -logp.gather(1, wanted[:, None])[:, 0].double().cpu().numpy(),
            (logp.argmax(1) == wanted).double().cpu().numpy(),
            np.array(numbers)[row],
            np.minimum(place - 1, lengths - place),
            place - 1,
            pieces.cpu().numpy(),
        )
        for part, one in zip(parts, found, strict=True):
            part.append(one)
    each, hit, line, near, places, best = (np.concatenate(part) for part in parts)
    return HiddenScores(each, hit, line, near, places, best, len(lines))


def evaluate(
    model: MaskedLanguageModel,
    vocabulary: Vocabulary,
    text: Parts[int],
    *,
    title: str,
    unit: str,
    length: int,
) -> ContextEvaluation:
    """Perplexity and accuracy of 15 % of the tokens, beside the frequencies of this very text.

    The outputs are the lines with these tokens predicted.

    Args:
        model: trained, in evaluation mode.
        vocabulary: its pieces.
        text: its tokens, at most `length` in a part.
        title: which text.
        unit: the kind of the vocabulary.
        length: where lines were cut.
    """
    lines = text.parts
    found = score(model, lines, len(vocabulary))
    counts = Counter(token for line in lines for token in line)
    total = sum(counts.values())
    entropy = -sum(count / total * math.log(count / total) for count in counts.values())
    signature = (
        f"unit:{unit}|kinds:{len(vocabulary)}|chosen:{SHARE}|80/10/10|seed:1|lines of at most {length}"
    )
    nats = ratio("perplexity of the chosen tokens", signature, higher_is_better=False, form="perplexity")
    accuracy = ratio("accuracy", signature, higher_is_better=True)
    outputs = [vocabulary.decode(line) for line in text.joined(found.filled(lines))]
    lowest = {"token frequencies": perplexity(entropy)}
    common = {"the most frequent token": max(counts.values()) / total}
    sums, hits = found.by_line(found.each), found.by_line(found.hit)
    many, size, items = (
        found.by_line(np.ones_like(found.each)),
        found.tokens,
        fingerprint(map(vocabulary.decode, lines)),
    )
    scores = [
        mean_of(nats, sums, many, baselines=lowest, items=items, size=size),
        mean_of(accuracy, hits, many, baselines=common, items=items, size=size),
    ]
    sides = [Side("masked", found.near, found.each)]
    return ContextEvaluation(title, outputs, scores, sides, "tokens to the nearer end of the line")
