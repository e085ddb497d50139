"""Language models: predicts the next token of a text, and scores texts.

Read next: ../running_text/base.py, data.py, scoring.py (contexts), evaluation.py, predictor.py.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from weft import tree
from weft.data.batching import Batches
from weft.data.plain import PlainText, check_plain_texts
from weft.errors import ConfigError, DataError, within
from weft.metrics.scored import ComparedOutputs
from weft.models import Generator
from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.embed.tokens import Beside, Tokens
from weft.nn.heads.adaptive import Adaptive
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.head import Head, Loss
from weft.nn.positions import most_positions
from weft.setting_types import DropoutRate, Features, Section, Share, check_fields
from weft.tasks.evaluation import Sample, Validation, perplexity, samples_of
from weft.tasks.export import ModelExport
from weft.tasks.inspection import Inspection
from weft.tasks.language.data import (
    ProseBatch,
    RandomWindows,
    Stream,
    StreamPieces,
    collate_lines,
    cut,
    joined,
    lines_of,
    rarity,
    read,
)
from weft.tasks.language.decoding import LanguageDecoding, MixedModel, ProseSettings
from weft.tasks.language.evaluation import ProseEvaluation, counted_for, evaluate, mixture_parts
from weft.tasks.language.predictor import TextWriter, export_writer, inspect_text
from weft.tasks.language.scoring import Cache, token_logp
from weft.tasks.reused import ReusedEncoder
from weft.tasks.running_text.base import ProseData, RunningTextPipeline, RunningTextTask, line_batches
from weft.tasks.space import Recipe
from weft.tasks.task import (
    InspectionSettings,
    PredictionSettings,
    Progress,
    Scoring,
    Training,
    named_rows,
)
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import Vocabulary
from weft.wording import plural


@dataclass(frozen=True, kw_only=True)
class TokenEmbedding(Section):
    """How tokens are embedded.

    Args:
        size: features of a token's vector.
        dropout: share of features set to zero in training.
        tied: the output layer uses the same table (Press & Wolf 2017).
        scaled: vectors are multiplied by the square root of their size; see `Tokens`.
        bias: whether the output layer has a bias; GPT-2 and Llama have none.
        cutoffs: numbers of tokens where groups of rarer tokens begin, such as [400, 3000]: an adaptive
            softmax, which makes training with thousands of words faster (nn/heads/adaptive.py). Tokens must
            be ordered by frequency: vocabulary.kind space, word or character. Empty for one softmax.
    """

    size: Features = 200
    dropout: DropoutRate = 0.1
    tied: bool = True
    scaled: bool = True
    bias: bool = True
    cutoffs: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ProseModel:
    """A language model: p(w_i | w_1 .. w_i-1).

    Args:
        decoder: a part of nn/decoders: recurrent, transformer, bag, ...
        embedding: of the tokens.
        smoothing: share of each target's probability spread over the vocabulary in training.
    """

    decoder: Callable[..., Decoder] = RecurrentDecoder
    embedding: TokenEmbedding = field(default_factory=TokenEmbedding)
    smoothing: Share = 0.0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.smoothing and self.embedding.cutoffs:
            raise ConfigError(
                "smoothing: cannot be combined with embedding.cutoffs, whose groups are trained apart; "
                "leave one of them out"
            )

    @property
    def least(self) -> int:
        """The smallest number of tokens that it can be built for."""
        return 1 + max(self.embedding.cutoffs, default=0)

    def build(self, size: int, weights: Tensor | None = None) -> Generator:
        """A new model; `weights` [V] are the idf of each token, for a decoder that weighs tokens."""
        settings = self.embedding
        decoder = self.decoder(settings.size)
        tokens = Tokens(size, settings.size, dropout=settings.dropout, scaled=settings.scaled)
        embed: nn.Module = tokens
        if decoder.weighted:
            decoder = self.decoder(settings.size + 1)
            embed = Beside(tokens, torch.ones(size) if weights is None else weights)
        tied = tokens.table if settings.tied else None
        head: Head
        if settings.cutoffs:
            head = Adaptive(decoder.size, size, cutoffs=settings.cutoffs, tied=tied, bias=settings.bias)
        else:
            head = Categorical(decoder.size, size, smoothing=self.smoothing, tied=tied, bias=settings.bias)
        return Generator(embed, decoder, head)


def grows(model: Generator) -> bool:
    """Whether a model's state grows with the text, so that it cannot be carried on without limit."""
    state = model.start(None, torch.ones(2, 1, dtype=torch.bool))
    _, after = model.step(torch.zeros(2, dtype=torch.int64), state)

    def shapes(one: object) -> list[torch.Size]:
        return [leaf.shape for leaf in tree.leaves(one) if isinstance(leaf, Tensor)]

    return shapes(state) != shapes(after)


VALIDATION_ROWS = 8

UNSEEN = (
    "decoding: mixture: tuned and cache fit their weights to the validation text, which was or would be part "
    "of the training (training.refit); leave one of them out"
)


