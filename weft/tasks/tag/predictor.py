"""A trained tagger: sentences in, a tag for each word out, in order.

Read next: ../../data/conllu.py, the format of both.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import torch

from weft.data.batching import length_groups
from weft.data.conllu import Column, Sentence, each_sentence
from weft.errors import DataError
from weft.models import Predictor
from weft.tasks import predictor
from weft.tasks.each import Failure, windows
from weft.tasks.labels.calibration import calibrated
from weft.tasks.lexicon import Lexicon
from weft.tasks.predictor import Answer, Given, Json, Place, Raw, Unanswered

WINDOW = 1024  # sentences that are sorted by length together
TOKENS = 4096  # words of a batch, padding counted
NOTHING = np.empty((0, 0), np.float32)


class Tagged(NamedTuple):
    """The tags of one sentence."""

    tags: list[str]
    probs: list[float]  # of these tags; empty unless asked for
    every: np.ndarray  # [T, C] of all tags, or empty too


class TaggedSentence(Answer):
    """A sentence with its tags, in the format of the input.

    Args:
        sentence: its words and lines.
        column: of CoNLL-U that takes the tags.
        tagged: the tags.
    """

    def __init__(self, sentence: Sentence, column: Column, tagged: Tagged) -> None:
        self._sentence = sentence
        self._column = column
        self._tagged = tagged

    def text(self) -> str:
        """CoNLL-U with the predicted column replaced, or word TAB tag; then an empty line."""
        lines = self._sentence.tagged(self._tagged.tags, self._column)
        for row, prob in zip(self._sentence.rows, self._tagged.probs, strict=False):
            lines[row] = _with_prob(lines[row], prob)
        return "\n".join(lines) + "\n"

    def json(self) -> Json:
        """A list of words, each with its tag and (with scores) the probability of that tag."""
        words = zip(self._sentence.forms, self._tagged.tags, strict=True)
        found: list[dict[str, Json]] = [{"word": word, "tag": tag} for word, tag in words]
        for one, prob in zip(found, self._tagged.probs, strict=False):
            one["prob"] = prob
        return list(found)


class Untagged(Unanswered):
    """A sentence without tags: each word keeps its line, with _ for its tag."""

    def __init__(self, wrong: str, sentence: Sentence, column: Column) -> None:
        super().__init__(wrong)
        self._lines = sentence.tagged(["_"] * len(sentence.forms), column)

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


class Tagger(predictor.Predictor[Sentence]):
    """Tags sentences with a model and its lexicon.

    Args:
        model: in evaluation mode, on its device.
        lexicon: the model's.
        column: of CoNLL-U that is predicted.
        probs: whether answers contain the probability of each tag.
        temperature: of the probabilities; see ../labels/calibration.py.
    """

    linewise = False
    window = 512

    def __init__(
        self,
        model: Predictor,
        lexicon: Lexicon,
        column: Column = "upos",
        *,
        probs: bool = False,
        temperature: float = 1.0,
    ) -> None:
        self.model = model
        self.lexicon = lexicon
        self.temperature = temperature
        self._column = column
        self._probs = probs

    def parse(self, raw: Raw, place: Place) -> Sentence:
        """Words with spaces between them."""
        words = str(raw).split()
        return Sentence(words, place.line, list(range(len(words))), words, None)

    def inputs(self, source: Path | BinaryIO) -> Iterator[Given[Sentence]]:
        """CoNLL-U; a word on each line; or a sentence on each line."""
        name = predictor.name_of(source)
        for one in each_sentence(source, column=self._column):
            place = Place(name, (one.line or 0) if isinstance(one, DataError) else one.first)
            yield self.given(one, place) if isinstance(one, DataError) else Given(place, one)

    def answers(self, inputs: Sequence[Sentence]) -> Iterator[Answer]:
        found = self.tag([one.forms for one in inputs], probs=self._probs)
        for sentence, tagged in zip(inputs, found, strict=True):
            yield TaggedSentence(sentence, self._column, tagged)

    def unanswered(self, given: Given[Sentence], why: Failure) -> Answer:
        if isinstance(given.value, Sentence):
            return Untagged(given.place.why(why), given.value, self._column)
        return super().unanswered(given, why)

    def predict(self, raw: str | Sequence[str]) -> list[tuple[str, str]]:
        """The words of one sentence with their tags; it is given as words, or as a text with spaces."""
        words = raw.split() if isinstance(raw, str) else list(raw)
        return list(zip(words, next(self.tag([words])).tags, strict=True))

    def tag(self, sentences: Iterable[Sequence[str]], *, probs: bool = False) -> Iterator[Tagged]:
        """The tags of each sentence, in order; one without words has none.

        Args:
            sentences: of words; read WINDOW at a time.
            probs: also the probabilities of the tags of each word, given the whole sentence.
        """
        sentences = iter(sentences)
        while window := list(islice(sentences, WINDOW)):
            yield from self._window(window, probs)

    def attempts_at(
        self, sentences: Iterable[Sequence[str]], *, probs: bool = False
    ) -> Iterator[Tagged | Failure]:
        """Like `tag`, with an error instead of the tags of a sentence that the model cannot read."""
        return windows(sentences, partial(self.tag, probs=probs), WINDOW)

    def _window(self, window: list[Sequence[str]], probs: bool) -> list[Tagged]:
        results = [Tagged([], [], NOTHING) for _ in window]
        filled = [number for number, words in enumerate(window) if words]
        for group in length_groups([len(window[number]) for number in filled], TOKENS):
            numbers = [filled[n] for n in group]
            for number, found in zip(numbers, self._batch([window[n] for n in numbers], probs), strict=True):
                results[number] = found
        return results

    def _batch(self, sentences: list[Sequence[str]], probs: bool) -> Iterator[Tagged]:
        device = next(self.model.parameters()).device
        spelled, mask = self.lexicon.read(sentences)
        with torch.inference_mode():
            h, mask = self.model.features(spelled.to(device), mask.to(device))
            best = self.model.head.best(h, mask).cpu()
            logps = self.model.head.marginals(h, mask).float().cpu() if probs else None
            for row, words in enumerate(sentences):
                numbers = best[row, : len(words)]
                sure, every = [], NOTHING
                if logps is not None:
                    logp = calibrated(logps[row, : len(words)], self.temperature)
                    sure = [math.exp(p) for p in logp.gather(1, numbers[:, None])[:, 0].tolist()]
                    every = logp.exp().numpy()
                yield Tagged([self.lexicon.tags[number] for number in numbers.tolist()], sure, every)


def _with_prob(line: str, prob: float) -> str:
    cells = line.split("\t")
    if len(cells) <= 2:
        return f"{line}\t{prob:.4f}"
    cells[-1] = f"Prob={prob:.4f}" if cells[-1] == "_" else f"{cells[-1]}|Prob={prob:.4f}"
    return "\t".join(cells)
