"""Marian's model.npz: Transformers, and Transformers whose decoder has SSRUs in place of self-attention.

The settings are in the file itself, as text. The vocabularies (.spm or .yml) are beside it, or the user names
them. Read next: kit.py.

Source: Junczys-Dowmunt et al. 2018; Kim et al. 2019; marian-dev 1.12, the classes EncoderTransformer,
DecoderTransformer, SSRU, Output and layerNorm.
"""

import json
import re
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing.checkpoint import Origins, TensorOrigin
from weft.importing.families.encoder_decoders import shifted_waves
from weft.importing.kits.kit import (
    SOURCE,
    TARGET,
    CheckpointHints,
    Kit,
    ToolkitTranslator,
    assembled,
    given_file,
)
from weft.importing.kits.reading import ToolkitModel, ToolkitSettings, lines, parsed_yaml, yaml
from weft.importing.kits.vocabularies import RunVocabulary, Special, TokenList, special_of
from weft.importing.names import MappedPart, tensor, zeros
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


NORM_EPSILON = 1e-6
LENGTH = 1024  # positions; Marian computes them, and reads at most 1000 tokens
ORDERS = {
    ("n", "da"): ("before", "layer"),
    ("n", "a"): ("before", "layer"),
    ("r", "da"): ("before", "rms"),
    ("r", "a"): ("before", "rms"),
    ("", "dan"): ("after", "layer"),
    ("", "an"): ("after", "layer"),
    ("", "dar"): ("after", "rms"),
    ("", "ar"): ("after", "rms"),
}
"""Place and kind of the norms by the steps before and after a sublayer: d dropout, a residual, n r norms."""
ACTIVATIONS = {"relu": "relu", "swish": "silu"}  # gelu is x sigmoid(1.702 x) up to 1.12, exact later
WITHOUT: dict[str, tuple[Any, ...]] = {
    "type": ("transformer",),
    "transformer-no-projection": (False,),
    "transformer-pool": (False,),
    "transformer-train-positions": (False,),
    "transformer-rnn-projection": (False,),
    "right-left": (False,),
    "ulr": (False,),
    "lemma-dim-emb": (0,),
    "factors-dim-emb": (0,),
    "input-types": ([], ["sequence"], ["sequence", "sequence"]),
    "transformer-postprocess-emb": ("d", ""),
}
"""Settings with the values that can be imported."""


class MarianNorms(NamedTuple):
    """Where the norms are, and of which kind."""

    place: str
    kind: str

    def origins(self, ours: str, before: str, after: str) -> Origins:
        """A norm, named otherwise before a sublayer and after it."""
        theirs, end = (before, "_pre") if self.place == "before" else (after, "")
        return self.named(ours, theirs, end)

    def named(self, ours: str, theirs: str, end: str = "") -> Origins:
        """The gain, and the bias of LayerNorm."""
        if self.kind == "rms":
            return row(f"{ours}.weight", f"{theirs}_rms_scale{end}")
        return {
            **row(f"{ours}.weight", f"{theirs}_ln_scale{end}"),
            **row(f"{ours}.bias", f"{theirs}_ln_bias{end}"),
        }


def row(ours: str, theirs: str) -> Origins:
    """A vector, which is a row [1, D] in the file."""
    return tensor(ours, theirs, torch.Tensor.flatten)


def linear(ours: str, theirs: str, end: str) -> Origins:
    """The linear layer x W + b."""
    return {
        **tensor(f"{ours}.weight", f"{theirs}_W{end}", torch.Tensor.t),
        **row(f"{ours}.bias", f"{theirs}_b{end}"),
    }


def origins_of(model: ToolkitModel) -> tuple[dict[str, Any], dict[str, Any], Origins]:
    """The recipe's sections `model` and `model.embedding`, and the source of each of our tensors."""
    settings = model.settings
    settings.check(WITHOUT)
    size, norms = settings.number("dim-emb"), _norms(settings)
    every = settings.flag("tied-embeddings-all")
    one = every or settings.flag("tied-embeddings-src")
    tied = every or settings.flag("tied-embeddings")
    tables = ("Wemb", "Wemb") if one else ("encoder_Wemb", "decoder_Wemb")
    origins = {
        **tensor("source_embed.table.weight", tables[0]),
        **tensor("embed.table.weight", tables[1]),
        **_head(model, tables[1] if tied else ""),
    }
    ours = {}
    for side in ("encoder", "decoder"):
        ours[side], more = _side(model, side, size, norms)
        origins |= more
    return ours, {"size": size, "scaled": True, "dropout": 0.0, "tied": tied}, origins


def _head(model: ToolkitModel, table: str) -> Origins:
    theirs, rows = "decoder_ff_logit_out", model.state.get(table or "decoder_ff_logit_out_Wt")
    found = tensor("head.weight", table or f"{theirs}_Wt")
    if not table and rows is None:  # before 1.8 it was not transposed
        found = tensor("head.weight", f"{theirs}_W", torch.Tensor.t)
        rows = model.state.get(f"{theirs}_W", torch.empty(0, 0)).t()
    if model.settings.flag("output-omit-bias"):
        return found | zeros("head.bias", 0 if rows is None else len(rows))
    return found | row("head.bias", f"{theirs}_b")


