"""The bases of tasks that write a sequence for a source: text, picture or sound in, text or picture out.

A task says how its data is read, what is learnt from it and how a model is built; the rest stands here once.
Below are the bases for text on both sides, such as a translation or a summary: vocabularies are learnt on the
training texts when training begins, and tokens are kept in a memory-mapped store.
Read next: sections.py, encoding.py; translator.py; ../caption/task.py, for pictures.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from weft.data.batching import Batches
from weft.data.mixture import Mixture
from weft.data.parallel import ParallelText, complete
from weft.data.shortlist import Shortlist
from weft.data.store import JoinedStores, MemoryStore
from weft.errors import ConfigError, DataError
from weft.metrics.bleu import Bleu
from weft.metrics.scored import of_lines
from weft.models import Generator
from weft.nn.heads.head import Loss
from weft.search.offered import Decoding
from weft.tasks.abilities import PairDirection
from weft.tasks.evaluation import Evaluation, Sample, Validation, perplexity, samples_of
from weft.tasks.export import SCORED, ModelExport, Score, random_texts, some_of
from weft.tasks.inspection import Inspection
from weft.tasks.predictor import Json, Predictor
from weft.tasks.reused import ReusedEncoder
from weft.tasks.seq2seq.encoding import (
    AugmentedPairs,
    PairBatch,
    Vocabularies,
    collate_pairs,
    encode_pairs,
    learn,
    shortlist,
    stored,
    vocabularies,
    vocabulary_paths,
)
from weft.tasks.seq2seq.evaluation import GivenScores, loss_of_pairs, score_file, written
from weft.tasks.seq2seq.glossary import check_domain, read_glossary
from weft.tasks.seq2seq.sections import (
    DecodingSettings,
    GenerationEvaluationSettings,
    GenerationSettings,
    Keeps,
    PairData,
    PairModel,
    TextEvaluationSettings,
    TextGenerationSettings,
    data_in,
)
from weft.tasks.seq2seq.translator import Translator, known_languages
from weft.tasks.space import Range, Recipe, Space, usual
from weft.tasks.task import (
    EvaluationSettings,
    InspectionSettings,
    OtherRun,
    Pipeline,
    PredictionSettings,
    Progress,
    Scoring,
    Split,
    Task,
    Training,
    named_rows,
    silent,
)
from weft.text.vocabulary import Vocabulary

VOCABULARY = "tokenizer.json"
DROPOUTS = "model.encoder.dropout", "model.decoder.dropout"

Examples = TypeVar("Examples")
"""What is scored: sources with their references."""


class Seq2SeqTask(Task, ABC):
    """Trains a model to write the target for a source.

    Args:
        data: where the data is, and how it becomes batches.
        decoding: search settings for the trained model; validation is greedy unless the task says otherwise.
    """

    model_config: Any
    decoding: Decoding

    def __init__(self, *, data: Any, model: Any, decoding: Decoding) -> None:
        check_domain(decoding.domain, getattr(data, "domains", {}).values())
        self.data = data
        self.model_config = model
        self.decoding = decoding

    @abstractmethod
    def small_model(self) -> Generator:
        """A model for a made-up vocabulary, as a check that its parts fit together."""

    @abstractmethod
    def small_batch(self) -> Any:
        """A batch of two made-up examples for it."""

    def saved(self, run: Path) -> Path:
        return run / VOCABULARY

    def check_ready(self) -> None:
        if self.decoding.glossary is not None:
            read_glossary(self.decoding.glossary)
        super().check_ready()

    def rehearse(self) -> Loss:
        return self.small_model().loss(self.small_batch())


@dataclass(eq=False)
class Seq2SeqPipeline(Pipeline, ABC, Generic[Examples]):
    """What a task has learnt: at least the vocabulary of what it writes."""

    task: Any
    target: Vocabulary

    def __post_init__(self) -> None:
        self.decoding: Decoding = self.task.decoding
        self.domains: Sequence[str] = ()

    @abstractmethod
    def model(self) -> Generator: ...

    @abstractmethod
    def examples_of(self, split: Split, data: Path | None) -> Examples:
        """The examples to score: a split of the recipe, or the user's files."""

    def examples_for(self, asked: Scoring) -> Examples:
        """Those of `examples_of`; of a table, from the columns that the user names."""
        how = asked.settings
        if asked.data is None and isinstance(how, TextEvaluationSettings) and (how.source or how.target):
            raise ConfigError("--source, --target: name columns of other data; give the table with --data")
        return self.examples_of(asked.split, asked.data)

    @abstractmethod
    def scores(self, model: Generator, examples: Examples, asked: Scoring) -> Evaluation:
        """Write a target for each source, and score it beside the baselines."""

    def given_scores(
        self, model: Generator, examples: Examples, settings: GenerationEvaluationSettings
    ) -> GivenScores:
        """The log-probability of each line of the file that the setting `score` names."""
        raise ConfigError(f"--score: {self.task.about()} has no lines of text to score; leave it out")

    def rows(self) -> Mapping[str, Sequence[str]]:
        return named_rows(self.target)

    def writes(self) -> Vocabulary | None:
        return self.target

    def common(self) -> Mapping[str, object]:
        return {"vocabulary": pieces(self.target)}

    def searching(self, settings: DecodingSettings) -> dict[str, Any]:
        """How a predictor searches, as the user asks: settings, further models, whether it shows scores."""
        scores = isinstance(settings, GenerationSettings) and settings.scores
        others = [joined(member, self) for member in settings.ensemble]
        return {
            "decoding": self.decoding.with_settings(settings.searched()),
            "others": others,
            "scores": scores,
        }

    def score(self, model: Generator, asked: Scoring) -> Evaluation:
        """The scores of what the model writes; with the setting `score`, those of the lines of that file."""
        examples, how = self.examples_for(asked), asked.settings
        if isinstance(how, GenerationEvaluationSettings) and how.score is not None:
            return self.given_scores(model, examples, how)
        return self.scores(model, examples, asked)


