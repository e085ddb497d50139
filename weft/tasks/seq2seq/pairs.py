"""Tasks on sequence pairs: a text is written for a source text, such as a translation or a summary.

Vocabularies are learnt on the training texts when training begins; tokens are kept in a memory-mapped store.
Read next: data.py, model.py, reading.py; translator.py.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from torch import nn

from weft.data.batching import Batches
from weft.data.joined import JoinedStores
from weft.data.mixture import Mixture
from weft.data.parallel import complete
from weft.data.shortlist import Shortlist
from weft.errors import ConfigError, DataError
from weft.metrics.bleu import Bleu
from weft.metrics.compared import of_lines
from weft.models import Generator
from weft.tasks.abilities import PairDirection
from weft.tasks.evaluation import Sample, Validation, samples_of
from weft.tasks.export import SCORED, SEED, ModelExport, Score
from weft.tasks.inspection import Inspection
from weft.tasks.predictor import Predictor
from weft.tasks.seq2seq.base import Seq2SeqPipeline, Seq2SeqTask, pieces
from weft.tasks.seq2seq.batch import AugmentedPairs, PairBatch, collate_pairs
from weft.tasks.seq2seq.data import PairData, data_in
from weft.tasks.seq2seq.decoding import (
    Decoding,
    DecodingSettings,
    GenerationEvaluationSettings,
    TextEvaluationSettings,
    TextGenerationSettings,
    decoding_space,
    search_space,
)
from weft.tasks.seq2seq.evaluation import loss_of_fitting, written
from weft.tasks.seq2seq.model import PairModel
from weft.tasks.seq2seq.reading import (
    Vocabularies,
    encode_pairs,
    learn,
    shortlist,
    stored,
    vocabularies,
    vocabulary_paths,
)
from weft.tasks.seq2seq.scoring import GivenScores, perplexity, score_file
from weft.tasks.seq2seq.translator import Translator
from weft.tasks.space import Recipe, Space
from weft.tasks.task import (
    EvaluationSettings,
    InspectionSettings,
    PredictionSettings,
    Progress,
    Split,
    Training,
    named_rows,
    silent,
)
from weft.text.vocabulary import EOS


class Pairs(NamedTuple):
    """Text on two sides, line by line."""

    sources: Sequence[str]
    references: Sequence[str]


def read_pairs(found: Iterable[Any]) -> Pairs:
    """The text on both sides of (number, source, target)."""
    rows = list(found)
    return Pairs([row.source for row in rows], [row.target for row in rows])


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
        store: JoinedStores,
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


class PairPipeline(Seq2SeqPipeline[Pairs], ABC):
    """The vocabularies of a run that was trained on sequence pairs.

    Args:
        task: the recipe.
        known: the vocabularies.
    """

    task: "PairTask"

    def __init__(self, task: "PairTask", known: Vocabularies) -> None:
        super().__init__(task, known.target)
        self.source = known.source
        self.reading = known.reading
        self.known = known
        self._made: Shortlist | None = None

    def model(self) -> Generator:
        one_vocabulary = self.source is self.target
        return self.task.model_config.build(len(self.source), len(self.target), one_vocabulary=one_vocabulary)

    def rows(self) -> Mapping[str, Sequence[str]]:
        return named_rows(self.target, self.source)

    def common(self) -> Mapping[str, object]:
        known = {"source vocabulary": pieces(self.source), "target vocabulary": pieces(self.target)}
        return {**known, "reading": str(self.reading)}

    def predictor(self, model: nn.Module, settings: PredictionSettings | None = None) -> Predictor[str]:
        """The trained model; `predict(text)` returns a text."""
        asked = TextGenerationSettings.of(settings)
        return self.searcher(model, asked, scores=asked.scores)

    def searcher(
        self, model: nn.Module, settings: DecodingSettings | None = None, *, scores: bool = False
    ) -> Translator:
        """The trained model, for one sentence or text at a time."""
        assert isinstance(model, Generator)
        asked = DecodingSettings.of(settings)
        others, decoding = self.members(asked), self.decoding.with_settings(asked)
        short = self._shortlist(asked.progress) if decoding.shortlist else None
        return Translator(
            model,
            self.reading,
            self.target,
            decoding,
            others=others,
            scores=scores,
            shortlist=short,
            keeps=bool(self.directions()),
            column=self.task.data.source,
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
            keeps=bool(self.directions()),
        )

    def with_direction(self, text: str, target: str) -> str:
        return text

    def without_direction(self, sample: str) -> str:
        return sample

    def inspection(self, model: nn.Module, settings: InspectionSettings) -> Inspection:
        from weft.tasks.seq2seq.inspection import inspect_translation

        return inspect_translation(self.searcher(model), settings.input(), self.task.data)

    def model_export(self, model: nn.Module) -> ModelExport:
        from weft.tasks.seq2seq.graphs import export_rewriter

        form = export_rewriter(model, self.source, self.target, self.decoding, cut=self.reading.cut)
        return form._replace(examples=self.examples, scored=self.scored_examples)

    def examples(self, count: int) -> Sequence[str]:
        """Sources of the validation data that are not empty, or random pieces where the data is missing.

        Args:
            count: number of texts; fewer if the data has fewer.
        """
        with suppress(DataError):
            found = [text for text in self.examples_of("valid", None).sources if text.strip()]
            if found:
                return found[:count]
        draw = random.Random(SEED)
        numbers = range(EOS + 1, len(self.source))
        return [self.source.decode(draw.choices(numbers, k=draw.randint(3, 20))) for _ in range(count)]

    def scored_examples(self) -> tuple[Sequence[str], Score | None]:
        """Validation sources, and BLEU of their translations; no score where the data is missing."""
        try:
            pairs = self.examples_of("valid", None)
        except DataError:
            return self.examples(SCORED), None
        full = [n for n, source in enumerate(pairs.sources) if source.strip()][:SCORED]
        references = [pairs.references[n] for n in full]
        sources = [pairs.sources[n] for n in full]
        return sources, lambda answers: ("BLEU", Bleu().score(answers, references).value)

    def examples_of(self, split: Split, data: Path | None) -> Pairs:
        """The pairs of a split, or of the user's files (a prefix or a .tsv)."""
        return read_pairs(self.task.data.open(split) if data is None else self.task.data.at(data))

    def _shortlist(self, progress: Progress = silent) -> Shortlist:
        """For searches that ask for it."""
        if self._made is None:
            self._made = shortlist(self.known, self.task.data, progress)
        return self._made

    def title(self, split: Split, data: Path | None, examples: Pairs) -> str:
        """The data, and how many of its sources are cut."""
        named = self.task.data.describe(split, data)
        number = self.reading.num_cut([examples.sources[n] for n in complete(*examples)])
        return f"{named}, {number:,} cut after {self.reading.cut} tokens" if number else named

    def given_scores(
        self, model: Generator, examples: Pairs, settings: GenerationEvaluationSettings
    ) -> GivenScores:
        read = self.reading.encode_batch(examples.sources)
        return score_file(
            model,
            len(read),
            lambda texts: encode_pairs(self.reading, self.target, examples.sources, texts).target,
            lambda numbers, rows: collate_pairs([read[n] for n in numbers], rows),
            settings,
            kept=complete(*examples),
        )


