"""Tagging, made ready: the lexicon of the run, and the sentences while it is trained.

Read next: predictor.py; evaluation.py.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from weft.data.batching import Batches
from weft.data.conllu import Sentence
from weft.errors import DataError
from weft.metrics.f1 import by_class
from weft.metrics.temperature import fitted
from weft.models import Predictor
from weft.nn.embed.contextual import InContext
from weft.nn.embed.words import Words
from weft.tasks.contextual import Standing
from weft.tasks.exported import Exported
from weft.tasks.inspection import Examples, Inspected
from weft.tasks.labels.batch import LabelBatch
from weft.tasks.labels.calibration import LabelCalibration, outdated
from weft.tasks.labels.weights import weights_of
from weft.tasks.lexicon import Lexicon
from weft.tasks.predictor import Place, separated
from weft.tasks.tag.data import TagData
from weft.tasks.tag.evaluation import TagEvaluation, evaluate
from weft.tasks.tag.predictor import Tagger
from weft.tasks.task import Pipeline, Split, Training
from weft.tasks.validation import Sample, Validation, first, mean_loss, samples_of

if TYPE_CHECKING:
    from weft.tasks.tag.task import Tag


class TagTraining(Training):
    """The sentences of a training.

    Args:
        data: the recipe's section.
        lexicon: numbers of words and tags.
        train, valid: tagged sentences; training leaves out those that are too long.
    """

    def __init__(
        self, data: TagData, lexicon: Lexicon, train: Sequence[Sentence], valid: Sequence[Sentence]
    ) -> None:
        self._data = data
        self._lexicon = lexicon
        self.train = train
        self._valid = valid

    def plan(self, seed: int) -> Batches:
        """Batches of sentences of similar length."""
        lengths = np.array([[len(sentence.forms)] * 2 for sentence in self.train])
        rows = self._data.batch_rows or None
        return Batches(lengths, max_tokens=self._data.batch_tokens, max_rows=rows, seed=seed)

    def collate(self, numbers: np.ndarray) -> LabelBatch:
        chosen = [self.train[int(number)] for number in numbers]
        return collate(self._lexicon, [one.forms for one in chosen], [one.tags or [] for one in chosen])

    def validate(self, model: nn.Module) -> Validation:
        """Loss, accuracy on all and on unknown words, mean F1 of the tags.

        The words of a sentence that the model cannot read are wrong, and not in the loss.
        """
        assert isinstance(model, Predictor)
        valid, tagger = self._valid, Tagger(model, self._lexicon, self._data.column)
        places = (Place("validation", one.first) for one in valid)
        tagged, wrong = separated(tagger.attempts_at(one.forms for one in valid), places)
        pairs = list(zip(tagged, valid, strict=True))
        answers = [[""] * len(sentence.forms) if one is None else one.tags for one, sentence in pairs]
        read = [sentence for one, sentence in pairs if one is not None]
        right = total = new_right = new_total = 0
        for sentence, tags in zip(valid, answers, strict=True):
            for form, ours, theirs in zip(sentence.forms, tags, sentence.tags or [], strict=True):
                right, total = right + (ours == theirs), total + 1
                if not self._lexicon.knows(form):
                    new_right, new_total = new_right + (ours == theirs), new_total + 1
        rows = by_class(list(chain(*answers)), list(chain(*(one.tags or [] for one in valid))))
        scores = {
            "loss": self._mean_loss(model, read),
            "accuracy": right / max(1, total),
            "unknown": new_right / max(1, new_total),
            "f1": sum(row.f1 for row in rows) / len(rows),
        }
        samples = [
            Sample(
                " ".join(valid[n].forms),
                " ".join(valid[n].tags or []),
                " ".join(tag or "_" for tag in answers[n]),
            )
            for n in samples_of(len(valid))
        ]
        return Validation(scores, samples, notes=first(wrong))

    def _mean_loss(self, model: Predictor, sentences: Sequence[Sentence]) -> float:
        """Nats a word, over the words whose tag is known."""
        known = [one for one in sentences if -1 not in self._lexicon.encode(one.tags or [])]
        known.sort(key=lambda one: len(one.forms))
        parts = (known[at : at + 64] for at in range(0, len(known), 64))
        return mean_loss(
            model,
            (
                collate(self._lexicon, [one.forms for one in part], [one.tags or [] for one in part])
                for part in parts
            ),
        )


class TagPipeline(Pipeline):
    """The lexicon of a run.

    Args:
        task: the recipe.
        lexicon: numbers of words and tags.
        standing: gives words in context by the frozen model of another run; None for none.
        vectors: of words; the table of a new model begins with them.
        training: the sentences; None for use alone.
        run: where the temperature of the probabilities is kept; None in training.
    """

    task: "Tag"
    training: TagTraining | None

    def __init__(
        self,
        task: "Tag",
        lexicon: Lexicon,
        *,
        standing: Standing | None = None,
        vectors: Mapping[str, np.ndarray] = {},
        training: TagTraining | None = None,
        run: Path | None = None,
    ) -> None:
        self.task = task
        self.lexicon = lexicon
        self.temperature = LabelCalibration.load(run).temperature
        self._run = run
        self.training = training
        self._standing = standing
        self._vectors = vectors

    def model(self) -> Predictor:
        """A new model for this lexicon; its table begins with the given vectors."""
        lexicon, model_config, weights = self.lexicon, self.task.model_config, list[float]()
        context = self._standing.model() if self._standing else None
        if self.training is not None:
            seen = chain(*(one.tags or [] for one in self.training.train))
            weights = weights_of(model_config.class_weights, lexicon.tags, seen)
        sizes = lexicon.num_words, lexicon.num_letters, len(lexicon.tags)
        model = model_config.build(*sizes, context, weights=weights)
        embed = model.embed.words if isinstance(model.embed, InContext) else model.embed
        assert isinstance(embed, Words)
        embed.learn_from(lexicon.word_counts())
        if self._vectors and embed.table is not None:
            with torch.no_grad():
                start = embed.table.weight if embed.fixed is None else torch.zeros_like(embed.fixed)
                for number, word in enumerate(lexicon.words, 2):
                    if word in self._vectors:
                        start[number] = torch.from_numpy(self._vectors[word])
                if embed.fixed is not None:
                    embed.fix(start)
        return model

    def rows(self) -> Mapping[str, Sequence[str]]:
        """See Pipeline.rows; the tags are the rows of the head."""
        heads = ("head.weight", "head.bias", "head.emit.weight", "head.emit.bias")
        embed = "embed" if self._standing is None else "embed.words"
        return {**self.lexicon.rows(embed), **dict.fromkeys(heads, self.lexicon.tags)}

    def predictor(self, model: nn.Module, options: Mapping[str, Any] = {}) -> Tagger:
        """The trained model: `predict("a b c")` gives words with tags."""
        assert isinstance(model, Predictor)
        return Tagger(
            model,
            self.lexicon,
            self.task.data.column,
            probs=bool(options.get("scores")),
            temperature=self.temperature,
        )

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> TagEvaluation:
        """Accuracy on a split or another file; with the baseline if the training data is still there."""
        source, column = self.task.data, self.task.data.column
        sentences = list(source.sentences(split) if data is None else source.at(data))
        train = None
        with suppress(DataError):
            train = list(source.sentences("train"))
        if options.get("calibrate"):
            self._calibrate(model)
        title = source.describe(split) if data is None else f"{data.name} {column}"
        title += outdated(self._run)
        return evaluate(self.predictor(model), sentences, title=title, column=column, train=train)

    def _calibrate(self, model: nn.Module) -> None:
        """Fit the temperature to the words of the validation sentences, and keep it in the run."""
        assert self._run is not None
        valid = [one for one in self.task.data.sentences("valid") if one.tags]
        self.temperature = 1.0
        tagged = self.predictor(model).tag((one.forms for one in valid), probs=True)
        probs = np.concatenate([one.every for one in tagged])
        targets = np.array(self.lexicon.encode(list(chain(*(one.tags or [] for one in valid)))))
        known = targets >= 0
        self.temperature = fitted(np.log(np.maximum(probs[known], 1e-30)), targets[known])
        LabelCalibration(self.temperature).save(self._run)

    def inspected(
        self, model: nn.Module, text: str | None, examples: Examples, options: Mapping[str, Any] = {}
    ) -> Inspected:
        from weft.tasks.tag.inspected import inspected

        return inspected(self, model, text, examples, options)

    def exported(self, model: nn.Module) -> Exported:
        from weft.tasks.tag.exported import exported

        return exported(self, model)


def collate(
    lexicon: Lexicon, sentences: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]
) -> LabelBatch:
    """Sentences of words, and their tags, as a batch."""
    spelled, mask = lexicon.read(sentences)
    target = np.zeros(mask.shape, dtype=np.int64)
    for row, own in enumerate(tags):
        target[row, : len(own)] = lexicon.encode(own)
    return LabelBatch(spelled, mask, torch.from_numpy(target), sum(map(len, sentences)))