def as_read(data: ProseData, vocabulary: Vocabulary) -> ProseData:
    """The recipe's section; a vocabulary that reads whole texts has windows instead of lines."""
    whole = vocabulary.opening is not None and data.batches == "lines"
    return replace(data, batches="windows") if whole else data


class LanguageTraining(Training):
    """The training text."""

    def __init__(
        self,
        data: ProseData,
        vocabulary: Vocabulary,
        train: Stream,
        valid: Stream,
        most: int | None = None,
    ) -> None:
        self.streams = data.batches == "stream"
        self.text = train
        self._data = data
        self._vocabulary = vocabulary
        self._valid = valid
        self._most = most
        lines = list(lines_of(train)) if data.batches == "lines" else []
        self._lines = [line for line in lines if most is None or len(line) < most]
        self.left_out = len(lines) - len(self._lines)

    def whole(self) -> "LanguageTraining":
        text = joined(self.text, self._valid)
        return LanguageTraining(self._data, self._vocabulary, text, self._valid, self._most)

    def plan(self, seed: int) -> StreamPieces | RandomWindows | Batches:
        rows, length = self._data.batch_rows, self._data.length
        if self._data.batches == "stream":
            return StreamPieces(self.text.size, rows=rows, length=length)
        if self._data.batches == "windows":
            return RandomWindows(self.text.size, rows=rows, length=length, seed=seed)
        return line_batches(self._data, self._lines, seed)

    def collate(self, numbers: np.ndarray) -> ProseBatch:
        """The pieces that begin at these places, or the lines of these numbers."""
        if self._data.batches == "lines":
            return collate_lines([self._lines[int(number)] for number in numbers])
        part = self.text.size // self._data.batch_rows
        length = self._data.length
        if self.streams:
            length = min(length, part - int(numbers[0]))
        return cut(self.text.tokens, numbers, length, continues=self.streams and numbers[0] > 0)

    def validate(self, model: Generator) -> Validation:
        """Loss and perplexity per token of the validation text, line ends included."""
        data = self._data
        logp = token_logp(model, self._valid, data.batches, length=data.length, rows=VALIDATION_ROWS)
        loss = float(-logp.mean())
        nats, tokens = -self._valid.by_line(logp), self._valid.by_line(np.ones(len(logp)))
        scores = {"loss": loss, "perplexity": perplexity(loss)}
        return Validation(scores, self._samples(model), [ComparedOutputs(nats, tokens, reads="nats")])

    def _samples(self, model: Generator) -> list[Sample]:
        """The first half of some lines of the validation text, continued greedily."""
        lines = [line.tolist() for line in islice(lines_of(self._valid), 200) if len(line) > 1]
        data, how = self._data, LanguageDecoding(search="greedy", max_tokens=30)
        writer = TextWriter(model, self._vocabulary, how, batching=data.batches, length=data.length)
        shown = [lines[number] for number in samples_of(len(lines))]
        begun = [self._vocabulary.decode(line[: len(line) // 2]) for line in shown]
        whole = [self._vocabulary.decode(line) for line in shown]
        written = [found[0].text for found in writer.write(begun)]
        return [Sample(*three) for three in zip(begun, whole, written, strict=True)]


class LanguagePipeline(RunningTextPipeline):
    """The vocabulary of a run."""

    task: "LanguageTask"
    training: LanguageTraining | None

    def __init__(self, task: "LanguageTask", vocabulary: Vocabulary) -> None:
        self.task = task
        self.data = as_read(task.data, vocabulary)
        self.vocabulary = vocabulary

    def model(self) -> Generator:
        size = len(self.vocabulary)
        return self.task.model_config.build(size, rarity(self.training.text, size) if self.training else None)

    def rows(self) -> Mapping[str, Sequence[str]]:
        return named_rows(self.vocabulary)

    def predictor(self, model: Generator, settings: PredictionSettings | None = None) -> TextWriter:
        """The trained model: `predict(text)` continues a text; also `score(text)`, `next(text, k)`."""
        data, decoding = self.data, self.task.decoding.with_settings(ProseSettings.of(settings).searched())
        mixture = self._mixture(model, decoding) if decoding.mixture or decoding.cache else None
        return TextWriter(
            model,
            self.vocabulary,
            decoding,
            batching=data.batches,
            length=data.length,
            mixed=mixture,
            scores=ProseSettings.of(settings).scores,
        )

    def writer(self, model: Generator) -> TextWriter:
        return self.predictor(model)

    def _mixture(self, model: Generator, decoding: LanguageDecoding) -> MixedModel:
        data, size, given = self.data, len(self.vocabulary), decoding.ngram_weight
        ngrams = None
        if decoding.mixture:
            ngrams = counted_for(data, decoding, read(data.open("train"), self.vocabulary), size)
        if given is not None and not decoding.tuned:
            return MixedModel(ngrams, given)
        if self.refit:
            raise ConfigError(UNSEEN)
        valid = read(data.open("valid"), self.vocabulary)
        weights = mixture_parts(model, valid, data, decoding, ngrams).tuned(given)
        cache = Cache(decoding.cache, weights.sharpness, weights.cache) if decoding.cache else None
        return MixedModel(ngrams, weights.ngram, cache)

    def scores(self, model: Generator, text: PlainText, title: str, asked: Scoring) -> ProseEvaluation:
        """Perplexity, nats per word and bits per character, next to an n-gram model of the training text."""
        source = self.data
        train = None
        with suppress(DataError):
            train = read(source.open("train"), self.vocabulary)
            if self.refit:
                train = joined(train, read(source.open("valid"), self.vocabulary))
        return evaluate(
            model,
            read(text, self.vocabulary),
            title=title,
            data=source,
            decoding=self.task.decoding,
            size=len(self.vocabulary),
            train=train,
            valid=None if asked.validation else lambda: read(source.open("valid"), self.vocabulary),
        )

    def inspection(self, model: Generator, settings: InspectionSettings) -> Inspection:
        return inspect_text(self.predictor(model), settings.input(), self.valid_texts)

    def model_export(self, model: Generator) -> ModelExport:
        return export_writer(self.predictor(model), self.valid_texts)


class LanguageTask(RunningTextTask[ProseModel]):
    """Trains a language model on running text."""

    sections: ClassVar = {"data": ProseData, "model": ProseModel, "decoding": LanguageDecoding}
    prediction_settings: ClassVar = ProseSettings
    check = staticmethod(check_plain_texts)
    note: ClassVar[str] = "Loss (in nats) and perplexity are per token, with the end of each line."
    evaluation: ClassVar = ProseEvaluation
    better: ClassVar = {"loss": "lower", "perplexity": "lower"}

    def __init__(self, *, data: ProseData, model: ProseModel, decoding: LanguageDecoding) -> None:
        super().__init__(data=data, model=model)
        self.decoding = decoding
        self.streams = data.batches == "stream"
        if decoding.cache and not self.streams:
            raise ConfigError(
                f"decoding.cache: needs data.batches: stream, where the text is read in order; got "
                f"{data.batches}; set cache: 0"
            )

    @classmethod
    def encoder_of(cls, recipe: Recipe) -> ReusedEncoder:
        model = recipe["model"]
        encoder = {"use": "causal", "decoder": model["decoder"]}
        size = model["embedding"]["size"]
        return ReusedEncoder(encoder, size, "before", network="decoder", inner="decoder")

    def about(self) -> str:
        return f"{self.data.vocabulary.kind} tokens of {self.data.describe('train')}"

    def rehearse(self) -> Loss:
        model = self.model_config.build(max(19, self.model_config.least))
        if self.streams:
            loss, state = model.carry_on(cut(np.arange(19), np.array([0, 5]), 4), None)
            more, _ = model.carry_on(cut(np.arange(19), np.array([4, 9]), 4, continues=True), state)
            return Loss(loss.total + more.total, loss.count + more.count)
        return model.loss(collate_lines([[5, 6, 7], [8]]))

    def small_model(self) -> Generator:
        return self.model_config.build(max(5, self.model_config.least))

    def check_refit(self) -> None:
        """A mixture tunes its weights on the validation text, which must be unseen then."""
        decoding = self.decoding
        if decoding.tuned and (decoding.mixture or decoding.cache):
            raise ConfigError(UNSEEN)

    def check_ready(self) -> None:
        with within("model"):
            kind = self.data.vocabulary.kind
            if self.model_config.embedding.cutoffs and kind in ("bpe", "unigram"):
                raise ConfigError(
                    "embedding.cutoffs: expected tokens ordered by frequency, but those of "
                    f"data.vocabulary.kind: {kind} are not; leave cutoffs out"
                )
            model = self.small_model()
            with torch.no_grad():
                if self.streams and grows(model):
                    raise ConfigError(
                        "the state of this decoder contains all that it has read, so it cannot be carried "
                        "from batch to batch; set data.batches: windows (or lines)"
                    )
                if self.data.batches == "windows":
                    model.eval().loss(
                        cut(np.zeros(self.data.length + 1, int), np.zeros(1, int), self.data.length)
                    )
        super().check_ready()

    def training(
        self, corpus: None, pipeline: LanguagePipeline, run: Path, progress: Progress
    ) -> LanguageTraining:
        vocabulary = pipeline.vocabulary
        progress("reading the text", 0, None)
        train, valid = (read(self.data.open(split), vocabulary) for split in ("train", "valid"))
        most = most_positions(self.small_model().decoder)
        training = LanguageTraining(pipeline.data, vocabulary, train, valid, most)
        left_out = f" ({training.left_out:,} left out, longer than the model's {most} positions)"
        progress(
            f"training text: {train.size:,} tokens of {len(vocabulary):,} kinds in "
            f"{plural(train.lines, 'line')}{left_out if training.left_out else ''}",
            0,
            0,
        )
        return training

    def open(self, run: Path) -> LanguagePipeline:
        return LanguagePipeline(self, load_vocabulary(self.saved(run)))
