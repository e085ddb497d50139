"""Marian's model.npz: Transformers, and Transformers whose decoder has SSRUs in place of self-attention.

The settings are in the file itself, as text. The vocabularies (.spm or .yml) are beside it, or the user names
them. Read next: marian_parts.py.

Source: Junczys-Dowmunt et al. 2018; Kim et al. 2019; marian-dev 1.12.
"""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing.kits.assembling import SOURCE, TARGET, ToolkitTranslator, assembled
from weft.importing.kits.kit import CheckpointHints, Kit, given_file
from weft.importing.kits.marian_parts import origins_of
from weft.importing.kits.reading import ToolkitModel, ToolkitSettings, lines, parsed_yaml, yaml
from weft.importing.kits.vocabularies import RunVocabulary, Special, TokenList, special_of
from weft.importing.writing import RunParts
from weft.text.sentencepiece import read_pieces
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
    """The run of a model.npz."""
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


def _model(path: Path) -> ToolkitModel:
    """The settings and the tensors, in float32."""
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
    return ToolkitModel(_settings(raw, path), tensors, str(path))


def _tensor(array: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))


def _settings(raw: Any, path: Path) -> ToolkitSettings:
    """The table that is kept as bytes, with a zero at the end."""
    try:
        content = raw.tobytes().rstrip(b"\0").decode("utf-8")
    except ValueError as error:
        raise CheckpointError(f"{path}:{SETTINGS}: cannot be read ({error}); fetch it again") from error
    return parsed_yaml(content, f"{path}:{SETTINGS}")._replace(place=str(path))


END, UNKNOWN = "</s>", "<unk>"
_TOKEN = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^"'\s].*)""")
_NUMBER = re.compile(r"\d{1,9}")
_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})|\\U([0-9a-fA-F]{8})")


def vocabularies_of(given: CheckpointHints, path: Path) -> list[RunVocabulary]:
    """The vocabularies of the source and the target."""
    models = [path.parent / f"{side}.spm" for side in ("source", "target")]
    cut = all(file.is_file() for file in models)
    return [
        _vocabulary(
            given_file(given.vocabulary, "vocabulary", one) or _beside(path)[one],
            given_file(given.subwords, "subwords", one) or (models[one] if cut else None),
            framed=one == 0,
        )
        for one in (0, 1)
    ]


def decoding_of(path: Path) -> dict[str, Any]:
    """The search that the decoder's settings say, or Marian's usual one."""
    found = _decoder(path)
    beam, penalty = int(found.number("beam-size", 12)), float(found.number("normalize", 0.0))
    if beam < 2:
        return {"search": "greedy"}
    return {"search": "beam", "beam": min(beam, 1000), "length_penalty": min(penalty, 10.0), "max_ratio": 3.0}


def _decoder(path: Path) -> ToolkitSettings:
    for file in (path.with_name(f"{path.name}.decoder.yml"), path.with_name("decoder.yml")):
        if file.is_file():
            return yaml(file)
    return ToolkitSettings({}, str(path))


def _beside(path: Path) -> list[Path]:
    """The files that the decoder's settings name, or the only one of the directory."""
    named = _decoder(path).get("vocabs")
    if isinstance(named, list) and len(named) == 2 and all(isinstance(one, str) and one for one in named):
        return [path.parent / Path(name).name for name in named]
    every = [*path.parent.glob("*.spm"), *path.parent.glob("*vocab*.yml")]
    found = sorted(file for file in every if file.name not in ("source.spm", "target.spm"))
    if len(found) != 1:
        raise ConfigError(
            f"{path}: expected its vocabulary beside it, or a decoder.yml that names it, got {len(found)} "
            "files; give it with --vocabulary FILE, twice if source and target have their own"
        )
    return found * 2


def _vocabulary(file: Path, subwords: Path | None, *, framed: bool) -> RunVocabulary:
    if file.suffix == ".spm":
        tokens = read_pieces(file)
        return TokenList(tokens, _special(tokens, file), framed).pieces(file)
    if file.suffix not in (".yml", ".yaml", ".json"):
        raise ConfigError(f"{file}: expected a vocabulary in .spm or .yml, got {file.suffix[:10]!r}")
    tokens = _tokens(file)
    return TokenList(tokens, _special(tokens, file), framed).subwords(subwords, file)


def _special(tokens: list[str], file: Path) -> Special:
    found = special_of(tokens, ("", UNKNOWN, "", END))
    if found.unknown < 0 or found.end < 0:
        raise CheckpointError(f"{file}: expected {UNKNOWN} and {END} in it; is it a vocabulary of Marian?")
    return found._replace(pad=-1, start=-1)


def _tokens(file: Path) -> list[str]:
    """The tokens of lines `token: number`, as marian-vocab writes them, or of a JSON table."""
    numbers: dict[int, str] = {}
    for count, line in enumerate(lines(file), 1):
        bare = line.strip().removesuffix(",")
        if bare in ("", "{", "}", "---"):
            continue
        token, _, place = bare.rpartition(":")
        token, place = token.rstrip(), place.lstrip()
        if not _TOKEN.fullmatch(token) or not _NUMBER.fullmatch(place) or int(place) in numbers:
            raise CheckpointError(
                f"{file}:{count}: expected a token, a colon and a unique number, got {line[:40]!r}"
            )
        numbers[int(place)] = _unquoted(token, f"{file}:{count}")
    if max(numbers, default=0) >= 4 * len(numbers) + 100:
        raise CheckpointError(
            f"{file}: expected numbers below {4 * len(numbers) + 100:,}, got {max(numbers):,}; fetch it again"
        )
    return [numbers.get(number, f"<{number}>") for number in range(max(numbers, default=-1) + 1)]


def _unquoted(token: str, place: str) -> str:
    if token[0] == "'":
        return token[1:-1].replace("''", "'")
    if token[0] != '"':
        return token
    try:
        found = str(json.loads(_ESCAPE.sub(_as_json, token)))
        found.encode()  # not half of a surrogate pair
        return found
    except (ValueError, OverflowError) as error:
        raise CheckpointError(f"{place}: expected a quoted token, got {token[:40]}") from error


def _as_json(match: re.Match[str]) -> str:
    """An escape of YAML that JSON lacks, as JSON writes it."""
    return json.dumps(chr(int(match[1] or match[2], 16)))[1:-1]