def joined(member: OtherRun, pipeline: Pipeline) -> Generator:
    """The member's model, if it reads and writes the same under the same numbers as the first run."""
    model, own, its = member.model, pipeline.common(), member.pipeline.common()
    if not isinstance(model, Generator) or its.keys() != own.keys():
        raise ConfigError(
            f"--ensemble {member.path}: is a run of another kind of task than the first; leave it out"
        )
    for what, first in own.items():
        other = its[what]
        if other == first:
            continue
        if isinstance(first, list) and isinstance(other, list):
            raise ConfigError(
                f"--ensemble {member.path}: its {what} ({len(other):,} pieces) is not that of the "
                f"first run ({len(first):,} pieces); an ensemble needs runs trained on the same data with "
                "the same section data.vocabulary"
            )
        raise ConfigError(
            f"--ensemble {member.path}: its {what} is {other}, that of the first run {first}; an ensemble "
            "needs runs that read and write the same"
        )
    return model


def pieces(vocabulary: Vocabulary) -> list[str]:
    """Every piece in the order of its number."""
    return vocabulary.pieces(range(len(vocabulary)))


class Pairs(NamedTuple):
    """Text on two sides, line by line."""

    sources: Sequence[str]
    references: Sequence[str]


def read_pairs(found: Iterable[Any]) -> Pairs:
    """The text on both sides of (number, source, target)."""
    rows = list(found)
    return Pairs([row.source for row in rows], [row.target for row in rows])


