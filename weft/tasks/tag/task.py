"""Tagging: a tag for each word of a sentence, such as its part of speech.

Read next: data.py, ../vocabulary.py, predictor.py.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from weft.data.batching import Batches
from weft.data.conll import ReadAs, holds_tags
from weft.data.conllu import ConlluSentence
from weft.data.several import called
from weft.data.vectors import coverage
from weft.errors import CheckpointError, ConfigError, DataError
from weft.masks import from_lengths
from weft.metrics.calibration import fitted
from weft.metrics.f1 import F1
from weft.metrics.metric import ItemKind
from weft.metrics.scored import ComparedOutputs
from weft.metrics.span_f1 import SpanF1, are_spans
from weft.metrics.tags import TagAccuracy
from weft.models import Labeller
from weft.nn.embed.contextual import Context, FirstPieces, InContext, WordsInPieces
from weft.nn.embed.grams import FeatureTable
from weft.nn.embed.tokens import Tokens
from weft.nn.embed.words import Characters, Words
from weft.nn.encoders.encoder import BagEncoder, Encoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.crf import Crf
from weft.nn.heads.head import Head, Loss
from weft.nn.positions import most_positions
from weft.setting_types import Bounds, Features, NonNegative, Share, Size, check_fields
from weft.tasks.contextual import PretrainedContext
from weft.tasks.evaluation import Sample, Validation, first, mean_loss, samples_of
from weft.tasks.export import ModelExport
from weft.tasks.inspection import Inspection
from weft.tasks.labels.base import (
    ClassWeights,
    LabelBatch,
    SolvedTraining,
    TextLabelPipeline,
    TextLabelTask,
    WordVectorSettings,
    check_weights,
    weights_of,
)
from weft.tasks.labels.calibration import LabelCalibration
from weft.tasks.labels.solver import Design
from weft.tasks.reused import Frame, ReusedEncoder, words_in_pieces
from weft.tasks.space import Range, Recipe, Space, usual, whole
from weft.tasks.tag.data import TagData, check_tags
from weft.tasks.tag.features import (
    PENALTIES,
    SpelledWithFeatures,
    SummedTagger,
    TagFeatures,
    WithFeatures,
    WordFeatures,
)
from weft.tasks.tag.predictor import (
    TagEvaluation,
    WordTagger,
    evaluate,
    export_tagger,
    inspect_words,
    tagged_at,
    tags_of,
)
from weft.tasks.task import (
    InspectionSettings,
    PredictionSettings,
    Progress,
    ScoredSettings,
    Scoring,
    Split,
)
from weft.tasks.vocabulary import Lexicon
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True)
class Spelling(WordVectorSettings):
    """How words become vectors.

    Args:
        size: features of a word's vector from the table; 0 for letters alone.
        characters: how letters are read: convolution, recurrent, or none.
        letter_size: features of a letter.
        widths: numbers of letters that the convolution's filters read; each width has an equal share of the
            features.
        spelled: features of the vector that is made of the letters.
        replaced: in training, a word seen n times is replaced by the unknown word with probability
            replaced / (replaced + n).
        vectors: a run of the task embeddings, or a file of word2vec or GloVe vectors, of this size, that the
            table begins with.
        fixed: leave the vectors as they are, in a second table beside the trained one; better for words that
            training never saw.
        pieces: read a word as the pieces of the vocabulary of `training.start`, with these symbols around a
            sentence (none, before, after or both; see the task classify), and tag the state of its first
            piece; of the other settings only size, the features of a piece, and dropout have an effect then.
    """

    size: Size = 100
    characters: Literal["convolution", "recurrent", "none"] = "convolution"
    letter_size: Features = 32
    widths: tuple[int, ...] = (3,)
    spelled: Annotated[int, Bounds(ge=2)] = 64
    replaced: NonNegative = 0.25
    pieces: Frame | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size == 0 and (self.characters == "none" or self.pieces is not None):
            raise ConfigError("size: expected at least 1 without characters, got 0; give one of them")


@dataclass(frozen=True, kw_only=True)
class TagModel:
    """An encoder over words, and a head over its states.

    Args:
        encoder: a part of nn/encoders.
        embedding: of words and letters.
        crf: choose all tags of a sentence together (Lample et al. 2016), not each by itself.
        smoothing: share of each tag's probability that training spreads over all tags; not with a CRF.
        class_weights: balanced gives every tag the same weight in training, however rare it is: a word with
            tag c counts N / (C n_c), where n_c of the N training words have one of the C tags. Or your own
            weights, such as {PROPN: 3}; tags that are left out count 1. Not with a CRF.
        features: a linear CRF over features of words instead (Lafferty et al. 2001), solved on all sentences
            at once, in seconds; encoder, embedding and most settings of the section training have no effect
            then. With `alone: false` its scores are added to those of the network.
    """

    encoder: Callable[..., Encoder] = RecurrentEncoder
    embedding: Spelling = field(default_factory=Spelling)
    crf: bool = False
    smoothing: Share = 0.0
    class_weights: ClassWeights = "none"
    features: TagFeatures | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("contextual", "pieces") if self.features is not None else ():
            if getattr(self.embedding, name) is not None:
                raise ConfigError(f"embedding.{name}: cannot be combined with features; leave one out")
        if self.scores_together and self.smoothing:
            raise ConfigError(f"smoothing: expected 0 with a CRF, got {self.smoothing}")
        if self.scores_together and self.class_weights != "none":
            without = "leave features" if self.features else "set crf: false, or leave class_weights"
            raise ConfigError(
                "class_weights: expected none with a CRF, which scores the tags of a sentence together; "
                f"{without} out"
            )
        check_weights(self.class_weights)

    @property
    def scores_together(self) -> bool:
        """Whether the tags of a sentence are chosen together, by a CRF."""
        return self.crf or self.features is not None

    def build(
        self,
        num_words: int,
        num_letters: int,
        num_tags: int,
        contextual: Context | None = None,
        *,
        weights: Sequence[float] = (),
        num_features: int = 0,
        num_pieces: int = 0,
    ) -> Labeller:
        """A new model."""
        linear = None
        if self.features is not None:
            together = Crf(num_tags, num_tags)
            together.emit = nn.Identity()  # the sum over the features of a word is its score for each tag
            table = FeatureTable(num_features, num_tags)
            linear = Labeller(table, BagEncoder(num_tags, reduce="sum"), together)
            if self.features.alone:
                return linear
        how = self.embedding
        if how.pieces is not None:
            tokens = Tokens(num_pieces, how.size, dropout=how.dropout)
            reading = FirstPieces(tokens, self.encoder(how.size))
            head = self._head(reading.size, num_tags, weights)
            return Labeller(reading, BagEncoder(reading.size, reduce="sum"), head)
        characters = None
        if how.characters != "none":
            characters = Characters(
                num_letters,
                how.spelled,
                kind=how.characters,
                letter_size=how.letter_size,
                widths=how.widths,
            )
        words = Words(
            num_words,
            how.size,
            characters=characters,
            replaced=how.replaced,
            fixed_size=how.size if how.fixed else 0,
            dropout=how.dropout,
        )
        embed: Words | InContext | WithFeatures = words
        if contextual is not None:
            embed = InContext(words, contextual, dropout=how.dropout, tuned=how.tuned)
        elif self.features is not None:
            embed = WithFeatures(words, num_features, self.features.size, dropout=how.dropout)
        encoder = self.encoder(embed.size)
        network = Labeller(embed, encoder, self._head(encoder.size, num_tags, weights))
        return network if linear is None else SummedTagger(network, linear)

    def _head(self, size: int, num_tags: int, weights: Sequence[float]) -> Head:
        if self.scores_together:
            return Crf(size, num_tags)
        return Categorical(size, num_tags, smoothing=self.smoothing, class_weights=weights)


@dataclass(frozen=True, kw_only=True)
class TagSettings(ScoredSettings):
    """What the user asks of tags."""

    read_as: ReadAs = "auto"  # how the lines of the input are read; auto decides by the first ones


@dataclass(eq=False)
class TagTraining(SolvedTraining):
    """The sentences of a training."""

    data: TagData
    lexicon: Lexicon
    train: Sequence[ConlluSentence]
    valid: Sequence[ConlluSentence]
    features: WordFeatures | None
    progress: Progress
    penalties: ClassVar[Sequence[float]] = PENALTIES

    def __post_init__(self) -> None:
        if self.features is not None:
            self.solved, self.penalty = self.features.how.alone, self.features.how.penalty

    def designs(self) -> tuple[Design, Design]:
        known = _known(self.lexicon, self.valid)
        if not known:
            raise DataError("expected a validation sentence whose tags training has, got none; give more")
        return self._design(self.train), self._design(known)

    def _design(self, sentences: Sequence[ConlluSentence]) -> Design:
        assert self.features is not None
        sentences = sorted(sentences, key=lambda one: len(one.forms))
        numbers = chain(*(self.features.numbers(one.forms) for one in sentences))
        target = torch.tensor(self.lexicon.encode(list(chain(*(one.tags or [] for one in sentences)))))
        lengths = [len(one.forms) for one in sentences]
        return Design.of_words(list(numbers), lengths, target, self.features.num_rows)

    def plan(self, seed: int) -> Batches:
        lengths = np.array([[len(sentence.forms)] * 2 for sentence in self.train])
        rows = self.data.batch_rows or None
        return Batches(lengths, max_tokens=self.data.batch_tokens, max_rows=rows, seed=seed)

    def collate(self, numbers: np.ndarray) -> LabelBatch:
        return collate(self.lexicon, [self.train[int(number)] for number in numbers])

    def whole(self) -> "TagTraining":
        """Sentences with a tag that training never saw stay out, and those longer than its longest."""
        longest = max(len(one.forms) for one in self.train)
        known = [
            one
            for one in self.valid
            if one.tags and -1 not in self.lexicon.encode(one.tags) and len(one.forms) <= longest
        ]
        found = copy(self)
        found.train = [*self.train, *known]
        return found

    def check_metric(self, metric: str) -> None:
        tags = {tag for one in self.valid for tag in one.tags or []}
        if metric == "span_f1" and not are_spans(tags):
            other = min((tag for tag in tags if not are_spans([tag, "B-X"])), default="O")
            raise ConfigError(
                "training.metric: span_f1 counts names by tags such as B-PER, I-PER and O, but the "
                f"validation data have the tag {other!r}; use f1, the mean F1 of the tags, or accuracy"
            )

    def validate(self, model: Labeller) -> Validation:
        """Loss, accuracy on all and on unknown words, mean F1 of the tags, F1 of names if tags mark some."""
        valid, tagger = self.valid, WordTagger(model, self.lexicon, self.data.column)
        found, wrong, _ = tagged_at(tagger, valid, "validation")
        pairs = list(zip(found, valid, strict=True))
        answers = [[""] * len(sentence.forms) if one is None else one.tagged.tags for one, sentence in pairs]
        read = [sentence for one, sentence in pairs if one is not None]
        references = [one.tags or [] for one in valid]
        tags, labels = tags_of(answers, references), ComparedOutputs(answers, references, reads="labels")
        new = [[not self.lexicon.knows(form) for form in one.forms] for one in valid]
        unknown = tags_of(answers, references, chosen=new)
        scores = {
            "loss": self._mean_loss(model, read),
            "accuracy": tags.value(TagAccuracy()),
            "unknown": unknown.value(TagAccuracy()) if any(map(any, new)) else 0.0,
            "f1": labels.value(F1()),
        }
        if are_spans(chain(*references)):
            scores["span_f1"] = tags.value(SpanF1())
        samples = [
            Sample(
                " ".join(valid[n].forms),
                " ".join(valid[n].tags or []),
                " ".join(tag or "_" for tag in answers[n]),
            )
            for n in samples_of(len(valid))
        ]
        return Validation(scores, samples, [tags, labels], first(wrong))

    def _mean_loss(self, model: Labeller, sentences: Sequence[ConlluSentence]) -> float:
        """Nats a word, over the words whose tag is known."""
        known = sorted(_known(self.lexicon, sentences), key=lambda one: len(one.forms))
        parts = (known[at : at + 64] for at in range(0, len(known), 64))
        return mean_loss(model, (collate(self.lexicon, part) for part in parts))


def _known(lexicon: Lexicon, sentences: Sequence[ConlluSentence]) -> list[ConlluSentence]:
    """The sentences all of whose tags training has."""
    return [one for one in sentences if -1 not in lexicon.encode(one.tags or [])]


LONGEST = 512
"""Pieces that an encoder without a limit reads at once, with the symbols around them."""


class TagPipeline(TextLabelPipeline[ConlluSentence]):
    """The lexicon of a run."""

    task: "TagTask"
    training: TagTraining | None

    temperature: float = 1.0

    def __init__(
        self,
        task: "TagTask",
        lexicon: Lexicon,
        context: PretrainedContext | None = None,
        features: WordFeatures | None = None,
        pieces: Vocabulary | None = None,
    ) -> None:
        self.task = task
        self.lexicon = lexicon
        self.features = features
        self.pieces = pieces
        self._context = context
        if context is not None:
            lexicon.context = context.read
        if features is not None:
            both = partial(SpelledWithFeatures.read, lexicon, features)
            lexicon.reader = features.read if features.how.alone else both
        if pieces is not None:
            lexicon.reader, lexicon.alphabet = task.piece_reader(pieces), pieces.alphabet

    def model(self) -> Labeller:
        """A new model; where training begins, with the given vectors or solved."""
        lexicon, model_config, weights = self.lexicon, self.task.model_config, list[float]()
        vectors = self.task.vectors if self.training is not None else {}
        context = self._context.model() if self._context else None
        if self.training is not None:
            seen = chain(*(one.tags or [] for one in self.training.train))
            weights = weights_of(model_config.class_weights, lexicon.tags, seen)
        sizes = lexicon.num_words, lexicon.num_letters, len(lexicon.tags)
        num_features = self.features.num_rows if self.features is not None else 0
        num_pieces = len(self.pieces or ())
        model = model_config.build(
            *sizes, context, weights=weights, num_features=num_features, num_pieces=num_pieces
        )
        if self.pieces is not None:
            return model
        if self.features is not None and self.training is not None:
            if isinstance(model, SummedTagger):
                model.solve(self.training.solve)
            else:
                self.training.solve(model)
        if self.features is not None and self.features.how.alone:
            return model
        embed = model.embed.words if isinstance(model.embed, InContext | WithFeatures) else model.embed
        assert isinstance(embed, Words)
        embed.learn_from(lexicon.word_counts())
        if vectors and embed.table is not None:
            with torch.no_grad():
                start = embed.table.weight if embed.fixed is None else torch.zeros_like(embed.fixed)
                for number, word in enumerate(lexicon.words, 2):
                    if word in vectors:
                        start[number] = torch.from_numpy(vectors[word])
                if embed.fixed is not None:
                    embed.fix(start)
        return model

    def rows(self) -> Mapping[str, Sequence[str]]:
        """See Pipeline.rows; the tags are the rows of the head."""
        heads = [f"head.{part}{kind}" for part in ("", "emit.", "own.emit.") for kind in ("weight", "bias")]
        known = ["", *self.features.kept] if self.features is not None else []
        if self.features is not None and self.features.how.alone:
            return {"embed.weight": known}
        if self.pieces is not None:
            names = self.pieces.pieces(range(len(self.pieces)))
            return {"embed.embed.table.weight": names, **dict.fromkeys(heads, self.lexicon.tags)}
        alone = self._context is None and self.features is None
        embed = "embed" if alone else "embed.words"
        found = {**self.lexicon.rows(embed), **dict.fromkeys(heads, self.lexicon.tags)}
        return {**found, "table.weight": known, "embed.table.weight": known} if known else found

    def predictor(self, model: Labeller, settings: PredictionSettings | None = None) -> WordTagger:
        """The trained model: `predict("a b c")` gives words with tags."""
        asked = TagSettings.of(settings)
        return WordTagger(
            model,
            self.lexicon,
            self.task.data.column,
            probs=asked.scores,
            plot=asked.plot is not None,
            temperature=self.temperature,
            read_as=asked.read_as,
            progress=asked.progress,
        )

    def examples(self, split: Split, file: Path | None = None) -> list[ConlluSentence]:
        source = self.task.data
        return list(source.sentences(split) if file is None else source.at(file))

    def valid_texts(self) -> Iterable[str]:
        return (" ".join(one.forms) for one in self.task.data.sentences("valid"))

    def title(self, asked: Scoring) -> str:
        data = self.task.data
        return data.describe(asked.split) if asked.data is None else f"{asked.data.name} {data.column}"

    def scores(
        self,
        model: Labeller,
        found: list[ConlluSentence],
        train: list[ConlluSentence] | None,
        title: str,
        settings: Any,
    ) -> TagEvaluation:
        column, tagger = self.task.data.column, self.predictor(model, TagSettings(scores=True))
        return evaluate(tagger, found, title=title, column=column, train=train)

    def text_of(self, example: ConlluSentence) -> str:
        return " ".join(example.forms)

    def use(self, calibration: LabelCalibration) -> None:
        self.temperature = calibration.temperature

    def calibrate(self, model: Labeller) -> None:
        assert self.run is not None
        valid = [one for one in self.task.data.sentences("valid") if one.tags]
        self.temperature = 1.0
        tagged = self.predictor(model).tag((one.forms for one in valid), probs=True)
        probs = np.concatenate([one.every for one in tagged])
        targets = np.array(self.lexicon.encode(list(chain(*(one.tags or [] for one in valid)))))
        known = targets >= 0
        self.temperature = fitted(np.log(np.maximum(probs[known], 1e-30)), targets[known])
        LabelCalibration(self.temperature).save(self.run)

    def inspection(self, model: Labeller, settings: InspectionSettings) -> Inspection:
        return inspect_words(self.predictor(model), settings.input(), self.valid_texts, self.features)

    def model_export(self, model: Labeller) -> ModelExport:
        return export_tagger(self.predictor(model), self.valid_texts)


def collate(lexicon: Lexicon, sentences: Sequence[ConlluSentence]) -> LabelBatch:
    """Sentences with their tags as a batch."""
    spelled, mask = lexicon.read([one.forms for one in sentences])
    target = np.zeros(mask.shape, dtype=np.int64)
    for row, one in enumerate(sentences):
        target[row, : len(one.forms)] = lexicon.encode(one.tags or [])
    return LabelBatch(spelled, mask, torch.from_numpy(target), sum(len(one.forms) for one in sentences))


class TagTask(TextLabelTask[TagData, TagModel]):
    """A tagger, from tagged sentences."""

    sections: ClassVar = {"data": TagData, "model": TagModel}
    prediction_settings: ClassVar = TagSettings
    knows = staticmethod(holds_tags)
    check = staticmethod(check_tags)
    note: ClassVar[str] = (
        "accuracy is the share of words with the right tag, unknown the same for words that training never "
        "saw, f1 the mean F1 of the tags, span_f1 the F1 of whole names, loss is nats per word."
    )
    evaluation: ClassVar = TagEvaluation
    target_unit: ClassVar[str] = "word"
    better: ClassVar = {**TextLabelTask.better, "unknown": "higher", "span_f1": "higher"}
    suffixes: ClassVar[Sequence[str]] = (".conllu", ".conll", ".iob", ".iob2")
    least: ClassVar[int] = 2

    @property
    def validation_offers(self) -> tuple[ItemKind, ...]:
        """Without probabilities, which a validation does not compute."""
        return ("tags", "labels")

    def about(self) -> str:
        return f"{self.data.column} tags, on {called(self.data.train)}"

    @classmethod
    def started(cls, found: ReusedEncoder) -> Mapping[str, object]:
        return {
            "model.features": None,
            "model.embedding.contextual": None,
            "model.embedding.vectors": None,
            "model.embedding.size": found.size,
            "model.embedding.pieces": found.frame,
            "model.encoder": found.encoder,
            "training.start_parts": found.parts("embed"),
        }

    @classmethod
    def search_space(cls, recipe: Recipe) -> Space:
        """The network, how words are spelled, and whether neighbouring tags are scored together."""
        if recipe["model"]["features"] is not None:
            return {
                "model.features.affixes": Range(low=2, high=6, step=1),
                "model.features.window": Range(low=1, high=2, step=1),
                "model.features.min_count": Range(low=1, high=3, step=1),
            }
        found = usual(recipe)
        embedding = recipe["model"]["embedding"]
        spelled = embedding["spelled"]
        if embedding["characters"] != "none" and spelled:
            found["model.embedding.spelled"] = whole(spelled // 2, spelled * 2)
        found["model.embedding.replaced"] = Range(low=0.0, high=0.5)
        if recipe["model"]["class_weights"] != "none":  # not with a CRF
            return found
        found["model.smoothing"] = replace(found["model.smoothing"], unless="model.crf")
        return {**found, "model.crf": Range(values=(False, True))}

    @property
    def embedding(self) -> Spelling:
        return self.model_config.embedding

    def small_model(self) -> Labeller:
        return self.model_config.build(5, 5, 3, num_features=5, num_pieces=5)

    def rehearse(self) -> Loss:
        lexicon = Lexicon(["a", "b"], [3, 1], ["a", "b"], ["X", "Y", "Z"], lowercase=True)
        words, tags, rows = [["a", "b", "ab"], ["b"]], [["X", "Y", "Z"], ["Y"]], 0
        if self.model_config.features is not None:
            features = WordFeatures.learn(self.model_config.features, words)
            TagPipeline(self, lexicon, features=features)  # which reads them by the lexicon
            rows = features.num_rows
        letters = Vocabulary.train(["ab"], kind="character", size=None)
        if self.embedding.pieces is not None:
            lexicon.reader = self.piece_reader(letters)
        sizes = lexicon.num_words, lexicon.num_letters, 3
        model = self.model_config.build(*sizes, num_features=rows, num_pieces=len(letters))
        examples = [ConlluSentence([], 0, [], *one) for one in zip(words, tags, strict=True)]
        return model.loss(collate(lexicon, examples))

    def unused(self) -> Sequence[str]:
        """What features alone replace."""
        how = self.model_config.features
        replaced = ["model.encoder", "model.embedding", "model.crf", "training"]
        return replaced if how is not None and how.alone else ()

    def read(self, progress: Progress) -> list[ConlluSentence]:
        train = list(self.data.sentences("train"))
        if not train:
            raise DataError("expected sentences to train on, got none", path=self.data.file("train"))
        return train

    def saved(self, run: Path) -> Path:
        return run / "tokenizer.tags.json"

    def learn(self, corpus: list[ConlluSentence], run: Path, progress: Progress) -> None:
        learnt = Lexicon.learn(
            corpus, lowercase=self.data.lowercase, min_count=self.data.min_count, more=self.vectors
        )
        learnt.save(self.saved(run))
        if self.model_config.features is not None:
            forms = (one.forms for one in corpus)
            WordFeatures.learn(self.model_config.features, forms).save(run)

    def training(
        self, corpus: list[ConlluSentence], pipeline: TagPipeline, run: Path, progress: Progress
    ) -> TagTraining:
        lexicon = pipeline.lexicon
        positions = most_positions(self.small_model()) if self.embedding.pieces is None else None
        most = min(self.data.max_length, positions or self.data.max_length)
        kept = [sentence for sentence in corpus if len(sentence.forms) <= most]
        progress(
            f"training sentences: {len(kept):,} of {len(corpus):,} kept "
            f"({len(corpus) - len(kept):,} longer than {most} words), "
            f"{len(lexicon.tags)} tags, {len(lexicon.words):,} words",
            0,
            0,
        )
        if not kept:
            name = "data.max_length" if most == self.data.max_length else "model.encoder.max_length"
            raise ConfigError(f"{name}: {most} leaves no sentence; raise it")
        unknown = {tag for one in kept for tag in one.tags or ()} - set(lexicon.tags)
        if unknown:
            raise CheckpointError(
                f"{self.saved(run)}: expected every tag of {self.data.file('train')}, got no "
                f"{min(unknown)!r}; the file or the data was changed: restore it, or train with another --run"
            )
        given = self.embedding.vectors
        if given is not None:
            words = (form for one in kept for form in one.forms)
            counts = Counter(form.lower() if self.data.lowercase else form for form in words)
            progress(coverage(given, self.vectors, counts, lowercase="data.lowercase"), 0, 0)
        valid = list(self.data.sentences("valid"))
        return TagTraining(self.data, lexicon, kept, valid, pipeline.features, progress)

    def pipeline(self, run: Path, context: PretrainedContext | None) -> TagPipeline:
        how = self.model_config.features
        features = None if how is None else WordFeatures.load(run, how)
        pieces = None if self.embedding.pieces is None else self._pieces(run)
        return TagPipeline(self, Lexicon.load(self.saved(run)), context, features, pieces)

    def piece_reader(self, vocabulary: Vocabulary) -> Callable[..., tuple[WordsInPieces, Tensor]]:
        """Reads sentences as the pieces of a vocabulary, as long as the encoder can, with a mask [B, S]."""
        most, frame = most_positions(self.small_model()) or LONGEST, self.embedding.pieces or "none"

        def read(sentences: Sequence[Sequence[str]]) -> tuple[WordsInPieces, Tensor]:
            pieces = words_in_pieces(vocabulary, sentences, most - 2, frame=frame, leading=True)
            lengths = torch.tensor([len(words) for words in sentences])
            mask = from_lengths(lengths, int(lengths.max()))
            return WordsInPieces(pieces, mask), mask

        return read

    @staticmethod
    def _pieces(run: Path) -> Vocabulary:
        """The vocabulary that a run has taken over from another one."""
        path = run / "tokenizer.json"
        if not path.exists():
            raise ConfigError(
                "model.embedding.pieces: expected training.start, a run whose vocabulary cuts words into "
                "pieces, got none; name one, or leave pieces out"
            )
        return load_vocabulary(path)
