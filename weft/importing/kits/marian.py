"""Marian's model.npz: Transformers, and Transformers whose decoder has SSRUs in place of self-attention.

The settings are in the file itself, as text. The vocabularies (.spm or .yml) are beside it, or the user names
them. Read next: marian_parts.py, marian_text.py.

Source: Junczys-Dowmunt et al. 2018; Kim et al. 2019; marian-dev 1.12.
"""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft.config import text
from weft.errors import CheckpointError, ConfigError
from weft.importing.kits.assembling import ToolkitTranslator, assembled
from weft.importing.kits.kit import CheckpointHints, Kit
from weft.importing.kits.mapping import SOURCE, TARGET
from weft.importing.kits.marian_parts import MarianModel, origins_of
from weft.importing.kits.marian_text import decoding_of, vocabularies_of
from weft.importing.writing import RunParts
from weft.text.vocabulary import SOS

SETTINGS = "special:model.yml"
BINARY = b"\x01" + bytes(7)  # a version: the first 8 bytes of model.bin
EXPANSION, SMALL = 50, 1 << 20  # bytes of tensors per byte of the file, and bytes that are always allowed


def recognises(path: Path) -> bool:
    """Whether it is a file of Marian, or a directory with one .npz of Marian."""
    file = _file(path)
    if file is None:
        return False
    if file.suffix == ".bin":
        with open(file, "rb") as binary:
            return binary.read(len(BINARY)) == BINARY
    try:
        with zipfile.ZipFile(file) as archive:
            return f"{SETTINGS}.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return path.is_file()  # a damaged .npz; `read` says so


def read(given: CheckpointHints) -> RunParts:
    """The run of a model.npz.

    Raises:
        CheckpointError: a file is missing, damaged, or does not belong to the others.
        ConfigError: a binary model, or a setting that Weft's parts cannot express.
    """
    path = _file(given.path)
    assert path is not None
    if path.suffix == ".bin":
        raise ConfigError(
            f"{path}: expected model.npz, got Marian's binary format; import the .npz that it was made from, "
            "or convert a float32 binary with marian-conv --from model.bin --to model.npz"
        )
    model = _model(path)
    ours, embedding, origins = origins_of(model)
    found = vocabularies_of(given, path)
    translator = ToolkitTranslator(ours, embedding, origins, model.state, model.place, decoding_of(path))
    parts = assembled(given, translator, found)
    state = dict(parts.state)
    for name in (SOURCE, TARGET, *(["head.weight"] if embedding["tied"] else [])):
        state[name] = state[name].clone()
        state[name][SOS] = 0.0  # Marian's first input is a vector of zeros
    return parts._replace(state=state)


KIT = Kit("Marian", "a model.npz", recognises, read)


def _file(path: Path) -> Path | None:
    """The file itself, or the only .npz in a directory (model.npz, if there are several)."""
    if path.is_file():
        return path if path.suffix in (".npz", ".bin") else None
    files = sorted(path.glob("*.npz"))
    named = [file for file in files if file.name == "model.npz"]
    return (named + files)[0] if named or len(files) == 1 else None


def _model(path: Path) -> MarianModel:
    """The settings and the tensors, in float32.

    Raises:
        CheckpointError: the file is damaged, contains objects, or would be far larger in memory.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(one.file_size for one in archive.infolist())
        if size > SMALL + EXPANSION * path.stat().st_size:
            raise ValueError(f"{size:,} bytes in a file of {path.stat().st_size:,}")
        with np.load(path) as file:  # without pickles, as is usual
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, NotImplementedError, KeyError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); fetch it again") from error
    raw = arrays.pop(SETTINGS, None)
    if raw is None:
        raise CheckpointError(f"{path}: has no {SETTINGS}; is it a model of Marian?")
    for name, array in arrays.items():
        if array.dtype not in (np.float32, np.float16):
            raise CheckpointError(
                f"{path}: {name}: expected float32 or float16 numbers, got {array.dtype}; import the "
                "model before it was packed or quantised"
            )
    tensors = {name: _tensor(array) for name, array in arrays.items()}
    return MarianModel(_settings(raw, path), tensors, str(path))


def _tensor(array: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))


def _settings(raw: Any, path: Path) -> dict[str, Any]:
    """The table that is kept as bytes, with a zero at the end."""
    place = f"{path}:{SETTINGS}"
    try:
        content = raw.tobytes().rstrip(b"\0").decode("utf-8")
        found = text.parse(content, place, tagged=True).plain()
    except (ValueError, ConfigError) as error:
        raise CheckpointError(f"{place}: cannot be read ({error}); fetch it again") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{place}: expected a table of settings, got {type(found).__name__}")
    return found
