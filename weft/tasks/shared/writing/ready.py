"""Sequence pairs, made ready: vocabularies, and the pairs while a model is trained on them.

Read next: translator.py; ../../translate/ready.py, which adds the scores.
"""

import random
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import nn

from weft.data.batching import Batches
from weft.data.joined import Joined
from weft.data.mixture import Mixture
from weft.data.parallel import complete
from weft.data.shortlist import Shortlist
from weft.errors import DataError
from weft.metrics.bleu import Bleu
from weft.metrics.compared import of_lines
from weft.models import Generator
from weft.tasks.exported import SCORED, SEED, Exported, Score
from weft.tasks.inspection import Examples, Inspected
from weft.tasks.predictor import Predictor
from weft.tasks.shared.writing.augmented import AugmentedPairs
from weft.tasks.shared.writing.batch import PairBatch, collate_pairs
from weft.tasks.shared.writing.data import PairData
from weft.tasks.shared.writing.decoding import Decoding
from weft.tasks.shared.writing.evaluation import loss_of_fitting
from weft.tasks.shared.writing.kept import written
from weft.tasks.shared.writing.members import joined, pieces
from weft.tasks.shared.writing.prepared import Vocabularies, shortlist
from weft.tasks.shared.writing.reading import encode_pairs
from weft.tasks.shared.writing.scoring import GivenScores, perplexity, score_file
from weft.tasks.shared.writing.translator import Translator
from weft.tasks.task import Pipeline, Progress, Split, Training, named_rows
from weft.tasks.validation import Sample, Validation, samples_of
from weft.text.vocabulary import EOS, Vocabulary

if TYPE_CHECKING:
    from weft.tasks.shared.writing.task import PairTask


class Pairs(NamedTuple):
    """Text on two sides, line by line."""

    sources: Sequence[str]
    references: Sequence[str]


class PairTraining(Training):
    """The training pairs.

    Args:
        data: the recipe's section.
        known: the vocabularies.
        store: tokens of all training texts.
        valid: the validation pairs, each with text on both sides.
        scored: adds the scores of greedy outputs on them.
    """

    def __init__(
        self,
        data: PairData,
        known: Vocabularies,
        store: Joined,
        valid: Pairs,
        scored: Callable[[Validation], Validation],
    ) -> None:
        self._data = data
        self._known = known
        self._store = store
        self._valid = valid
        self._tokens = encode_pairs(known.reading, known.target, *valid)
        self._scored = scored
        longest = data.cut_source or data.max_length, data.max_length
        self._pairs = AugmentedPairs(data.vocabulary, data.augment, known.source, known.target, longest)

    def plan(self, seed: int) -> Batches | Mixture:
        """Batches of the training pairs; several texts are mixed by weight and temperature."""
        tokens, rows = self._data.batch_tokens, self._data.batch_rows or None
        if not self._data.mixed:
            return Batches(self._store.lengths[0], max_tokens=tokens, max_rows=rows, seed=seed)
        return Mixture(
            self._store.lengths,
            temperature=self._data.temperature,
            weights=[1.0, *self._data.mixed.values()],
            max_tokens=tokens,
            max_rows=rows,
            seed=seed,
        )

    def collate(self, numbers: np.ndarray) -> PairBatch:
        """Training pairs by number."""
        return self._pairs.collate([self._store[int(number)] for number in numbers])

    def validate(self, model: nn.Module) -> Validation:
        """Loss and perplexity over all validation pairs; the scores of greedy outputs."""
        assert isinstance(model, Generator)
        loss, notes = loss_of_fitting(model, self._tokens.source, self._tokens.target)
        rows = self._data.validate_rows or len(self._valid.sources)
        sources, references = self._valid.sources[:rows], self._valid.references[:rows]
        known = self._known
        translator = Translator(model, known.reading, known.target, Decoding(search="greedy"))
        outputs = written(translator, sources, range(len(sources)), "validation").texts
        full = [n for n, source in enumerate(sources) if source.strip()]
        shown = [full[number] for number in samples_of(len(full))]
        samples = [Sample(sources[n], references[n], outputs[n]) for n in shown]
        losses = {"loss": loss, "perplexity": perplexity(loss)}
        compared = [of_lines(outputs, references, sources)]
        return self._scored(Validation(losses, samples, compared, notes))


def _silent(what: str, done: float, total: float | None) -> None:
    """Shows no progress."""


