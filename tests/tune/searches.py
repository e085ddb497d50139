"""A search of a toy classifier for the tests of weft tune."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.commands import labelled
from weft.tune.plan import keep, plan
from weft.tune.study import Study

HERE = importlib.util.find_spec("optuna") is not None
needs_optuna = pytest.mark.skipif(not HERE, reason="OPTUNA IS NOT INSTALLED: pip install 'weft-seq[tune]'")
SPACE = "training.optimiser.lr: {low: 0.001, high: 0.1, log: true}\nmodel.pool: [mean, max]\n"
SHORT = "training.max_updates=6", "training.validate_every=2"


def make(folder: Path) -> Path:
    """A toy recipe in a folder, and space.yaml beside it."""
    (folder / "space.yaml").write_text(SPACE)
    return labelled.make_texts(folder / "toy")


def words(recipe: Path, *more: object) -> list[object]:
    """The command that searches a recipe."""
    folder = recipe.parents[1]
    return ["tune", recipe, *SHORT, "--space", folder / "space.yaml", "--study", folder / "study", *more]


def rows(recipe: Path) -> list[dict[str, str]]:
    """The lines of trials.tsv."""
    lines = (recipe.parents[1] / "study" / "trials.tsv").read_text("utf-8").splitlines()
    return [dict(zip(lines[0].split("\t"), line.split("\t"), strict=True)) for line in lines[1:]]


def studied(recipe: Path, changes: Sequence[str] = (), **settings: bool) -> Study:
    """The study of a recipe, begun."""
    space = recipe.parents[1] / "space.yaml"
    ready = plan(recipe, [*SHORT, *changes], recipe.parents[1] / "study", space=space)
    keep(ready)
    study = Study(ready, "", "study", 1, **settings)
    study.begin()
    return study
