"""Runs with random weights, as small as they can be; their outputs have words, and end."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from weft.config import dump, read_recipe
from weft.data.corpora import corpus
from weft.run.training import check_recipe
from weft.store import files, weights
from weft.store.run_directory import FORMAT
from weft.text.vocabulary import EOS, Vocabulary
from weft.version import __version__

SIDE = {"use": "transformer", "size": 12, "num_layers": 2, "num_heads": 2, "inner": 17, "dropout": 0.0}
RECURRENT = {"use": "recurrent", "cell": "gru", "sizes": [7]}
SHARED = {"kind": "bpe", "size": 211, "shared": True}
TEXTS = [side for row in corpus("libreoffice-help", "en", "es", "valid") for side in row[1:3]][:200]


def translator(
    folder: Path,
    *,
    encoder: dict[str, Any] | None = None,
    decoder: dict[str, Any] | None = None,
    embedding: dict[str, Any] | None = None,
    vocabulary: dict[str, Any] | None = None,
    data: dict[str, Any] | None = None,
    decoding: dict[str, Any] | None = None,
    end: float = 2.0,
    **both: Any,
) -> Path:
    """A translator; `both` are settings of encoder and decoder."""
    return made(
        folder,
        {
            "task": "translate",
            "data": {
                "corpus": "libreoffice-help",
                "source": "en",
                "target": "es",
                "vocabulary": SHARED | (vocabulary or {}),
                **(data or {}),
            },
            "model": {
                "encoder": encoder if "cell" in (encoder or {}) else SIDE | both | (encoder or {}),
                "decoder": decoder if "cell" in (decoder or {}) else SIDE | both | (decoder or {}),
                "embedding": {"size": 12, **(embedding or {})},
            },
            "decoding": {"beam": 3, "length_penalty": 0.6, **(decoding or {})},
        },
        end,
    )


def language(
    folder: Path,
    *,
    decoder: dict[str, Any] | None = None,
    embedding: dict[str, Any] | None = None,
    vocabulary: dict[str, Any] | None = None,
    data: dict[str, Any] | None = None,
    decoding: dict[str, Any] | None = None,
    end: float = 2.0,
) -> Path:
    """A language model."""
    return made(
        folder,
        {
            "task": "language",
            "data": {
                "corpus": "libreoffice-help",
                "language": "en",
                "vocabulary": {"kind": "bpe", "size": 211, **(vocabulary or {})},
                "batches": "windows",
                "length": 64,
                **(data or {}),
            },
            "model": {
                "decoder": SIDE | (decoder or {}),
                "embedding": {"size": 12, **(embedding or {})},
            },
            "decoding": {"search": "beam", "beam": 3, "length_penalty": 0.6, **(decoding or {})},
        },
        end,
    )


def masked(folder: Path, *, encoder: dict[str, Any] | None = None) -> Path:
    """A masked language model."""
    return made(
        folder,
        {
            "task": "masked",
            "data": {
                "corpus": "libreoffice-help",
                "language": "en",
                "vocabulary": {"kind": "bpe", "size": 211},
                "length": 64,
            },
            "model": {"encoder": SIDE | (encoder or {}), "size": 12},
        },
        0.0,
    )


def made(folder: Path, plain: Mapping[str, Any], end: float) -> Path:
    """Write a run: recipe, vocabularies, and weights that are far from where training begins."""
    folder.mkdir(parents=True)
    (folder / "recipe.yaml").write_bytes(dump({**plain, "training": {"max_epochs": 1}}).encode())
    checked = check_recipe(read_recipe(folder / "recipe.yaml"))
    data: Any = checked.task.data  # type: ignore[attr-defined]
    how = {name: getattr(data.vocabulary, name) for name in ("kind", "size", "form", "lowercase")}
    known = Vocabulary.train(TEXTS, **how)
    names = ["tokenizer.json"]
    if not getattr(data.vocabulary, "shared", True):
        names = ["tokenizer.source.json", "tokenizer.target.json"]
    for number, name in enumerate(names):
        (Vocabulary.train(TEXTS[:100], **how) if number else known).save(folder / name)
    torch.manual_seed(5)
    model = checked.task.open(folder).model()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(len(name)))
            size = 0.3 if parameter.dim() == 1 or "embed" in name or "head" in name else 0.5
            parameter += size * noise
            if name.endswith("head.bias"):
                parameter[EOS] += end
    about = {"format": FORMAT, "weft": __version__, "torch": torch.__version__}
    (folder / "run.json").write_bytes(files.to_json(about))
    (folder / "recipe.yaml").write_bytes(dump(checked.plain).encode())
    (folder / "model.safetensors").write_bytes(weights.pack(model.state_dict()))
    return folder


def report(text: str) -> tuple[float, ...]:
    """Nats, equal outputs of greedy and of beam search, and those that differ because they were cut."""
    nats = re.search(r"at most (\S+) nats", text)
    equal = re.search(r"greedy (\d+) of 20, beam 3: (\d+) of 20(?:, (\d+) of the others)?", text)
    assert nats and equal, text
    return (float(nats[1]), *(int(one) for one in equal.groups() if one))
