"""Batches of sequence pairs: padded tensors with masks, and the changes of training pairs in each epoch.

Pairs may be joined, sources get mistakes, texts get other segmentations. These random changes depend only on
the seed, the epoch and the batch, so a resumed training repeats them; validation and use change nothing.
Read next: ../../text/noise.py, ../../text/sampling.py.

Source: Kondo et al. 2021, "Sentence Concatenation Approach to Data Augmentation for Neural Machine
Translation"; Nguyen, Murray and Chiang 2021, "Data Augmentation by Concatenation for Low-Resource
Translation". They add joined pairs to the training text; we join those of a batch, which costs no time.
"""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.nn.randomness import open_generator
from weft.tasks.seq2seq.data import AugmentSettings, VocabularySettings
from weft.text import noise
from weft.text.noise import Noise
from weft.text.sampling import SampledPieces
from weft.text.vocabulary import EOS, PAD, SOS, Vocabulary


class PairBatch(NamedTuple):
    """Sources and targets for a weft.models.Generator."""

    source: Tensor  # [B, S] int64, padded
    source_mask: Tensor  # [B, S] bool
    target_in: Tensor  # [B, T] <sos> w_1 .. w_n
    target_out: Tensor  # [B, T] w_1 .. w_n <eos>
    target_mask: Tensor  # [B, T] bool
    target_tokens: int  # real target positions, with <eos>
    joined: bool = False  # whether a row has more than one pair

    def to(self, device: torch.device) -> "PairBatch":
        """The same batch on a device."""
        tensors = [part.to(device) for part in self[:5]]
        return PairBatch(
            tensors[0], tensors[1], tensors[2], tensors[3], tensors[4], self.target_tokens, self.joined
        )

    def rows(self, chosen: slice) -> "PairBatch | None":
        """Some rows, with the batch's padding; None if pairs are joined, because rows are not pairs then."""
        if self.joined:
            return None
        tensors = [part[chosen] for part in self[:5]]
        count = int(tensors[4].sum())
        return PairBatch(tensors[0], tensors[1], tensors[2], tensors[3], tensors[4], count)


def pad(rows: Sequence[Sequence[int] | np.ndarray], width: int | None = None) -> tuple[Tensor, Tensor]:
    """Token lists to [B, S] int64 and their mask [B, S].

    Args:
        rows: tokens; an empty row gets one padding symbol that counts as real, so that no row is
            without a real position.
        width: S; the longest row by default.

    Example:
        >>> pad([[7, 8], [9]])[0].tolist()
        [[7, 8], [9, 0]]
    """
    lengths = [max(1, len(row)) for row in rows]
    width = width or max(lengths)
    tokens = np.full((len(rows), width), PAD, dtype=np.int64)
    for row, numbers in enumerate(rows):
        tokens[row, : len(numbers)] = numbers
    mask = np.arange(width)[None] < np.array(lengths)[:, None]
    return torch.from_numpy(tokens), torch.from_numpy(mask)


def collate_pairs(
    sources: Sequence[np.ndarray | Sequence[int]], targets: Sequence[np.ndarray | Sequence[int]]
) -> PairBatch:
    """Sources and targets without special symbols to a batch with them."""
    source, source_mask = pad(sources)
    target_in, _ = pad([[SOS, *target] for target in targets])
    target_out, target_mask = pad([[*target, EOS] for target in targets])
    return PairBatch(source, source_mask, target_in, target_out, target_mask, int(target_mask.sum()))


Row = np.ndarray | Sequence[int]
Pair = tuple[Row, Row]


class AugmentedPairs:
    """Makes batches of pairs, changed as the recipe says while a model is trained.

    Args:
        vocabulary: how text is tokenised.
        augment: joined pairs and mistakes.
        source, target: the vocabularies, perhaps the same one.
        longest: maximum number of tokens of a source and of a target; a row that would be longer is kept.
        tags: number of symbols before each source, such as that of the target language; they stay, and only
            pairs with the same ones are joined.

    Raises:
        ConfigError: joined pairs or mistakes with imported vocabularies.
    """

    def __init__(
        self,
        vocabulary: VocabularySettings,
        augment: AugmentSettings,
        source: Vocabulary,
        target: Vocabulary,
        longest: tuple[int, int],
        *,
        tags: int = 0,
    ) -> None:
        self._tags = tags
        self._sides: tuple[SampledPieces, ...] = ()
        self._longest = longest
        self._concatenate = augment.concatenate
        self._noise: Noise | None = None
        if augment.noisy:
            drop, swap, typos = augment.drop_words, augment.swap_words, augment.typos
            self._noise = Noise(source, drop=drop, swap=swap, typos=typos)
        if augment.concatenate:
            noise.check_splittable(source)
            self._between = noise.space(source), noise.space(target)
        if vocabulary.sampled:
            make = partial(SampledPieces, dropout=vocabulary.dropout, alpha=vocabulary.alpha)
            one = make(source)
            self._sides = one, one if target is source else make(target)

    def collate(self, pairs: Sequence[Pair]) -> PairBatch:
        """A batch of pairs, changed by numbers from the open generator; as they are outside of training."""
        count, generator = len(pairs), open_generator()
        steps: list[Callable[[Sequence[Pair], random.Random], Sequence[Pair]]] = []
        steps += [self._joined] if self._concatenate else []
        steps += [self._with_mistakes] if self._noise else []
        steps += [self._segmented] if self._sides else []
        for step in steps if generator is not None else []:
            pairs = step(pairs, random.Random(int(torch.randint(2**62, (), generator=generator))))
        batch = collate_pairs([source for source, _ in pairs], [target for _, target in pairs])
        return batch._replace(joined=len(pairs) < count)

    def _joined(self, pairs: Sequence[Pair], chance: random.Random) -> Sequence[Pair]:
        """The pairs two by two, in random order, if it is this batch's turn; a long one stays alone."""
        if chance.random() >= self._concatenate:
            return pairs
        heads = [[int(one) for one in source[: self._tags]] for source, _ in pairs]
        order = sorted(chance.sample(range(len(pairs)), len(pairs)), key=lambda number: heads[number])
        found: list[Pair] = [pairs[order[-1]]] if len(pairs) % 2 else []
        for first, second in zip(order[::2], order[1::2], strict=False):
            (source, target), (source2, target2) = pairs[first], pairs[second]
            one = (
                [*source, *self._between[0], *source2[self._tags :]],
                [*target, *self._between[1], *target2],
            )
            fits = all(len(row) <= most for row, most in zip(one, self._longest, strict=True))
            found += [one] if fits and heads[first] == heads[second] else [pairs[first], pairs[second]]
        return found

    def _with_mistakes(self, pairs: Sequence[Pair], chance: random.Random) -> Sequence[Pair]:
        assert self._noise is not None
        draw, at = self._noise.draw, self._tags
        drawn = [[*source[:at], *draw(source[at:], chance)] for source, _ in pairs]
        return [(self._fitting(0, new, old), target) for new, (old, target) in zip(drawn, pairs, strict=True)]

    def _segmented(self, pairs: Sequence[Pair], chance: random.Random) -> Sequence[Pair]:
        return [
            (
                self._fitting(0, self._sides[0].draw(source, chance), source),
                self._fitting(1, self._sides[1].draw(target, chance), target),
            )
            for source, target in pairs
        ]

    def _fitting(self, side: int, drawn: Row, row: Row) -> Row:
        return drawn if len(drawn) <= self._longest[side] else row
