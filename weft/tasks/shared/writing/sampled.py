"""Training pairs in other segmentations, drawn for each batch. Read next: ../../../text/sampling.py."""

import random
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from weft.randomness import open_generator
from weft.tasks.shared.writing.data import VocabularySettings
from weft.text.sampling import SampledPieces
from weft.text.vocabulary import Vocabulary

Row = np.ndarray | Sequence[int]
Pair = tuple[Row, Row]


class SampledPairs:
    """Segments pairs differently each time, if the recipe says so.

    Args:
        settings: how text is tokenised.
        source, target: the vocabularies, perhaps the same one.
        longest: maximum number of tokens of a source and of a target; a row that would be longer is kept.
    """

    def __init__(
        self,
        settings: VocabularySettings,
        source: Vocabulary,
        target: Vocabulary,
        longest: tuple[int, int],
    ) -> None:
        self._sides: tuple[SampledPieces, ...] = ()
        self._longest = longest
        if settings.sampled:
            make = partial(SampledPieces, dropout=settings.dropout, alpha=settings.alpha)
            one = make(source)
            self._sides = one, one if target is source else make(target)

    def __call__(self, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """The pairs, segmented by numbers from the open generator; as they are outside of training."""
        generator = open_generator()
        if generator is None or not self._sides:
            return pairs
        chance = random.Random(int(torch.randint(2**62, (), generator=generator)))
        return [(self._drawn(0, source, chance), self._drawn(1, target, chance)) for source, target in pairs]

    def _drawn(self, side: int, row: Row, chance: random.Random) -> Row:
        drawn = self._sides[side].draw(row, chance)
        return drawn if len(drawn) <= self._longest[side] else row
