"""ELMo, made ready: the words and letters of the run, and the text while it is trained.

Read next: predictor.py; evaluation.py.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from weft.data.batching import Batches
from weft.data.plain import PlainText, no_words
from weft.nn.embed.contextual import BothWays, Sentences
from weft.tasks.elmo.evaluation import collate, evaluate, nats
from weft.tasks.elmo.predictor import Comparer
from weft.tasks.exported import Exported
from weft.tasks.inspection import Examples, Inspected
from weft.tasks.lexicon import Lexicon
from weft.tasks.running_text import sentences as text
from weft.tasks.running_text.data import ProseData
from weft.tasks.running_text.evaluation import ContextEvaluation, perplexity
from weft.tasks.task import Contextual, Pipeline, Split, Training
from weft.tasks.validation import Sample, Validation, samples_of

if TYPE_CHECKING:
    from weft.tasks.elmo.task import ElmoTask


class ElmoTraining(Training):
    """The text of a training.

    Args:
        data: the recipe's section.
        lexicon: numbers of words and letters.
        train, valid: sentences of words.
    """

    def __init__(
        self, data: ProseData, lexicon: Lexicon, train: list[list[str]], valid: list[list[str]]
    ) -> None:
        self._data = data
        self._lexicon = lexicon
        self._train = train
        self._valid = valid

    def plan(self, seed: int) -> Batches:
        """Lines of similar length."""
        lengths = np.array([[len(words)] * 2 for words in self._train])
        return Batches(lengths, max_tokens=self._data.rows * self._data.length, max_rows=None, seed=seed)

    def collate(self, numbers: np.ndarray) -> Sentences:
        return collate(self._lexicon, [self._train[int(number)] for number in numbers])

    def validate(self, model: nn.Module) -> Validation:
        """Both perplexities on the validation text, and what the forward model expected word by word."""
        assert isinstance(model, BothWays)
        ahead, back = nats(model, self._lexicon, self._valid)
        scores = {"loss": (ahead + back) / 2, "forward": perplexity(ahead), "backward": perplexity(back)}
        comparer, samples = Comparer(model, self._lexicon, self._data), []
        for words in (self._valid[number] for number in samples_of(len(self._valid))):
            best = [comparer.word(int(number)) for number in comparer.ahead(words).argmax(1)]
            samples.append(Sample(" ".join(words), "", " ".join(best)))
        return Validation(scores, samples)


class ElmoPipeline(Pipeline):
    """The words and letters of a run.

    Args:
        task: the recipe.
        lexicon: numbers of words and letters.
        training: the text; None for use alone.
    """

    task: "ElmoTask"

    def __init__(self, task: "ElmoTask", lexicon: Lexicon, *, training: ElmoTraining | None = None) -> None:
        self.task = task
        self.lexicon = lexicon
        self.training = training

    def model(self) -> BothWays:
        """A new model."""
        return self.task.model_config.build(self.lexicon.num_words, self.lexicon.num_letters)

    def rows(self) -> Mapping[str, Sequence[str]]:
        found = self.lexicon.rows("")
        words = next(iter(found.values()))
        return {**found, **dict.fromkeys(("head.weight", "head.bias"), words)}

    def predictor(self, model: nn.Module, options: Mapping[str, Any] = {}) -> Comparer:
        """The trained model: `vectors("a text")`, `compare("bank", "one sentence", "another")`."""
        assert isinstance(model, BothWays)
        return Comparer(model, self.lexicon, self.task.data)

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> ContextEvaluation:
        """Both perplexities, beside that of word frequencies."""
        assert isinstance(model, BothWays)
        source = self.task.data
        lines = source.open(split) if data is None else PlainText(data)
        some = list(text.sentences(source, lines))
        title = source.describe(split) if data is None else data.name
        if not some:
            raise no_words(title)
        return evaluate(model, self.lexicon, some, title=title, length=source.length)

    def contextual(self, model: nn.Module) -> Contextual:
        assert isinstance(model, BothWays)
        return Contextual(lambda sentences: self.lexicon.spell(sentences)[0], model)

    def inspected(
        self, model: nn.Module, text: str | None, examples: Examples, options: Mapping[str, Any] = {}
    ) -> Inspected:
        from weft.tasks.elmo.inspected import inspected

        return inspected(self, model, text, examples, options)

    def exported(self, model: nn.Module) -> Exported:
        from weft.tasks.elmo.exported import exported

        return exported(self, model)
