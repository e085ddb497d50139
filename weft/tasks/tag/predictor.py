"""A trained tagger at work: sentences in, a tag for each word out, in order."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import torch

from weft.models import Predictor
from weft.tasks.shared.lexicon import Lexicon

WINDOW = 1024  # sentences that are sorted by length together
TOKENS = 4096  # words of a batch, padding counted


class Tagged(NamedTuple):
    """The tags of one sentence."""

    tags: list[str]
    probs: list[float]  # of these tags; empty unless asked for


class Tagger:
    """Tags sentences with a model and its lexicon.

    Args:
        model: in evaluation mode, on its device.
        lexicon: the model's.
    """

    def __init__(self, model: Predictor, lexicon: Lexicon) -> None:
        self.model = model
        self.lexicon = lexicon

    def predict(self, text: str | Sequence[str]) -> list[tuple[str, str]]:
        """One sentence: its words, or a text with spaces between them, to words with tags."""
        words = text.split() if isinstance(text, str) else list(text)
        return list(zip(words, next(self.tag([words])).tags, strict=True))

    def tag(self, sentences: Iterable[Sequence[str]], *, probs: bool = False) -> Iterator[Tagged]:
        """The tags of each sentence, in order; one without words has none.

        Args:
            sentences: words; read WINDOW at a time.
            probs: also how probable each tag is, given the whole sentence.
        """
        sentences = iter(sentences)
        while window := list(islice(sentences, WINDOW)):
            yield from self._window(window, probs)

    def _window(self, window: list[Sequence[str]], probs: bool) -> list[Tagged]:
        results = [Tagged([], []) for _ in window]
        order = sorted((n for n, words in enumerate(window) if words), key=lambda n: len(window[n]))
        batch: list[int] = []
        for place, number in enumerate(order):
            batch.append(number)
            last = place + 1 == len(order)
            if last or len(window[order[place + 1]]) * (len(batch) + 1) > TOKENS:
                for each, found in zip(batch, self._batch([window[n] for n in batch], probs), strict=True):
                    results[each] = found
                batch = []
        return results

    def _batch(self, sentences: list[Sequence[str]], probs: bool) -> Iterator[Tagged]:
        device = next(self.model.parameters()).device
        spelled, mask = self.lexicon.read(sentences)
        with torch.inference_mode():
            h, mask = self.model.features(spelled.to(device), mask.to(device))
            best = self.model.head.best(h, mask).cpu()
            for row, words in enumerate(sentences):
                numbers = best[row, : len(words)]
                sure: list[float] = []
                if probs:
                    logp = self.model.head(h[row : row + 1, : len(words)])[0].float().cpu()
                    sure = [math.exp(p) for p in logp.gather(1, numbers[:, None])[:, 0].tolist()]
                yield Tagged([self.lexicon.tags[number] for number in numbers.tolist()], sure)