class PairTask(Seq2SeqTask[list[Any]], ABC):
    """Trains a model on sequence pairs to write the target for a source.

    Args:
        data: the pairs.
        model: encoder and decoder.
        decoding: search settings for the trained model; validation is greedy.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": PairData, "model": PairModel, "decoding": Decoding}
    prediction_settings: ClassVar[type[PredictionSettings]] = TextGenerationSettings
    evaluation_settings: ClassVar[type[EvaluationSettings]] = TextEvaluationSettings
    data: PairData
    model_config: PairModel

    def __init__(self, *, data: PairData, model: PairModel, decoding: Decoding) -> None:
        if model.copies and (data.augment.noisy or data.augment.concatenate):
            raise ConfigError(
                "data.augment: a pointer copies source words by position, which augmentation changes; "
                "take another model.decoder, or leave it out"
            )
        if model.copies and decoding.shortlist:
            raise ConfigError(
                "decoding.shortlist: not supported by a pointer, which also copies source words; leave it out"
            )
        if decoding.terms == "annotate" and data.glossary is None:
            raise ConfigError(
                "decoding.terms: annotate needs a model that was trained on annotated sources; "
                "train with data.glossary=FILE, or leave terms out"
            )
        super().__init__(data=data, model=model, decoding=decoding)

    @abstractmethod
    def with_scores(self, found: Validation) -> Validation:
        """A validation of greedy outputs with the task's own scores."""

    @abstractmethod
    def open(self, run: Path) -> PairPipeline: ...

    @classmethod
    def search_space(cls, recipe: Recipe) -> Space:
        return search_space(recipe)

    @classmethod
    def decoding_space(cls, recipe: Recipe) -> Space:
        return decoding_space(recipe)

    def small_model(self) -> Generator:
        return self.model_config.build(19, 19, one_vocabulary=self.data.vocabulary.shared)

    def small_batch(self, model: Generator) -> PairBatch:
        return collate_pairs([[5, 6, 7], [8]], [[9, 10], [11, 12, 13]])

    def read(self, progress: Progress) -> list[Any]:
        texts = self.data.texts()
        for note in [note for text in texts for note in text.notes]:
            progress(note, 0, 0)
        return texts

    def learn(self, corpus: list[Any], run: Path, progress: Progress) -> None:
        learn(self.data, corpus, run, progress)

    def saved(self, run: Path) -> Path:
        return vocabulary_paths(run, self.data)[0]

    def vocabularies(self, run: Path) -> Vocabularies:
        """The vocabularies that a run keeps."""
        return vocabularies(run, self.data, copies=self.model_config.copies)

    def training(
        self, corpus: list[Any], pipeline: PairPipeline, run: Path, progress: Progress
    ) -> PairTraining:
        """The pairs, in a token store that is opened or built."""
        known = pipeline.known
        store = JoinedStores(
            [stored(text, self.data, known.reading, known.target, known.run, progress) for text in corpus]
        )
        if self.decoding.shortlist:
            shortlist(known, self.data, progress)
        training = PairTraining(
            self.data, known, store, Pairs(*self.data.complete("valid")), self.with_scores
        )
        plan = training.plan(0)
        if isinstance(plan, Mixture):
            progress(plan.summary([text.name for text in corpus]), 0, 0)
        return training

    def corpora(self) -> Sequence[PairDirection]:
        return [PairDirection("", self.data)]

    def data_in(self, folder: Path, train: str, *, tested: bool) -> Mapping[str, Any]:
        return {**data_in(folder, train, tested=tested), "mixed": {}}
