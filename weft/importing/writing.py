"""Write a run from a recipe, vocabularies and tensors, whichever program they come from.

Read next: runs.py, which calls it for checkpoints of transformers.
"""

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from weft.config import dump, read_recipe
from weft.errors import ConfigError, WeftError
from weft.run.training import check_recipe
from weft.store import digests, files, jsonfile, weights
from weft.store.run_directory import FORMAT
from weft.text.vocabulary import Vocabulary
from weft.version import __version__

NEVER = -1e4  # logit of a symbol that the imported model lacks, or that is a duplicate
HINT = "do these settings belong to it?"

TABLES = ("embed.table.weight", "source_embed.table.weight", "head.weight", "head.bias")
"""The tensors of a Generator with a row for each token; the last one is added to the logits."""


class RunParts(NamedTuple):
    """What a run is made from."""

    recipe: dict[str, Any]
    vocabularies: Mapping[str, Vocabulary]  # by the name of their file in the run
    state: Mapping[str, Tensor]  # of the task's model, with rows numbered like the vocabularies
    files: Mapping[str, bytes] = {}  # further files that the task reads


def write_run(run: Path, parts: RunParts, *, kind: str, place: str) -> int:
    """Check and write a run atomically; returns its number of parameters."""
    if run.exists():
        raise ConfigError(f"{run}: already exists; choose another directory with --run")
    run.absolute().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=run.absolute().parent, prefix=".importing-") as name:
        folder = Path(name)
        (folder / "recipe.yaml").write_bytes(dump(parts.recipe).encode())
        for file, vocabulary in parts.vocabularies.items():
            vocabulary.save(folder / file)
        for file, content in parts.files.items():
            (folder / file).write_bytes(content)
        with _placed(folder / "recipe.yaml", place):
            checked = check_recipe(read_recipe(folder / "recipe.yaml"))
            pipeline = checked.task.open(folder)
            with torch.device("meta"):  # settings that do not belong to the tensors may ask for terabytes
                weights.check_fits_model(pipeline.model().state_dict(), parts.state, place, hint=HINT)
            model = pipeline.model()
        weights.check_finite(parts.state, place, "is the checkpoint damaged?")
        model.load_state_dict(parts.state)
        kept = digests.kept_files(folder, checked.task.keeps)
        fits = digests.Fits(kept=kept, recipe=dict(checked.task.recipe))
        packed = weights.pack(model.state_dict(), fits=jsonfile.plain(fits))
        contents = {
            "run.json": files.to_json(
                {"format": FORMAT, "weft": __version__, "torch": torch.__version__, "imported": kind}
            ),
            "recipe.yaml": dump(checked.plain).encode(),
            "model.safetensors": packed,
            weights.START: packed,
        } | {file: (folder / file).read_bytes() for file in (*parts.vocabularies, *parts.files)}
    files.write_directory(run, contents)
    return sum(parameter.numel() for parameter in model.parameters())


@contextmanager
def _placed(recipe: Path, place: str) -> Iterator[None]:
    """Say in errors where the checkpoint is, instead of a line of the recipe that is being written."""
    try:
        yield
    except WeftError as error:
        text = re.sub(rf"{re.escape(str(recipe))}(:\d+)?", place, str(error))
        raise type(error)(text if place in text else f"{place}: {text}") from error


def renumbered(state: Mapping[str, Tensor], orders: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
    """Reorder the rows of tables and biases; missing and duplicate symbols are never chosen.

    An order has the original number of each of Weft's numbers, -1 for a symbol that the checkpoint lacks. The
    last tensor is added to the logits, if it has one number for each token.
    """
    found = dict(state)
    for name, order in orders.items():
        rows = torch.tensor(order)
        found[name] = state[name][torch.where(rows < 0, rows[3], rows)]  # any row will do, it is never used
    if found[name].dim() == 1:  # of the last one
        twice = [place for place in range(4) if order[place] < 0 or order[place] in order[place + 1 : 4]]
        found[name][twice] = NEVER
    return found
