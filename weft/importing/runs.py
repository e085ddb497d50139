"""A checkpoint directory becomes a run: recipe, vocabularies, weights; used and trained like any other.

Encoder-decoders (Marian, BART) become translators. Read next: translators.py, ../text/imported.py.
"""

import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from weft import __version__
from weft.config import dump, read_recipe
from weft.errors import ConfigError
from weft.importing.checkpoint import Foreign, read
from weft.importing.families import FAMILIES
from weft.importing.translators import sides
from weft.models import Generator
from weft.run import FORMAT, check
from weft.text.imported import Imported, renumbered
from weft.train import files, weights

NEVER = -1e4
"""Logit of a symbol that the imported model lacks, or has under another number already."""

TRANSLATORS = ("marian", "bart")


def import_run(directory: Path, run: Path, *, source: str, target: str, train: str, valid: str) -> str:
    """Turn a checkpoint directory (config.json, model.safetensors, tokenizer.json) into a run.

    Args:
        directory: of the transformers library.
        run: the run directory to make.
        source, target: language codes.
        train, valid: prefixes of files to train on, should it be trained on.

    Returns:
        What was made, in a sentence.

    Raises:
        CheckpointError: files or tensors are missing, extra or damaged.
        ConfigError: a family that makes no run, or the run is there already.
    """
    foreign = read(directory)
    family = foreign.setting("model_type")
    if family not in TRANSLATORS:
        raise ConfigError(
            f"{directory / 'config.json'}: model_type: {family} came, {' and '.join(TRANSLATORS)} become "
            "runs; from Python weft.importing.families.import_model gives the model of " + ", ".join(FAMILIES)
        )
    if run.exists():
        raise ConfigError(f"{run}: is there already; choose another directory with --run")
    theirs = FAMILIES[family](foreign)
    assert isinstance(theirs, Generator)
    content, order = renumbered(
        directory / "tokenizer.json",
        foreign.setting("vocab_size"),
        pad=foreign.config.get("pad_token_id"),
        start=foreign.setting("decoder_start_token_id"),
        end=foreign.setting("eos_token_id"),
    )
    longest = min(128, foreign.setting("max_position_embeddings") - 1)  # tokens; <sos> takes a position too
    data = {"source": source, "target": target, "train": train, "valid": valid, "max_length": longest}
    plain = {
        "task": "translate",
        "data": {**data, "vocabulary": {"shared": False}},
        "model": _model_section(foreign, entry_norm=family == "bart"),
        "training": {"max_epochs": 3},
    }
    run.absolute().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=run.absolute().parent, prefix=".importing-") as name:
        made = Path(name)
        (made / "recipe.yaml").write_bytes(dump(plain).encode())
        begun = check(read_recipe(made / "recipe.yaml"))
        Imported(content, order, framed=True).save(made / "tokenizer.source.json")
        Imported(content, order, framed=False).save(made / "tokenizer.target.json")
        begun.task.open(made)
        model = begun.task.model()
        weights.restore(model, _renumbered(theirs.state_dict(), order), str(directory))
        packed = weights.pack(model.state_dict())
        contents = {
            "run.json": files.to_json(
                {"format": FORMAT, "weft": __version__, "torch": torch.__version__, "imported": family}
            ),
            "recipe.yaml": dump(begun.plain).encode(),
            "model.safetensors": packed,
            weights.START: packed,
        } | {path.name: path.read_bytes() for path in made.glob("tokenizer*.json")}
    files.write_directory(run, contents)
    count = sum(parameter.numel() for parameter in model.parameters())
    return f"{run}: a {family} of {count:,} parameters and {len(order):,} tokens, {source} to {target}"


def _model_section(foreign: Foreign, *, entry_norm: bool) -> dict[str, Any]:
    parts = sides(foreign, entry_norm=entry_norm)
    return {
        **{side: {"use": "transformer", **settings} for side, settings in parts.items()},
        "embedding": {
            "size": foreign.setting("d_model"),
            "dropout": 0.0,
            "shared": False,
            "tied": True,
            "scaled": bool(foreign.config.get("scale_embedding", False)),
        },
    }


def _renumbered(state: dict[str, Tensor], order: list[int]) -> dict[str, Tensor]:
    """Tables and biases with their rows in the new order; symbols that stand twice are never written."""
    rows = torch.tensor(order)
    twice = [place for place in range(4) if order[place] < 0 or order[place] in order[place + 1 : 4]]
    rows = torch.where(rows < 0, rows[3], rows)  # whatever it is, it is never read and never written
    found = dict(state)
    for name in ("embed.table.weight", "source_embed.table.weight", "head.weight", "head.bias"):
        found[name] = state[name][rows]
    found["head.bias"][twice] = NEVER
    return found
