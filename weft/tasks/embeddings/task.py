"""Static embeddings: a vector for each word of a text, by word2vec, fastText's n-grams or GloVe.

Read next: data.py, corpus.py, ready.py, predictor.py, evaluation.py; ../../nn/embed/neighbours.py.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import torch

from weft.data.check import check
from weft.data.questions import read_questions
from weft.data.report import Report
from weft.native.memory import keep_freed
from weft.nn.embed.counts import Cells, Glove
from weft.nn.embed.neighbours import Neighbourhood
from weft.nn.heads.head import Loss
from weft.tasks.embeddings.corpus import Corpus, Table, WordList
from weft.tasks.embeddings.data import WordsData
from weft.tasks.embeddings.evaluation import WordsEvaluation
from weft.tasks.embeddings.model import WordsModel
from weft.tasks.embeddings.ready import EmbeddingsPipeline, EmbeddingsTraining
from weft.tasks.task import Progress, Split, Task


class Embeddings(Task):
    """Learns word vectors from running text.

    Args:
        data: the text.
        model: the objective.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": WordsData, "model": WordsModel}
    evaluation: ClassVar = WordsEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {"loss": "lower"}
    options: ClassVar[Mapping[str, Sequence[str]]] = {"predict": ("nbest", "scores", "plot")}
    note: ClassVar[str] = (
        "Loss is the training objective (nats per pair, or GloVe's weighted squared error per cell) on a "
        "fixed part of the training text, since held-out text does not measure word vectors. Score them with "
        "word pairs or analogies: weft evaluate RUN --data FILE."
    )

    def __init__(self, *, data: WordsData, model: WordsModel) -> None:
        self.data = data
        self.model_config = model

    @property
    def loss_unit(self) -> str:
        """The objective's unit."""
        return "weighted squared error" if self.model_config.objective == "glove" else "nats"

    def about(self) -> str:
        """Objective and text."""
        return f"word vectors by {self.model_config.objective}, on {self.data.describe()}"

    def has(self, split: Split) -> bool:
        return split == "valid" or (split == "test" and self.data.test is not None)

    def check_ready(self) -> None:
        """Check that the files exist."""
        self.data.open()
        if self.data.test is not None:
            read_questions(self.data.questions("test"))

    def rehearse(self) -> Loss:
        """Two pieces of five words."""
        model = self.model_config.build(["a", "b", "ab", "ba"])
        if isinstance(model, Glove):
            return model.loss(Cells(torch.tensor([0, 1]), torch.tensor([1, 2]), torch.tensor([0.5, 3.0]), 2))
        words = torch.tensor([[0, 1, 2, 3, 1], [1, 0, 0, 0, 0]])
        lines = torch.tensor([[0, 0, 0, 1, 1], [2, -1, -1, -1, -1]])
        return model.loss(Neighbourhood(words, lines, torch.full_like(words, 2), torch.tensor([[3], [0]]), 6))

    def prepare(self, run: Path, progress: Progress) -> EmbeddingsPipeline:
        """Read the text; count its words unless the run has them."""
        keep_freed()  # every update has new gradients of whole tables
        progress("reading the text", 0, None)
        lines = list(self.data.lines())
        if not _saved(run).exists():
            WordList.learn(lines, min_count=self.data.min_count).save(_saved(run))
        words = WordList.load(_saved(run))
        corpus, table = Corpus(lines, words), None
        found = f"{corpus.total:,} words of text, {len(words):,} different ones have vectors"
        if self.model_config.objective == "glove":
            progress("counting co-occurrences", 0, None)
            table = Table(corpus, len(words), window=self.data.window)
            found += f", {len(table):,} pairs co-occur"
        progress(found, 0, 0)
        return EmbeddingsPipeline(self, words, training=EmbeddingsTraining(self.data, words, corpus, table))

    def open(self, run: Path) -> EmbeddingsPipeline:
        """Read the words of the run."""
        return EmbeddingsPipeline(self, WordList.load(_saved(run)))

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Check plain text; see weft/data/check.py."""
        return check(*files, pairs=False)


def _saved(run: Path) -> Path:
    return run / "tokenizer.words.json"