@dataclass(eq=False)
class PairTraining(Training):
    """The training pairs."""

    data: PairData
    known: Vocabularies
    store: JoinedStores
    valid: Pairs
    scored: Callable[[Validation], Validation]

    def __post_init__(self) -> None:
        data, known = self.data, self.known
        self._tokens = encode_pairs(known.reading, known.target, *self.valid)
        longest = data.cut_source or data.max_length, data.max_length
        self._pairs = AugmentedPairs(data.vocabulary, data.augment, known.source, known.target, longest)

    def whole(self) -> "PairTraining":
        """Pairs stay out that are too long for training, or have an empty side."""
        most = self.data.cut_source or self.data.max_length, self.data.max_length
        rows = [
            pair
            for pair in zip(self._tokens.source, self._tokens.target, strict=True)
            if all(0 < len(side) <= longest for side, longest in zip(pair, most, strict=True))
        ]
        store = JoinedStores([*self.store.stores, MemoryStore(rows)])
        return PairTraining(self.data, self.known, store, self.valid, self.scored)

    def plan(self, seed: int) -> Batches | Mixture:
        """Batches of the training pairs; several texts are mixed by weight and temperature."""
        tokens, rows = self.data.batch_tokens, self.data.batch_rows or None
        if not self.data.mixed:
            lengths = self.store.lengths
            every = np.concatenate(lengths) if lengths[1:] else lengths[0]
            return Batches(every, max_tokens=tokens, max_rows=rows, seed=seed)
        return Mixture(
            self.store.lengths,
            temperature=self.data.temperature,
            weights=self.data.weights,
            max_tokens=tokens,
            max_rows=rows,
            seed=seed,
        )

    def collate(self, numbers: np.ndarray) -> PairBatch:
        return self._pairs.collate([self.store[int(number)] for number in numbers])

    def validate(self, model: Generator) -> Validation:
        loss, notes = loss_of_pairs(model, self._tokens.source, self._tokens.target)
        rows = self.data.validate_rows or len(self.valid.sources)
        sources, references = self.valid.sources[:rows], self.valid.references[:rows]
        known = self.known
        translator = Translator(model, known.reading, known.target, Decoding(search="greedy"))
        outputs = written(translator, sources, range(len(sources)), "validation").texts
        full = [n for n, source in enumerate(sources) if source.strip()]
        shown = [full[number] for number in samples_of(len(full))]
        samples = [Sample(sources[n], references[n], outputs[n]) for n in shown]
        losses = {"loss": loss, "perplexity": perplexity(loss)}
        compared = [of_lines(outputs, references, sources)]
        return self.scored(Validation(losses, samples, compared, notes))


class PairPipeline(Seq2SeqPipeline[Pairs], ABC):
    """The vocabularies of a run that was trained on sequence pairs."""

    task: "PairTask"

    def __init__(self, task: "PairTask", known: Vocabularies) -> None:
        super().__init__(task, known.target)
        self.domains = [*task.data.domains.values()]
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

    def predictor(self, model: Generator, settings: PredictionSettings | None = None) -> Predictor[str]:
        """The trained model; `predict(text)` returns a text."""
        return self.searcher(model, TextGenerationSettings.of(settings))

    def searcher(self, model: Generator, settings: DecodingSettings | None = None) -> Translator:
        """The trained model, for one sentence or text at a time."""
        asked = DecodingSettings.of(settings)
        return self.translator(model, progress=asked.progress, **self.searching(asked))

    def directions(self) -> Sequence[tuple[str, str]]:
        """None, unless it translates; see abilities.Rewrites."""
        return ()

    @property
    def _keeps(self) -> Keeps:
        return "parts" if self.directions() else "texts"

    def translator(
        self,
        model: Generator,
        decoding: Decoding,
        target: str = "",
        *,
        others: Sequence[Generator] = (),
        scores: bool = False,
        progress: Progress = silent,
    ) -> Translator:
        """A translator with these settings; see abilities.Rewrites."""
        if decoding.shortlist and self._made is None:
            self._made = shortlist(self.known, self.task.data, progress)
        return Translator(
            model,
            self.reading,
            self.target,
            decoding,
            others=others,
            scores=scores,
            shortlist=self._made,
            keeps=self._keeps,
            columns=(self.task.data.source,),
            beside=(self.task.data.target,),
            languages=known_languages(self.task.data.source, self.task.data.target),
            longest=self.task.data.max_length if self._keeps == "parts" else None,
            domains=self.domains,
        )

    def with_direction(self, text: str, target: str) -> str:
        return text

    def without_direction(self, sample: str) -> str:
        return sample

    def inspection(self, model: Generator, settings: InspectionSettings) -> Inspection:
        from weft.tasks.seq2seq.inspection import inspect_translation

        return inspect_translation(self.searcher(model), settings.input(), self.task.data)

    def model_export(self, model: Generator) -> ModelExport:
        from weft.tasks.seq2seq.graphs import export_rewriter

        cut, keeps = self.reading.cut, self._keeps
        form = export_rewriter(model, self.source, self.target, self.decoding, cut=cut, keeps=keeps)
        columns: Json = [self.task.data.source]
        settings = {**form.settings, "columns": columns}
        return form._replace(settings=settings, examples=self.examples, scored=self.scored_examples)

    def examples(self, count: int) -> Sequence[str]:
        """Sources of the validation data that are not empty, or random pieces where the data is missing."""

        def valid() -> Iterable[str]:
            return (text for text in self.examples_of("valid", None).sources if text.strip())

        return some_of(valid, count, lambda: random_texts(self.source, count, 3))

    def scored_examples(self) -> tuple[Sequence[str], Score | None]:
        """Validation sources, and BLEU of their translations; no score where the data is missing."""
        try:
            pairs = self.examples_of("valid", None)
        except DataError:
            return self.examples(SCORED), None
        full = [n for n, source in enumerate(pairs.sources) if source.strip()][:SCORED]
        references = [pairs.references[n] for n in full]
        sources = [pairs.sources[n] for n in full]
        return sources, lambda answers: ("BLEU", of_lines(answers, references).value(Bleu()))

    def examples_for(self, asked: Scoring) -> Pairs:
        source, target = (getattr(asked.settings, name, None) for name in ("source", "target"))
        if asked.data is None or not (source or target):
            return super().examples_for(asked)
        own = self.task.data
        return read_pairs(ParallelText(asked.data, source or own.source, target or own.target))

    def examples_of(self, split: Split, data: Path | None) -> Pairs:
        """The pairs of a split, or of the user's files (a prefix or a .tsv)."""
        return read_pairs(self.task.data.open(split) if data is None else self.task.data.at(data))

    def title(self, asked: Scoring, examples: Pairs) -> str:
        """The data, and how many of its sources are cut."""
        named = self.task.data.describe(asked.split, asked.data)
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


