"""A task that stands on the words in context of another run, which is read once and kept in the new one.

    standing = Standing(path_of_the_run)
    standing.prepare(task, run);  standing.open(task, run)
    standing.read(sentences), standing.model()

Read next: ../../nn/embed/contextual.py, `InContext`; ../../elmo/task.py and ../../masked/task.py, which give
such words.
"""

import copy
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.nn.embed.contextual import Context
from weft.tasks.task import Contextual, Task

FOLDER = "contextual"
"""Of a run: the recipe and the vocabularies of the run that it stands on; the weights are in its own."""


class Standing:
    """The frozen model of another run.

    Args:
        source: the other run; it is needed when training begins, and never again.
    """

    def __init__(self, source: Path) -> None:
        self.source = source
        self._made: Contextual
        self._weights: dict[str, Tensor] | None = None

    def look(self, task: Task) -> None:
        """See that the other run is there, and has words in context.

        Raises:
            CheckpointError: it is no run, or not yet trained.
            ConfigError: it is a run of another task.
        """
        if not (self.source / "recipe.yaml").is_file():
            raise CheckpointError(
                f"{self.source}: is not a run of the task elmo or masked (it has no recipe.yaml); train "
                "one with recipes/elmo or recipes/masked"
            )
        other = task.trained(self.source)
        other.task.contextual(other.model)

    def prepare(self, task: Task, run: Path) -> None:
        """Read the other run's weights; keep in this one what is needed to build its model again."""
        other = task.trained(self.source)
        self._weights = other.task.contextual(other.model).model.state_dict()
        folder = run / FOLDER
        folder.mkdir(exist_ok=True)
        for path in (
            *sorted(self.source.glob("tokenizer*")),
            *map(self.source.joinpath, ("run.json", "recipe.yaml")),
        ):
            shutil.copyfile(path, folder / path.name)

    def open(self, task: Task, run: Path) -> None:
        """Build the other model from what the run keeps of it."""
        other = task.untrained(run / FOLDER)
        self._made = other.task.contextual(other.model)

    def model(self) -> Context:
        """A new model; with its weights where training begins, otherwise they come with the run's own."""
        model = copy.deepcopy(self._made.model)
        if self._weights is not None:
            model.load_state_dict(self._weights)
        return model

    def read(self, sentences: Sequence[Sequence[str]]) -> Any:
        """Sentences of words as the model reads them."""
        return self._made.read(sentences)


def whole_words(kind: str) -> None:
    """Refuse a vocabulary whose pieces are no words.

    Raises:
        ConfigError: what to set instead.
    """
    if kind not in ("word", "space"):
        raise ConfigError(
            f"model: embedding.contextual gives vectors of words, and data.vocabulary.kind is {kind}; set it "
            "to word, or to space for text that is tokenised already"
        )
