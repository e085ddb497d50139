"""Tagging: a tag for each word of a sentence, such as its part of speech.

Read next: data.py, ../lexicon.py, model.py, ready.py, predictor.py, evaluation.py.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from weft.data.conllu import read_sentences
from weft.data.report import Report
from weft.data.vectors import read_vectors
from weft.errors import CheckpointError, ConfigError, DataError, within
from weft.nn.heads.head import Loss
from weft.nn.positions import most_positions
from weft.tasks import contextual as standing
from weft.tasks.contextual import Standing
from weft.tasks.lexicon import Lexicon
from weft.tasks.space import Recipe, Space
from weft.tasks.tag.check import check_tags
from weft.tasks.tag.data import TagData
from weft.tasks.tag.evaluation import TagEvaluation
from weft.tasks.tag.model import TagModel
from weft.tasks.tag.ready import TagPipeline, TagTraining, collate
from weft.tasks.tag.space import space
from weft.tasks.task import SPLITS, Progress, Split, Task


class Tag(Task):
    """A tagger, from tagged sentences.

    Args:
        data: where sentences come from.
        model: what reads them.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": TagData, "model": TagModel}
    options: ClassVar[Mapping[str, Sequence[str]]] = {"predict": ("scores",), "evaluate": ("calibrate",)}
    note: ClassVar[str] = (
        "accuracy is the share of words with the right tag, unknown the same for words that training never "
        "saw, f1 the mean F1 of the tags, loss is nats per word."
    )
    evaluation: ClassVar = TagEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "accuracy": "higher",
        "unknown": "higher",
        "f1": "higher",
    }
    suffixes: ClassVar[Sequence[str]] = (".conllu",)

    def __init__(self, *, data: TagData, model: TagModel) -> None:
        self.data = data
        self.model_config = model

    def about(self) -> str:
        """The column and the file."""
        return f"{self.data.column} tags, on {Path(self.data.train).name}"

    @classmethod
    def search_space(cls, recipe: Recipe) -> Space:
        return space(recipe)

    def has(self, split: Split) -> bool:
        return self.data.has(split)

    def check_ready(self) -> None:
        """Check that the parts fit together and the files exist."""
        with within("model"):
            self.model_config.build(5, 5, 3)
        for split in SPLITS:
            if self.data.has(split):
                next(read_sentences(self.data.file(split), column=self.data.column), None)
        if self.model_config.embedding.contextual is not None:
            standing.check_ready(self.model_config.embedding.contextual, self)
        vectors, own = self.model_config.embedding.vectors, self.model_config.embedding.size
        if vectors is not None:
            _, size = read_vectors(vectors, ())
            if size != own:
                raise ConfigError(
                    f"model: embedding.size is {own}, but the vectors of {vectors} have "
                    f"{size} numbers; set embedding.size: {size}"
                )

    def rehearse(self) -> Loss:
        """Two sentences of three words and one."""
        lexicon = Lexicon(["a", "b"], [3, 1], ["a", "b"], ["X", "Y", "Z"], lowercase=True)
        model = self.model_config.build(lexicon.num_words, lexicon.num_letters, 3)
        return model.loss(collate(lexicon, [["a", "b", "ab"], ["b"]], [["X", "Y", "Z"], ["Y"]]))

    def prepare(self, run: Path, progress: Progress) -> TagPipeline:
        """Learn the lexicon, unless the run has one, and read the sentences."""
        train = list(self.data.sentences("train"))
        if not train:
            raise DataError("expected sentences to train on, got none", path=self.data.file("train"))
        given = self.model_config.embedding.vectors
        vectors: dict[str, np.ndarray] = {}
        if given is not None:
            progress("reading word vectors", 0, None)
            vectors, _ = read_vectors(given)
        contextual = self.model_config.embedding.contextual
        stood = None if contextual is None else standing.begin(contextual, self, run)
        if not _saved(run).exists():
            learnt = Lexicon.learn(
                train, lowercase=self.data.lowercase, min_count=self.data.min_count, more=vectors
            )
            learnt.save(_saved(run))
        lexicon = Lexicon.load(_saved(run))
        positions = most_positions(self.model_config.build(5, 5, 3))
        most = min(self.data.max_length, positions or self.data.max_length)
        kept = [sentence for sentence in train if len(sentence.forms) <= most]
        progress(
            f"training sentences: {len(kept):,} of {len(train):,} kept "
            f"({len(train) - len(kept):,} longer than {most} words), "
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
                f"{_saved(run)}: expected every tag of {self.data.file('train')}, got no "
                f"{min(unknown)!r}; the file or the data was changed: restore it, or train with another --run"
            )
        training = TagTraining(self.data, lexicon, kept, list(self.data.sentences("valid")))
        return self._ready(lexicon, stood, vectors=vectors, training=training)

    def open(self, run: Path) -> TagPipeline:
        """Read the lexicon of the run."""
        stood = None if self.model_config.embedding.contextual is None else standing.reopen(self, run)
        return self._ready(Lexicon.load(_saved(run)), stood, run=run)

    def _ready(self, lexicon: Lexicon, stood: Standing | None, **more: Any) -> TagPipeline:
        if stood is not None:
            lexicon.context = stood.read
        return TagPipeline(self, lexicon, standing=stood, **more)

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Check tagged text; see check.py."""
        return check_tags(files)


def _saved(run: Path) -> Path:
    return run / "tokenizer.tags.json"
