"""A trained model at work: lines in, the same number of translations out, in order.

Read next: ../../../search/beam.py for how a translation is found; ../../../figures/alignment.py for where it
looked.
"""

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch

from weft.data.lines import read_lines
from weft.errors import ConfigError, WeftError
from weft.models import Generator
from weft.probe import probe
from weft.search.hypotheses import Hypotheses, to_lists
from weft.search.trace import Trace
from weft.tasks.each import Failure, each, place
from weft.tasks.shared.writing.batch import collate_pairs, pad
from weft.tasks.shared.writing.decoding import Decoding
from weft.tasks.shared.writing.reading import Reading
from weft.tasks.shared.writing.searching import Searching
from weft.tasks.whole import Answer, unanswered
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary

WINDOW = 2048  # lines that are sorted by length together


class Translation(NamedTuple):
    """One hypothesis for one line."""

    text: str
    score: float  # log-probability normalised by length, what hypotheses are ranked by
    logp: float  # nats
    tokens: list[int]


class Alignment(NamedTuple):
    """Where a translation looked."""

    weights: np.ndarray  # [T, S] attention for each target token over the source tokens
    source: list[int]
    target: list[int]
    shown: str  # which attention this is


NOTHING = Translation("", -math.inf, -math.inf, [])
"""Stands where there are fewer hypotheses than were asked for."""


