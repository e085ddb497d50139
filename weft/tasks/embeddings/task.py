"""Static embeddings: a vector for each word of a text, by word2vec, fastText's n-grams or GloVe.

Read next: data.py, predictor.py; ../../nn/embed/neighbours.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch

from weft.data.batching import NumberedEpochs, ShuffledBatches
from weft.data.check import check_pairs
from weft.data.report import Report
from weft.data.vectors import Questions, read_questions
from weft.errors import ConfigError, DataError
from weft.metrics.metric import ItemKind
from weft.native import keep_freed
from weft.nn.embed.neighbours import Cells, Glove, Neighbourhood, Neighbours, Subwords, WordTable
from weft.nn.heads.head import Loss
from weft.setting_types import AtLeastOne, Bounds, Features, NonNegative, Positive, check_fields
from weft.tasks.embeddings.data import CooccurrenceTable, Corpus, WordList, WordsData, WordWindows
from weft.tasks.embeddings.predictor import NEAREST, WordsEvaluation, WordVectors, evaluate, inspect_words
from weft.tasks.evaluation import Sample, Validation, mean_loss, samples_of
from weft.tasks.inspection import Inspection
from weft.tasks.task import (
    InspectionSettings,
    Pipeline,
    PredictExample,
    PredictionSettings,
    Progress,
    ScoredSettings,
    Scoring,
    Split,
    Task,
    Training,
)


@dataclass(frozen=True, kw_only=True)
class WordsModel:
    """The training objective and the size of the vectors.

    Args:
        objective: skipgram, cbow (both word2vec) or glove.
        size: D, features of a vector.
        negatives: K, random words per neighbour; not for glove.
        subwords: a word's vector is the mean of its own and those of its letter n-grams (fastText), so that
            unseen words have one; not for glove.
        shortest, longest: number of letters in an n-gram.
        buckets: number of rows for n-grams, assigned by a hash.
        most, alpha: x_max and α of glove's weights.
    """

    objective: Literal["skipgram", "cbow", "glove"] = "skipgram"
    size: Features = 100
    negatives: AtLeastOne = 5
    subwords: bool = False
    shortest: Annotated[int, Bounds(ge=2)] = 3
    longest: int = 6
    buckets: AtLeastOne = 50_000
    most: Positive = 100.0
    alpha: NonNegative = 0.75

    def __post_init__(self) -> None:
        check_fields(self)
        if self.longest < self.shortest:
            raise ConfigError(f"longest: expected at least shortest ({self.shortest}), got {self.longest}")
        if self.objective == "glove" and self.subwords:
            raise ConfigError(
                "subwords: expected false, as glove counts whole words; or set another objective"
            )

    def build(self, words: Sequence[str]) -> Neighbours | Glove:
        """A new model for these words."""
        if self.objective == "glove":
            return Glove(len(words), self.size, most=self.most, alpha=self.alpha)
        inner: WordTable | Subwords
        if self.subwords:
            inner = Subwords(
                words, self.size, shortest=self.shortest, longest=self.longest, buckets=self.buckets
            )
        else:
            inner = WordTable(len(words), self.size)
        return Neighbours(inner, len(words), objective=self.objective, negatives=self.negatives)


VALIDATION = 200
"""Number of fixed training pieces whose loss is the validation score; for GloVe 128 times as many cells."""


@dataclass(frozen=True, kw_only=True)
class NeighbourSettings(ScoredSettings):
    """What the user asks of the words near a word.

    Args:
        nbest: number of near words.
    """

    nbest: AtLeastOne = NEAREST


@dataclass(eq=False)
class EmbeddingsTraining(Training):
    """The training text."""

    data: WordsData
    words: WordList
    corpus: Corpus
    table: CooccurrenceTable | None

    def __post_init__(self) -> None:
        self._source = self._pieces(0)  # `plan` replaces word2vec's windows by ones with its seed

    def plan(self, seed: int) -> NumberedEpochs:
        """The whole text, or GloVe's table, in a new order each epoch."""
        self._source = self._pieces(seed)
        rows, count = self.data.batch_rows, len(self._source)
        rows *= 1 if self.table is None else self.data.length
        return NumberedEpochs(ShuffledBatches(count, rows, seed), count)

    def collate(self, numbers: np.ndarray) -> Neighbourhood | Cells:
        return self._source.batch(numbers)

    def validate(self, model: Neighbours | Glove) -> Validation:
        """The loss on a fixed part of the training text, and the neighbours of some words."""
        source = self._pieces(0)
        most = VALIDATION * (1 if self.table is None else self.data.length)
        chosen = np.arange(0, len(source), max(1, len(source) // most))[:most]
        parts = np.array_split(chosen, max(1, -(-len(chosen) // max(1, most // 8))))
        loss = mean_loss(model, (source.batch(part) for part in parts))
        vectors = WordVectors(model, self.words, self.data)
        frequent = min(1000, len(vectors.words))
        some = [vectors.words[number] for number in samples_of(frequent)]
        near = [" ".join(one.word for one in vectors.nearest(word, 5)) for word in some]
        samples = [Sample(word, "", found) for word, found in zip(some, near, strict=True)]
        return Validation({"loss": loss}, samples)

    def _pieces(self, seed: int) -> WordWindows | CooccurrenceTable:
        if self.table is not None:
            return self.table
        data = self.data
        return WordWindows(
            self.corpus,
            self.words.counts,
            window=data.window,
            subsample=data.subsample,
            length=data.length,
            noise=data.noise,
            seed=seed,
        )


@dataclass(eq=False)
class EmbeddingsPipeline(Pipeline):
    """The words of a run."""

    task: "EmbeddingsTask"
    words: WordList

    def model(self) -> Neighbours | Glove:
        return self.task.model_config.build(self.words.words)

    def predictor(self, model: Neighbours | Glove, settings: PredictionSettings | None = None) -> WordVectors:
        """The vectors: `nearest("word", 5)`, `vector("word")`, `analogy("a", "b", "c")`."""
        asked = NeighbourSettings.of(settings)
        return WordVectors(model, self.words, self.task.data, count=asked.nbest, scores=asked.scores)

    def score(self, model: Neighbours | Glove, asked: Scoring) -> WordsEvaluation:
        path, questions = self.task.asked(asked.split, asked.data)
        try:
            return evaluate(self.predictor(model), questions, title=path.name)
        except DataError as error:
            raise DataError(f"{error}; train on more text, or lower data.min_count", path=path) from None

    def inspection(self, model: Neighbours | Glove, settings: InspectionSettings) -> Inspection:
        return inspect_words(self.predictor(model), settings.input())


class EmbeddingsTask(Task):
    """Learns word vectors from running text."""

    sections: ClassVar = {"data": WordsData, "model": WordsModel}
    evaluation: ClassVar = WordsEvaluation
    evaluates: ClassVar = ("test",)
    target_unit: ClassVar[str] = "word"
    better: ClassVar = {"loss": "lower"}
    prediction_settings: ClassVar = NeighbourSettings
    note: ClassVar[str] = (
        "Loss is the training objective (nats per pair, or GloVe's weighted squared error per cell) on a "
        "fixed part of the training text, since held-out text does not measure word vectors. Score them with "
        "word pairs or analogies: weft evaluate RUN --data FILE."
    )

    data: WordsData
    model_config: WordsModel

    def asked(self, split: Split, data: Path | None) -> tuple[Path, Questions]:
        """The questions of a split or of another file, and where they stand."""
        path = data if data is not None else self.data.questions(split)
        return path, read_questions(path)

    def evaluation_offers(self, split: Split, data: Path | None) -> tuple[ItemKind, ...]:
        """Cosines of pairs, or the words that answer analogies."""
        return ("numbers",) if self.asked(split, data)[1].pairs else ("labels",)

    @property
    def validation_offers(self) -> tuple[ItemKind, ...]:
        return ()

    @property
    def loss_unit(self) -> str:
        return "weighted squared error" if self.model_config.objective == "glove" else "nats"

    def about(self) -> str:
        return f"word vectors by {self.model_config.objective}, on {self.data.describe()}"

    def predict_example(self, sources: Sequence[str]) -> PredictExample | None:
        return super().predict_example(sources) if sources else None

    def small_model(self) -> Neighbours | Glove:
        return self.model_config.build(["a", "b", "ab", "ba"])

    def rehearse(self) -> Loss:
        model = self.small_model()
        if isinstance(model, Glove):
            return model.loss(Cells(torch.tensor([0, 1]), torch.tensor([1, 2]), torch.tensor([0.5, 3.0]), 2))
        words = torch.tensor([[0, 1, 2, 3, 1], [1, 0, 0, 0, 0]])
        lines = torch.tensor([[0, 0, 0, 1, 1], [2, -1, -1, -1, -1]])
        return model.loss(Neighbourhood(words, lines, torch.full_like(words, 2), torch.tensor([[3], [0]]), 6))

    def read(self, progress: Progress) -> list[list[str]]:
        keep_freed()  # every update has new gradients of whole tables
        progress("reading the text", 0, None)
        return list(self.data.lines())

    def saved(self, run: Path) -> Path:
        return run / "tokenizer.words.json"

    def learn(self, corpus: list[list[str]], run: Path, progress: Progress) -> None:
        WordList.learn(corpus, min_count=self.data.min_count).save(self.saved(run))

    def training(
        self, corpus: list[list[str]], pipeline: EmbeddingsPipeline, run: Path, progress: Progress
    ) -> EmbeddingsTraining:
        words, table = pipeline.words, None
        text = Corpus(corpus, words)
        found = f"{text.total:,} words of text, {len(words):,} different ones have vectors"
        if self.model_config.objective == "glove":
            progress("counting co-occurrences", 0, None)
            table = CooccurrenceTable(text, len(words), window=self.data.window)
            found += f", {len(table):,} pairs co-occur"
        progress(found, 0, 0)
        return EmbeddingsTraining(self.data, words, text, table)

    def open(self, run: Path) -> EmbeddingsPipeline:
        return EmbeddingsPipeline(self, WordList.load(self.saved(run)))

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        return check_pairs(*files, pairs=False)