class TextPairTask(Seq2SeqTask, ABC):
    """A task whose source and target are texts; what `weft tune` tries of it."""

    @classmethod
    def search_space(cls, recipe: Recipe) -> Space:
        """The usual settings, with one dropout for encoder and decoder where the recipe has one."""
        found = usual(recipe)
        model = recipe["model"]
        if set(DROPOUTS) <= found.keys() and model["encoder"]["dropout"] == model["decoder"]["dropout"]:
            del found[DROPOUTS[1]]
            found[DROPOUTS[0]] = replace(found[DROPOUTS[0]], also=DROPOUTS[1:])
        return found

    @classmethod
    def decoding_space(cls, recipe: Recipe) -> Space:
        """The width of the beam and the length penalty, for a recipe that searches with a beam."""
        own = recipe["decoding"]
        if own["search"] != "beam":
            return {}
        beam = {"decoding.beam": Range(values=(1, 3, 5, 8))} if own["diverse"] == 1 else {}
        return {**beam, "decoding.length_penalty": Range(values=(0.6, 0.8, 1.0, 1.2, 1.4))}


class PairTask(TextPairTask, ABC):
    """Trains a model on sequence pairs to write the target for a source."""

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

    @classmethod
    def encoder_of(cls, recipe: Recipe) -> ReusedEncoder | None:
        model = recipe["model"]
        if model["encoder"] is None:
            return None
        return ReusedEncoder(model["encoder"], model["embedding"]["size"], "none", embed="source_embed")

    @abstractmethod
    def with_scores(self, found: Validation) -> Validation:
        """A validation of greedy outputs with the task's own scores."""

    @abstractmethod
    def open(self, run: Path) -> PairPipeline: ...

    def small_model(self) -> Generator:
        return self.model_config.build(19, 19, one_vocabulary=self.data.vocabulary.shared)

    def small_batch(self) -> PairBatch:
        return collate_pairs([[5, 6, 7], [8]], [[9, 10], [11, 12, 13]])

    def check_refit(self) -> None:
        """Not with several texts in a mixture, in which the validation pairs have no share."""
        if self.data.mixed:
            raise ConfigError("data.mixed: expected none; leave refit out")

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
        known = pipeline.known
        store = JoinedStores(
            [stored(text, self.data, known.reading, known.target, known.run, progress) for text in corpus]
        )
        if self.decoding.shortlist:
            shortlist(known, self.data, progress)
        training = PairTraining(self.data, known, store, Pairs(*self.data.validation()), self.with_scores)
        plan = training.plan(0)
        if isinstance(plan, Mixture):
            progress(plan.summary([text.name for text in corpus]), 0, 0)
        return training

    def corpora(self) -> Sequence[PairDirection]:
        return [PairDirection("", self.data)]

    def data_in(self, folder: Path, train: str, *, tested: bool) -> Mapping[str, Any]:
        return {**data_in(folder, train, tested=tested), "mixed": {}}
