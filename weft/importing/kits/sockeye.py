"""Sockeye 3: Transformers, and Transformers whose decoder has SSRUs in place of self-attention.

A model directory holds `config`, `params.best`, vocab.src.0.json and vocab.trg.0.json. Sockeye does not cut
words into pieces, so the user names the file of subwords. Read next: sockeye_parts.py, kit.py.

Source: Hieber et al. 2022, "Sockeye 3: fast neural machine translation with PyTorch"; sockeye 3.1.34.
"""

import math
from pathlib import Path
from typing import Any

from weft.errors import CheckpointError, ConfigError
from weft.importing import torchfile
from weft.importing.kits import vocabularies
from weft.importing.kits.assembling import ToolkitTranslator, assembled
from weft.importing.kits.kit import CheckpointHints, Kit, beside, sides
from weft.importing.kits.reading import choice, number, tensors, yaml
from weft.importing.kits.sockeye_parts import SIDES, SockeyeModel, origins_of
from weft.importing.kits.vocabularies import RunVocabulary
from weft.importing.writing import RunParts
from weft.store import jsonfile

SETTINGS, BEST = "config", "params.best"
SYMBOLS = ("<pad>", "<unk>", "<s>", "</s>")
AUXILIARY = "length_ratio."
"""Tensors of an auxiliary task that predicts the length; the usual search does not use it."""


def recognises(path: Path) -> bool:
    """Whether it is a directory with Sockeye's `config`, or parameters in one."""
    folder = path.parent if path.is_file() and path.name.startswith("params.") else path
    try:
        with open(folder / SETTINGS, "rb") as file:
            return file.read(64).startswith(b"!ModelConfig")
    except OSError:
        return False


def read(given: CheckpointHints) -> RunParts:
    """The run of a model directory, or of one of its files of parameters.

    Raises:
        CheckpointError: a file is missing, damaged, or does not belong to the others.
        ConfigError: a setting that Weft's parts cannot express.
    """
    folder = given.path.parent if given.path.is_file() else given.path
    weights = given.path if given.path.is_file() else beside(folder, BEST)
    config = yaml(folder / SETTINGS)
    if b"_packed_params" in torchfile.program(weights):
        raise ConfigError(
            f"{weights}: expected float weights, got int8; sockeye-quantize keeps the float ones as "
            "params.best.float32 and config.float32, so put these back"
        )
    model = SockeyeModel(
        config,
        tensors(torchfile.read_torch_file(weights), "", str(weights)),
        str(folder / SETTINGS),
        str(weights),
    )
    _check(model)
    found = [_vocabulary(given, folder, model, one) for one in (0, 1)]
    ours, origins = origins_of(model)
    used = {
        name: one
        for name, one in model.state.items()
        if not name.startswith(AUXILIARY) and "traced" not in name
    }
    translator = ToolkitTranslator(
        ours,
        _embedding(model),
        origins,
        used,
        model.weights,
        {"search": "beam", "beam": 5, "length_penalty": 1.0, **_longest(model)},
        positions=min(ours[side]["max_length"] for _, side, _ in SIDES),
    )
    return assembled(given, translator, (found[0], found[1]))


KIT = Kit("Sockeye", "a directory with config and params.best", recognises, read)


def _check(model: SockeyeModel) -> None:
    """Refuse what a recipe cannot say."""
    config, place = model.config, model.place
    data = model.section("data")
    choice(config, "dtype", place, "float32", "float16", "bfloat16")
    choice(config, "lhuc", place, False)
    choice(config, "neural_vocab_selection", place, None, "none")
    for side, part, _ in SIDES:
        choice(data, f"num_{side}_factors", place, 1)
        choice(model.section(f"embed_{side}"), "num_factors", place, 1)
        section = model.section(part)
        choice(section, "use_lhuc", place, False)
        choice(section, "block_prepended_cross_attention", place, False)


def _embedding(model: SockeyeModel) -> dict[str, Any]:
    """The recipe's settings of both tables."""
    section, place = model.section("embed_target"), model.place
    size = number(model.section("encoder"), "model_size", place)
    for name in ("embed_source", "embed_target"):
        choice(model.section(name), "num_embed", place, size)
    choice(model.section("decoder"), "model_size", place, size)
    tied = choice(
        model.config, "weight_tying_type", place, "none", "src_trg", "trg_softmax", "src_trg_softmax"
    )
    return {
        "size": size,
        "scaled": True,
        "dropout": number(section, "dropout", place, usual=0.0),
        "tied": tied.endswith("softmax"),
    }


def _longest(model: SockeyeModel) -> dict[str, Any]:
    """How long a translation may be: two standard deviations longer than in training."""
    data = model.section("data").get("data_statistics")
    found = [data.get(f"length_ratio_{name}") for name in ("mean", "std")] if isinstance(data, dict) else []
    ratios = [one for one in found if isinstance(one, float) and math.isfinite(one) and 0 <= one < 100]
    if len(ratios) < 2:
        return {}
    return {"max_ratio": max(1.0, ratios[0] + 2 * ratios[1]), "max_extra": 1}


def _vocabulary(given: CheckpointHints, folder: Path, model: SockeyeModel, one: int) -> RunVocabulary:
    """The vocabulary of the source (0) or the target (1)."""
    side, _, short = SIDES[one]
    chosen = sides(given.vocabulary, "vocabulary")
    file = chosen[one] if chosen else beside(folder, f"vocab.{short}.0.json")
    tokens = _tokens(file)
    size = number(model.config, f"vocab_{side}_size", model.place)
    if len(tokens) != size or tuple(tokens[:4]) != SYMBOLS:
        raise CheckpointError(
            f"{file}: expected {size:,} tokens that begin with {' '.join(SYMBOLS)}, got {len(tokens):,}; "
            "does it belong to this model?"
        )
    special = vocabularies.special(tokens, SYMBOLS)
    subwords = sides(given.subwords, "subwords")
    return vocabularies.from_subwords(
        tokens, special, subwords[one] if subwords else None, framed=one == 0, place=file
    )


def _tokens(file: Path) -> list[str]:
    """The tokens of a table of numbers by token.

    Raises:
        CheckpointError: it is missing or damaged, or a number is not used exactly once.
    """
    try:
        content = jsonfile.read(file)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file}: cannot be read ({error}); fetch it again") from error
    if not isinstance(content, dict) or sorted(map(repr, content.values())) != sorted(
        map(repr, range(len(content)))
    ):
        raise CheckpointError(f"{file}: expected a unique number from 0 for each token; fetch it again")
    return sorted(content, key=content.__getitem__)
