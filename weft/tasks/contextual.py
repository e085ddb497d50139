"""Words in context from another run, which is read once and saved in the new run.

A task calls PretrainedContext.check before a run is made, begin in open_for_training, and open in open.
Read next: ../nn/embed/contextual.py, `InContext`; elmo/task.py and masked/task.py, which provide such words.
"""

import copy
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.nn.embed.contextual import Context
from weft.tasks.task import ContextSource, RunOpener

FOLDER = "contextual"
"""The folder in a run with the other run's recipe and vocabularies, but not its weights."""


class PretrainedContext:
    """The model of another run: `made` reads sentences, `weights` are its own where training starts."""

    def __init__(self, made: ContextSource, weights: dict[str, Tensor] | None = None) -> None:
        self._made = made
        self._weights = weights

    @staticmethod
    def check(source: Path, runs: RunOpener) -> None:
        """Check that the other run exists and provides words in context."""
        if not (source / "recipe.yaml").is_file():
            raise CheckpointError(
                "model.embedding.contextual: expected a run of the task elmo or masked, got "
                f"{source} without a recipe.yaml; name such a run, or train one: weft train RECIPE "
                f"--run {source}"
            )
        other = runs.trained(source)
        other.pipeline.contextual(other.model)

    @classmethod
    def begin(cls, source: Path, runs: RunOpener, run: Path) -> "PretrainedContext":
        """Read the weights of the other run, and copy the files that rebuild its model into this one.

        A resumed run has these files, and the weights in its checkpoint; the other run may be gone.
        """
        resumed = any((run / "checkpoints").glob("step-*")) or not (source / "recipe.yaml").is_file()
        if resumed and (run / FOLDER / "recipe.yaml").is_file():
            return cls.open(runs, run)
        other = runs.trained(source)
        weights = other.pipeline.contextual(other.model).model.state_dict()
        folder = run / FOLDER
        folder.mkdir(exist_ok=True)
        for path in (*sorted(source.glob("tokenizer*")), source / "run.json", source / "recipe.yaml"):
            shutil.copyfile(path, folder / path.name)
        return cls(_rebuilt(runs, run), weights)

    @classmethod
    def open(cls, runs: RunOpener, run: Path) -> "PretrainedContext":
        """The other run's model, built from the files saved in this run."""
        return cls(_rebuilt(runs, run))

    def model(self) -> Context:
        """A new model."""
        model = copy.deepcopy(self._made.model)
        if self._weights is not None:
            model.load_state_dict(self._weights)
        return model

    def read(self, sentences: Sequence[Sequence[str]]) -> Any:
        """Sentences of words, in the form that the model reads."""
        return self._made.read(sentences)


def _rebuilt(runs: RunOpener, run: Path) -> ContextSource:
    other = runs.untrained(run / FOLDER)
    return other.pipeline.contextual(other.model)


def whole_words(kind: str) -> None:
    """Check that the vocabulary consists of words."""
    if kind not in ("word", "space"):
        raise ConfigError(
            f"model: embedding.contextual gives vectors of words, but data.vocabulary.kind is {kind}; set it "
            "to word, or to space for tokenised text"
        )


def not_in_a_graph() -> ConfigError:
    """Why a model that reads words in context cannot be exported."""
    return ConfigError(
        "embedding: contextual: words in context come from another run, which a graph cannot hold; "
        "serve the run with weft serve"
    )
