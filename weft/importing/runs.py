"""Turn a checkpoint directory into a run with recipe, vocabularies and weights, like any other run.

Encoder-decoders (Marian, BART) become translators, GPT-2 a language model.
Read next: translators.py, vocabularies.py.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from weft import files
from weft.config import dump, read_recipe
from weft.errors import ConfigError
from weft.importing.checkpoint import Foreign, read
from weft.importing.families import FAMILIES, built
from weft.importing.gpt2 import settings as gpt2_settings
from weft.importing.translators import sides
from weft.importing.vocabularies import vocabularies
from weft.models import Generator
from weft.run import FORMAT, Begun, check
from weft.text.vocabulary import Vocabulary
from weft.train import weights
from weft.version import __version__

NEVER = -1e4
"""Logit of a symbol that the imported model lacks, or that is a duplicate."""

RUNS = ("marian", "bart", "gpt2")


def import_run(
    directory: Path,
    run: Path,
    *,
    source: str | None = None,
    target: str | None = None,
    train: str = "train",
    valid: str = "valid",
) -> str:
    """Turn a checkpoint directory (config.json, model.safetensors, tokenizer files) into a run.

    Args:
        directory: a checkpoint of the transformers library.
        run: the run directory to create.
        source, target: language codes, for translators only.
        train, valid: data files for further training; for a translator, their prefixes.

    Raises:
        CheckpointError: files or tensors are missing, extra or damaged.
        ConfigError: an unsupported family, missing or superfluous languages, or the run already exists.
    """
    foreign = read(directory)
    family = foreign.setting("model_type")
    _check(directory, family, source, target)
    if run.exists():
        raise ConfigError(f"{run}: is there already; choose another directory with --run")
    theirs = built(foreign)
    assert isinstance(theirs, Generator)
    files_of = {"train": train, "valid": valid}
    if family == "gpt2":
        plain, names = _language(foreign, files_of), {"tokenizer.json": False}
    else:
        plain = _translate(foreign, {"source": source, "target": target, **files_of}, bart=family == "bart")
        names = {"tokenizer.source.json": True, "tokenizer.target.json": False}
    found, order = vocabularies(foreign, names)
    run.absolute().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=run.absolute().parent, prefix=".importing-") as name:
        folder = Path(name)
        begun = _checked(folder, plain, found)
        model = begun.task.open(folder).model()
        weights.restore(model, _renumbered(theirs.state_dict(), order), str(directory))
        packed = weights.pack(model.state_dict())
        contents = {
            "run.json": files.to_json(
                {"format": FORMAT, "weft": __version__, "torch": torch.__version__, "imported": family}
            ),
            "recipe.yaml": dump(begun.plain).encode(),
            "model.safetensors": packed,
            weights.START: packed,
        } | {file: (folder / file).read_bytes() for file in found}
    files.write_directory(run, contents)
    count = sum(parameter.numel() for parameter in model.parameters())
    return (
        f"{run}: a {family} of {count:,} parameters and {len(order):,} tokens, for the task {plain['task']}"
    )


def _check(directory: Path, family: str, source: str | None, target: str | None) -> None:
    """Check that the family can become a run, and that it has languages exactly if it needs them."""
    if family not in RUNS:
        raise ConfigError(
            f"{directory / 'config.json'}: model_type: expected one of {', '.join(RUNS)}, got {family}; "
            "from Python, weft.importing.families.import_model reads " + ", ".join(FAMILIES)
        )
    if (family == "gpt2") != (source is None and target is None) or (source is None) != (target is None):
        need = "takes neither --source nor --target" if family == "gpt2" else "needs --source and --target"
        raise ConfigError(f"{directory}: a {family} {need}, got {source} and {target}")


def _checked(folder: Path, plain: dict[str, Any], vocabularies: Mapping[str, Vocabulary]) -> Begun:
    """Write the recipe and the vocabularies to a directory; return the checked recipe."""
    (folder / "recipe.yaml").write_bytes(dump(plain).encode())
    for file, vocabulary in vocabularies.items():
        vocabulary.save(folder / file)
    return check(read_recipe(folder / "recipe.yaml"))


def _translate(foreign: Foreign, data: dict[str, Any], *, bart: bool) -> dict[str, Any]:
    longest = min(128, foreign.setting("max_position_embeddings") - 1)  # tokens; one position is for <sos>
    parts = sides(foreign, entry_norm=bart)
    scaled = bool(foreign.config.get("scale_embedding", False))
    embedding = {"size": foreign.setting("d_model"), "dropout": 0.0, "shared": False, "scaled": scaled}
    return {
        "task": "translate",
        "data": {**data, "vocabulary": {"shared": False}, "max_length": longest},
        "model": {
            **{side: {"use": "transformer", **settings} for side, settings in parts.items()},
            "embedding": embedding,
        },
        "training": {"max_epochs": 3},
    }


def _language(foreign: Foreign, data: dict[str, Any]) -> dict[str, Any]:
    decoder = gpt2_settings(foreign)
    dropout = foreign.setting("embd_pdrop", default=0.1)
    return {
        "task": "language",
        "data": {**data, "batches": "lines", "length": min(128, decoder["max_length"])},
        "model": {
            "decoder": {"use": "transformer", **decoder},
            "embedding": {"size": decoder["size"], "dropout": dropout, "scaled": False},
        },
        "training": {"max_epochs": 3},
    }


def _renumbered(state: dict[str, Tensor], order: list[int]) -> dict[str, Tensor]:
    """Reorder the rows of tables and biases; duplicate symbols get a logit that is never chosen."""
    rows = torch.tensor(order)
    twice = [place for place in range(4) if order[place] < 0 or order[place] in order[place + 1 : 4]]
    rows = torch.where(rows < 0, rows[3], rows)  # any row will do, it is never used
    found = dict(state)
    for name in ("embed.table.weight", "source_embed.table.weight", "head.weight", "head.bias"):
        found[name] = state[name][rows]
    found["head.bias"][twice] = NEVER
    return found
