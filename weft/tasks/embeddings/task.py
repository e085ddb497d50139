"""M6, static embeddings: a vector for each word of a text, by word2vec, fastText's n-grams or GloVe.

Read next: data.py, corpus.py, predictor.py, evaluation.py; ../nn/embed/neighbours.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from weft.data.check import check
from weft.data.lines import read_lines
from weft.data.questions import read_questions
from weft.data.report import Report
from weft.errors import ConfigError, DataError, ShapeError
from weft.nn.embed.counts import Cells, Glove
from weft.nn.embed.neighbours import Neighbourhood, Neighbours
from weft.nn.heads.head import Loss
from weft.tasks.each import place
from weft.tasks.embeddings.corpus import Corpus, Pieces, Table, Windows, WordList
from weft.tasks.embeddings.data import WordsData
from weft.tasks.embeddings.evaluation import WordsEvaluation, evaluate
from weft.tasks.embeddings.model import WordsModel
from weft.tasks.embeddings.predictor import WordVectors
from weft.tasks.ready import Ready, Split
from weft.tasks.task import Progress
from weft.tasks.validation import Sample, Validation, samples_of
from weft.tasks.whole import Answer, Whole, unanswered

VALIDATION = 200
"""Pieces of the training text, the same ones always, whose loss is the validation score; cells: 128 times."""

NEAREST = 10


class Embeddings(Whole):
    """Running text to word vectors.

    Args:
        data: where the text comes from.
        model: how vectors are learnt.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": WordsData, "model": WordsModel}
    linewise: ClassVar[bool] = True
    evaluation: ClassVar = WordsEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {"loss": "lower"}
    options: ClassVar[Mapping[str, Sequence[str]]] = {"predict": ("nbest", "scores", "plot")}
    note: ClassVar[str] = (
        "Loss is the training objective (nats a pair, or GloVe's weighted squared error a cell) on a fixed "
        "part of the training text: word vectors are not judged by held-out text. Judge them with word pairs "
        "or analogies: weft evaluate RUN --data FILE."
    )

    def __init__(self, *, data: WordsData, model: WordsModel) -> None:
        self.data = data
        self.parts = model
        self.list: WordList
        self.source: Windows | Table
        self._corpus: Corpus

    @property
    def loss_unit(self) -> str:
        """Of the objective."""
        return "weighted squared error" if self.parts.objective == "glove" else "nats"

    def about(self) -> str:
        """Objective and text."""
        return f"word vectors by {self.parts.objective}, on {self.data.describe()}"

    def has(self, split: Split) -> bool:
        """See Task.has."""
        return split == "valid" or (split == "test" and self.data.test is not None)

    def check_ready(self) -> None:
        """See that the files are there."""
        self.data.open()
        if self.data.test is not None:
            read_questions(self.data.questions("test"))

    def rehearse(self) -> Loss:
        """Two pieces of five words."""
        model = self.parts.build(["a", "b", "ab", "ba"])
        if isinstance(model, Glove):
            return model.loss(Cells(torch.tensor([0, 1]), torch.tensor([1, 2]), torch.tensor([0.5, 3.0]), 2))
        words = torch.tensor([[0, 1, 2, 3, 1], [1, 0, 0, 0, 0]])
        lines = torch.tensor([[0, 0, 0, 1, 1], [2, -1, -1, -1, -1]])
        return model.loss(Neighbourhood(words, lines, torch.full_like(words, 2), torch.tensor([[3], [0]]), 6))

    def prepare(self, run: Path, progress: Progress) -> Ready:
        """Count words unless the run has them; read the text."""
        progress("reading the text", 0, None)
        lines = list(self.data.lines())
        if not _saved(run).exists():
            WordList.learn(lines, min_count=self.data.min_count).save(_saved(run))
        self.open(run)
        self._corpus = Corpus(lines, self.list)
        told = f"{self._corpus.total:,} words of text, {len(self.list):,} different ones have vectors"
        if self.parts.objective == "glove":
            progress("counting which words stand together", 0, None)
            self.source = Table(self._corpus, len(self.list), window=self.data.window)
            told += f", {len(self.source):,} pairs stand together"
        progress(told, 0, 0)
        return self

    def open(self, run: Path) -> Ready:
        """Read the words of the run."""
        self.list = WordList.load(_saved(run))
        return self

    def model(self) -> Neighbours | Glove:
        """A new model for these words."""
        return self.parts.build(self.list.words)

    def plan(self, seed: int) -> Pieces:
        """All of the text, or of the table, in a new order each epoch."""
        rows = self.data.rows
        if self.parts.objective == "glove":
            return Pieces(len(self.source), rows * self.data.length, seed)
        self.source = self._windows(seed)
        return Pieces(len(self.source), rows, seed)

    def collate(self, numbers: np.ndarray) -> Neighbourhood | Cells:
        """Pieces of text, or cells, by number."""
        return self.source.batch(numbers)

    def validate(self, model: nn.Module) -> Validation:
        """The loss on a fixed part of the training text, and what is near some words."""
        assert isinstance(model, Neighbours | Glove)
        source = self.source if isinstance(self.source, Table) else self._windows(0)
        most = VALIDATION * (self.data.length if isinstance(source, Table) else 1)
        chosen = np.arange(0, len(source), max(1, len(source) // most))[:most]
        total = count = 0.0
        device = next(model.parameters()).device
        for part in np.array_split(chosen, max(1, -(-len(chosen) // max(1, most // 8)))):
            loss = model.loss(source.batch(part).to(device))  # type: ignore[arg-type]
            total, count = total + float(loss.total), count + float(loss.count)
        vectors = self.predictor(model)
        some = [
            vectors.words[number] for number in samples_of(min(1000, len(vectors.words)))
        ]  # frequent ones
        near = [" ".join(one.word for one in vectors.nearest(word, 5)) for word in some]
        return Validation(
            {"loss": total / max(1.0, count)},
            [Sample(word, "", found) for word, found in zip(some, near, strict=True)],
        )

    def predictor(self, model: nn.Module) -> WordVectors:
        """The vectors at work: `nearest("word", 5)`, `vector("word")`, `analogy("a", "b", "c")`."""
        assert isinstance(model, Neighbours | Glove)
        return WordVectors(model, self.list, self.data)

    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """For each line, a word, the nearest words; for three, a b c, the words that are to c as b is to a.

        Raises:
            ConfigError: less than one word is asked for.
        """
        vectors, count = self.predictor(model), options.get("nbest", NEAREST)
        if count < 1:
            raise ConfigError(f"--nbest: expected at least 1, got {count}")
        for number, line in enumerate(read_lines(source), 1):
            words = line.split()
            try:
                if len(words) not in (1, 3):
                    raise DataError(f"expected one word, or three (man king woman), got {len(words)}")
                near = (
                    vectors.nearest(words[0], count)
                    if len(words) == 1
                    else vectors.analogy(words[0], words[1], words[2], count)
                )
            except (DataError, ShapeError) as error:
                yield unanswered(place(source, number), error)
                continue
            shown = [
                f"{one.word}:{one.similarity:.4f}" if options.get("scores") else one.word for one in near
            ]
            look = (len(words), [*words, *(one.word for one in near)])
            yield Answer("\t".join([" ".join(words), " ".join(shown)]), look)

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> WordsEvaluation:
        """Similarity of word pairs or analogies, with coverage and baselines; see Task.evaluate."""
        path = data if data is not None else self.data.questions(split)
        questions = read_questions(path)
        try:
            return evaluate(self.predictor(model), questions, title=path.name)
        except DataError as error:
            raise DataError(f"{error}; train on more text, or lower data.min_count", path=path) from None

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Plain text: see weft/data/check.py."""
        return check(*files, pairs=False)

    def _windows(self, seed: int) -> Windows:
        data = self.data
        return Windows(
            self._corpus,
            self.list.counts,
            window=data.window,
            subsample=data.subsample,
            length=data.length,
            seed=seed,
        )


def _saved(run: Path) -> Path:
    return run / "tokenizer.words.json"