class Translator:
    """Searches translations with a model and its vocabularies.

    Args:
        model: in evaluation mode, on its device.
        source, target: the vocabularies.
        decoding: how to search.
        banned: numbers that are never written, beside the special symbols.
        others: models that search along with the first, as an ensemble; same vocabularies, same device.
    """

    def __init__(
        self,
        model: Generator,
        source: Reading,
        target: Vocabulary,
        decoding: Decoding,
        *,
        banned: Sequence[int] = (),
        others: Sequence[Generator] = (),
    ) -> None:
        self.model = model
        self.source = source
        self.target = target
        self.decoding = decoding
        self.banned = (PAD, UNK, SOS, *banned)
        self._searching = Searching([model, *others], target, decoding, self.banned)

    def translate(self, lines: Iterable[str]) -> Iterator[list[Translation]]:
        """For each line, in order, its n best translations; an empty line gives as many empty ones."""
        return (found for _, found in self.pairs(lines))

    def pairs(self, lines: Iterable[str], *, window: int = WINDOW) -> Iterator[tuple[str, list[Translation]]]:
        """Each line with its translations.

        Args:
            lines: read `window` at a time, so that a stream of any length takes the same memory; those of
                a window are sorted by length and decoded in batches.
            window: 1 answers each line at once.
        """
        for line, found in self.attempts(lines, window=window):
            if isinstance(found, WeftError):
                raise found
            yield line, found

    def attempts(
        self, lines: Iterable[str], *, window: int = WINDOW
    ) -> Iterator[tuple[str, list[Translation] | Failure]]:
        """As `pairs`, but a line that cannot be translated has the reason in the place of translations."""
        lines = iter(lines)
        chance = torch.Generator(self._device).manual_seed(self.decoding.seed)
        while read := list(islice(lines, window)):
            yield from zip(read, self._window(read, chance), strict=True)

    def predict(self, text: str) -> str:
        """The best translation of one sentence; `pairs` and `translate` take many."""
        if not isinstance(text, str):
            raise TypeError(f"expected one text, got {type(text).__name__}; for many use pairs(lines)")
        return next(self.translate([text]))[0].text

    def beside(self, line: str) -> "Translator":
        """The same for one source alone, whose words both vocabularies know as far as they may be copied."""
        copyable = self.source.copyable(line)
        if not copyable:
            return self
        other = copy.copy(self)
        other.source, other.target = self.source.extended(copyable), self.target.extended(copyable)
        return other

    def align(self, source: Sequence[int], target: Sequence[int]) -> Alignment:
        """What the attention did while this target was written.

        Raises:
            ConfigError: the model has no attention.
        """
        batch = collate_pairs([list(source)], [list(target)]).to(self._device)
        with torch.no_grad(), probe() as seen:
            self.model.features(batch)
        if seen["attention"]:
            parts = [part for part in seen["attention"] if part.shape[2] == batch.source.shape[1]]
            weights, shown = torch.cat(parts, 1), "attention"
        elif seen["cross_attention"]:
            layers = seen["cross_attention"]
            layer = max(0, len(layers) - 2)  # Garg et al. 2019: the last layer but one aligns best
            weights = layers[layer].mean(1)
            shown = f"decoder, layer {layer + 1} of {len(layers)}, mean of {layers[layer].shape[1]} heads"
        else:
            raise ConfigError(
                "this model has no attention, so it has no alignment to show; "
                "leave that out, or train one whose decoder has attention"
            )
        rows = len(target) + 1
        return Alignment(weights[0, :rows].float().cpu().numpy(), list(source), [*target, EOS], shown)

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _window(self, lines: list[str], chance: torch.Generator) -> list[list[Translation] | Failure]:
        nothing = [Translation("", 0.0, 0.0, [])] * self.decoding.nbest
        results: list[list[Translation] | Failure] = [nothing for _ in lines]
        sources: dict[int, list[int]] = {}
        for number, source in enumerate(each(lines, self.source.encode_batch)):
            if isinstance(source, WeftError):
                results[number] = source
            elif source:
                sources[number] = source
        order = sorted(sources, key=lambda n: -len(sources[n]))
        for at in range(0, len(order), self.decoding.batch_rows):
            numbers = order[at : at + self.decoding.batch_rows]
            found = each(numbers, lambda part: self._batch(part, sources, lines, chance))
            for number, one in zip(numbers, found, strict=True):
                results[number] = one
        return results

    def _batch(
        self,
        numbers: Sequence[int],
        sources: Mapping[int, list[int]],
        lines: Sequence[str],
        chance: torch.Generator,
    ) -> Iterator[list[Translation]]:
        """The n best translations of the lines of these numbers."""
        found = self.search([sources[n] for n in numbers], chance=chance)
        for row, texts in enumerate(to_lists(found, EOS)):
            target = self.target.extended(self.source.copyable(lines[numbers[row]]))
            yield [
                Translation(
                    target.decode(tokens), float(found.score[row, k]), float(found.logp[row, k]), tokens
                )
                for k, tokens in enumerate(texts)
            ]

    def search(
        self,
        sources: Sequence[Sequence[int]],
        trace: Trace | None = None,
        chance: torch.Generator | None = None,
    ) -> Hypotheses:
        """Token sequences for a batch of sources, none of them empty.

        Args:
            sources: tokens.
            trace: records a beam search.
            chance: of sampling; begins with the seed unless given.
        """
        tokens, mask = pad([list(source) for source in sources])
        return self._searching(tokens.to(self._device), mask.to(self._device), trace, chance)


def answers(translator: Translator, source: Path | BinaryIO, options: Mapping[str, Any]) -> Iterator[Answer]:
    """What `weft predict` writes: a translation a line, or the n best ones, each on its own line."""
    typed = not isinstance(source, Path) and source.isatty()
    count = translator.decoding.nbest
    attempts = translator.attempts(read_lines(source), window=1 if typed else WINDOW)
    for number, (line, found) in enumerate(attempts, 1):
        if isinstance(found, WeftError):
            yield unanswered(place(source, number), found, count)
            continue
        yield Answer(written(found, count, bool(options.get("scores"))), (line, found[0]))


def written(found: Sequence[Any], count: int, scores: bool) -> str:
    """The n best texts, each on its own line, with its score and a tab before it where wanted."""
    filled = [*found, *[NOTHING] * (count - len(found))]
    return "\n".join(f"{one.score:.4f}\t{one.text}" if scores else one.text for one in filled)
