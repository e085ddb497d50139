"""A task on sequence pairs: writes a text for a source text, such as a translation or a summary.

Vocabularies are learnt on the training texts when training begins; tokens are kept in a memory-mapped store.
Read next: data.py, model.py, ready.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from weft.data.joined import Joined
from weft.data.mixture import Mixture
from weft.errors import ConfigError, within
from weft.nn.heads.head import Loss
from weft.tasks.abilities import Direction
from weft.tasks.shared.writing.batch import collate_pairs
from weft.tasks.shared.writing.data import PairData, moved
from weft.tasks.shared.writing.decoding import Decoding
from weft.tasks.shared.writing.glossary import read_glossary
from weft.tasks.shared.writing.model import PairModel
from weft.tasks.shared.writing.prepared import (
    Vocabularies,
    learn,
    shortlist,
    stored,
    vocabularies,
    vocabulary_paths,
)
from weft.tasks.shared.writing.ready import PairPipeline, Pairs, PairTraining
from weft.tasks.task import SPLITS, Progress, Split, Task
from weft.tasks.validation import Validation


class PairTask(Task, ABC):
    """Trains a model on sequence pairs to write the target for a source.

    Args:
        data: the pairs.
        model: encoder and decoder.
        decoding: search settings for the trained model; validation is greedy.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": PairData, "model": PairModel, "decoding": Decoding}

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
        self.data = data
        self.model_config = model
        self.decoding = decoding

    @abstractmethod
    def pipeline(self, known: Vocabularies, training: PairTraining | None) -> PairPipeline:
        """The task with what it has learnt."""

    @abstractmethod
    def scored(self, found: Validation) -> Validation:
        """A validation of greedy outputs with the task's own scores    @classmethod
        def search_space(cls, recipe: Recipe) -> Space:
        return space(recipe)

        @classmethod
        def decoding_space(cls, recipe: Recipe) -> Space:
        return decoding_space(recipe)

        .
        """

    def has(self, split: Split) -> bool:
        return self.data.has(split)

    def rehearse(self) -> Loss:
        """Two pairs with a vocabulary of 19 tokens."""
        model = self.model_config.build(19, 19, one_vocabulary=self.data.vocabulary.shared)
        return model.loss(collate_pairs([[5, 6, 7], [8]], [[9, 10], [11, 12, 13]]))

    def check_ready(self) -> None:
        """Check that all files exist, and that the parts of the model fit together."""
        if self.decoding.glossary is not None:
            read_glossary(self.decoding.glossary)
        with within("model"):
            self.model_config.build(5, 5, one_vocabulary=self.data.vocabulary.shared)
        for split in SPLITS:
            if self.data.has(split):
                self.data.open(split)
        self.data.texts()

    def prepare(self, run: Path, progress: Progress) -> PairPipeline:
        """Learn the vocabularies unless the run has them, then open or build the token store."""
        if not vocabulary_paths(run, self.data)[0].exists():
            learn(self.data, run, progress)
        known, texts = self._known(run), self.data.texts()
        store = Joined(
            [stored(text, self.data, known.reading, known.target, run, progress) for text in texts]
        )
        if self.decoding.shortlist:
            shortlist(known, self.data, progress)
        training = PairTraining(self.data, known, store, Pairs(*self.data.complete("valid")), self.scored)
        plan = training.plan(0)
        if isinstance(plan, Mixture):
            progress(plan.summary([text.name for text in texts]), 0, 0)
        return self.pipeline(known, training)

    def open(self, run: Path) -> PairPipeline:
        """Read the vocabularies of the run."""
        return self.pipeline(self._known(run), None)

    def corpora(self) -> Sequence[Direction]:
        return [Direction("", self.data)]

    def moved(self, folder: Path, train: str, *, tested: bool) -> Mapping[str, Any]:
        return {**moved(folder, train, tested=tested), "mixed": {}}

    def _known(self, run: Path) -> Vocabularies:
        return vocabularies(run, self.data, copies=self.model_config.copies)