def _side(model: ToolkitModel, side: str, size: int, norms: MarianNorms) -> MappedPart:
    """The encoder or the decoder."""
    settings, decodes = model.settings, side == "decoder"
    depth = settings.layers(f"{side[:3]}-depth", len(model.state))
    hybrid = decodes and _is_recurrent(settings)
    origins: Origins = {f"{side}.positions.table.weight": TensorOrigin((), lambda: positions(size))}
    for layer, number in enumerate(_numbers(settings, depth) if decodes else range(1, depth + 1)):
        ours, theirs = f"{side}.blocks.{layer}", f"{side}_l{number}"
        if hybrid:
            origins |= {
                f"{ours}.cell.weight_x": TensorOrigin((f"{theirs}_rnn_Wf", f"{theirs}_rnn_W"), _columns),
                **row(f"{ours}.cell.bias", f"{theirs}_rnn_bf"),
                **norms.origins(f"{ours}.cell_norm", f"{theirs}_rnn", f"{theirs}_rnn_ffn"),
            }
        else:
            origins |= _attention(f"{ours}.attention", f"{theirs}_self", norms)
        if decodes:
            origins |= _attention(f"{ours}.look", f"{theirs}_context", norms)
        network = f"{theirs}_ffn"
        origins |= linear(f"{ours}.network.first", network, "1")
        origins |= linear(f"{ours}.network.second", network, "2")
        origins |= norms.origins(f"{ours}.network_norm", f"{network}_ffn", f"{network}_ffn")
    if norms.place == "before":
        origins |= norms.named(f"{side}.last_norm", f"{side}_top")
    recipe = _recipe(settings, side, size, norms)
    return recipe | ({"use": "hybrid", "cell": "ssru"} if hybrid else {}), origins


def _recipe(settings: ToolkitSettings, side: str, size: int, norms: MarianNorms) -> dict[str, Any]:
    """The recipe's section of a side."""

    def of_side(name: str, usual: int) -> Any:
        own = settings.get(f"transformer-decoder-{name}") if side == "decoder" else 0
        return own or settings.number(f"transformer-{name}", usual)

    depth = "transformer-ffn-depth"
    settings._replace(values={depth: of_side("ffn-depth", 2)}).choice(depth, 2)
    return {
        "use": "transformer",
        "size": size,
        "num_layers": settings.number(f"{side[:3]}-depth"),
        "num_heads": settings.num_heads("transformer-heads", "dim-emb"),
        "inner": of_side("dim-ffn", 2048),
        "norm": norms.place,
        "norm_kind": norms.kind,
        "norm_epsilon": NORM_EPSILON,
        "activation": ACTIVATIONS[settings.choice("transformer-ffn-activation", *ACTIVATIONS, usual="swish")],
        "positions": "learned",  # loaded as a table: Marian's sinusoids are not those of the paper
        "max_length": LENGTH,
        "dropout": settings.number("transformer-dropout", 0.1),
        "attention_dropout": settings.number("transformer-dropout-attention", 0.0),
    }


def _is_recurrent(settings: ToolkitSettings) -> bool:
    kind = settings.choice("transformer-decoder-autoreg", "self-attention", "rnn")
    if kind == "rnn":
        settings.choice("dec-cell", "ssru", usual="gru")
        settings.choice("layer-normalization", False)
    return bool(kind == "rnn")


def _numbers(settings: ToolkitSettings, depth: int) -> list[int]:
    """The number of each decoder layer's parameters, from 1; layers with the same number share them."""
    found = settings.get("transformer-tied-layers") or list(range(1, depth + 1))
    if not isinstance(found, list) or len(found) != depth or not all(type(one) is int for one in found):
        raise CheckpointError(
            f"{settings.place}: transformer-tied-layers: expected {depth} numbers of layers, got "
            f"{str(found)[:40]}"
        )
    return found


def _norms(settings: ToolkitSettings) -> MarianNorms:
    """Where the norms are; in a model with norms before sublayers, also at the top.

    Before 1.10 Marian left out the norm of keys and values there.
    """
    norms = MarianNorms(*settings.order("transformer-preprocess", "transformer-postprocess", ORDERS))
    steps = str(settings.get("transformer-preprocess") or "")
    top = str(settings.get("transformer-postprocess-top") or "")
    wanted = steps if norms.place == "before" else ""
    if top != wanted:
        raise ConfigError(
            f"{settings.place}: transformer-postprocess-top: expected {wanted!r} with transformer-preprocess "
            f"{steps!r}, got {top[:20]!r}, which Weft does not support"
        )
    version = re.match(r"v?(\d+)\.(\d+)", str(settings.get("version", "")))
    if norms.place == "before" and version and tuple(map(int, version.groups())) < (1, 10):
        raise ConfigError(
            f"{settings.place}: version: expected 1.10 or later with transformer-preprocess {steps!r}, got "
            f"{str(settings.get('version'))[:20]}, which did not normalise keys and values"
        )
    return norms


def _attention(ours: str, theirs: str, norms: MarianNorms) -> Origins:
    return {
        **linear(f"{ours}.out", theirs, "o"),
        **linear(f"{ours}.query", theirs, "q"),
        f"{ours}.key_value.weight": TensorOrigin((f"{theirs}_Wk", f"{theirs}_Wv"), _columns),
        f"{ours}.key_value.bias": TensorOrigin(
            (f"{theirs}_bk", f"{theirs}_bv"), lambda *all: torch.cat(all, 1)[0]
        ),
        **norms.origins(f"{ours}_norm", f"{theirs}_Wo", f"{theirs}_Wo"),
    }


def _columns(*parts: Tensor) -> Tensor:
    """Several matrices of x W, as one of ours."""
    return torch.cat(parts, 1).t()


def positions(size: int) -> Tensor:
    """Marian's sinusoids; its log 10000 is in float32."""
    return shifted_waves(LENGTH, size, 0, "dim-emb", log_base=float(torch.tensor(10000.0).log()))