class PairPipeline(Pipeline, ABC):
    """The vocabularies of a run that was trained on sequence pairs.

    Args:
        task: the recipe.
        known: the vocabularies.
        training: the pairs; None unless prepared for training.
    """

    task: "PairTask"

    def __init__(self, task: "PairTask", known: Vocabularies, training: PairTraining | None = None) -> None:
        self.task = task
        self.decoding = task.decoding
        self.training = training
        self._made: Shortlist | None = None
        self.source, self.target, self.reading, _ = self._known = known

    def model(self) -> Generator:
        """A new model for these vocabularies."""
        one_vocabulary = self.source is self.target
        return self.task.model_config.build(len(self.source), len(self.target), one_vocabulary=one_vocabulary)

    def rows(self) -> Mapping[str, Sequence[str]]:
        return named_rows(self.target, self.source)

    def writes(self) -> Vocabulary:
        return self.target

    def common(self) -> Mapping[str, Any]:
        known = {"source vocabulary": pieces(self.source), "target vocabulary": pieces(self.target)}
        return {**known, "reading": str(self.reading)}

    def predictor(self, model: nn.Module, options: Mapping[str, Any] = {}) -> Predictor[str]:
        """The trained model; `predict(text)` returns a text."""
        return self.searcher(model, options)

    def searcher(self, model: nn.Module, options: Mapping[str, Any] = {}) -> Translator:
        """The trained model, for one sentence or text at a time."""
        assert isinstance(model, Generator)
        others = [joined(member, self) for member in options.get("ensemble", ())]
        decoding, scores = self.decoding.with_options(options), bool(options.get("scores"))
        short = self._shortlist(options.get("progress", _silent)) if decoding.shortlist else None
        return Translator(
            model, self.reading, self.target, decoding, others=others, scores=scores, shortlist=short
        )

    def directions(self) -> Sequence[tuple[str, str]]:
        """None, unless it translates; see abilities.Rewrites."""
        return ()

    def translator(self, model: Generator, decoding: Decoding, target: str = "") -> Translator:
        return Translator(
            model,
            self.reading,
            self.target,
            decoding,
            shortlist=self._shortlist() if decoding.shortlist else None,
        )

    def directed(self, text: str, target: str) -> str:
        return text

    def typed(self, sample: str) -> str:
        return sample

    def inspected(
        self, model: nn.Module, text: str | None, examples: Examples, options: Mapping[str, Any] = {}
    ) -> Inspected:
        from weft.tasks.shared.writing.inspected import of

        return of(self.searcher(model), examples.middle() if text is None else text, self.task.data)

    def exported(self, model: nn.Module) -> Exported:
        from weft.tasks.shared.writing.exported import rewriting

        form = rewriting(model, self.source, self.target, self.decoding, cut=self.reading.cut)
        return form._replace(examples=self.examples, scored=self.scored_examples)

    def examples(self, count: int) -> Sequence[str]:
        """Sources of the validation data that are not empty, or random pieces where the data is missing.

        Args:
            count: number of texts; fewer if the data has fewer.
        """
        with suppress(DataError):
            found = [text for text in self.pairs("valid", None).sources if text.strip()]
            if found:
                return found[:count]
        draw = random.Random(SEED)
        numbers = range(EOS + 1, len(self.source))
        return [self.source.decode(draw.choices(numbers, k=draw.randint(3, 20))) for _ in range(count)]

    def scored_examples(self) -> tuple[Sequence[str], Score | None]:
        """Validation sources, and BLEU of their translations; no score where the data is missing."""
        try:
            pairs = self.pairs("valid", None)
        except DataError:
            return self.examples(SCORED), None
        full = [n for n, source in enumerate(pairs.sources) if source.strip()][:SCORED]
        references = [pairs.references[n] for n in full]
        sources = [pairs.sources[n] for n in full]
        return sources, lambda answers: ("BLEU", Bleu().score(answers, references).value)

    def pairs(self, split: Split, data: Path | None) -> Pairs:
        """The pairs to score: a split of the recipe, or the user's files (a prefix or a .tsv)."""
        found = list(self.task.data.open(split) if data is None else self.task.data.at(data))
        return Pairs([pair.source for pair in found], [pair.target for pair in found])

    def _shortlist(self, progress: Progress = _silent) -> Shortlist:
        """For searches that ask for it."""
        if self._made is None:
            self._made = shortlist(self._known, self.task.data, progress)
        return self._made

    def title(self, split: Split, data: Path | None, pairs: Pairs) -> str:
        """The data, and how many of its sources are cut, as a title."""
        named = self.task.data.describe(split, data)
        number = self.reading.num_cut([pairs.sources[n] for n in complete(*pairs)])
        return f"{named}, {number:,} cut after {self.reading.cut} tokens" if number else named

    def given_scores(self, model: nn.Module, pairs: Pairs, options: Mapping[str, Any]) -> GivenScores:
        """The log-probability of each line of the file that the option `score` names."""
        assert isinstance(model, Generator)
        read = self.reading.encode_batch(pairs.sources)
        return score_file(
            model,
            len(read),
            lambda texts: encode_pairs(self.reading, self.target, pairs.sources, texts).target,
            lambda numbers, rows: collate_pairs([read[n] for n in numbers], rows),
            options,
            kept=complete(*pairs),
        )
