"""JoeyNMT 1.x and 2.x: recurrent translators with attention, and Transformers.

A model directory holds config.yaml, checkpoints (best.ckpt), src_vocab.txt, trg_vocab.txt, and in 2.x the BPE
codes or the SentencePiece model. Read next: kit.py; assembling.py.

Source: Kreutzer, Bastings & Riezler 2019; joeynmt 2.3.0.
"""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing import torchfile
from weft.importing.checkpoint import TensorOrigin
from weft.importing.kits import vocabularies
from weft.importing.kits.assembling import ToolkitTranslator, assembled
from weft.importing.kits.kit import CheckpointHints, Kit, beside, given_file
from weft.importing.kits.reading import choice, layers, lines, number, table, tensors, yaml
from weft.importing.kits.vocabularies import RunVocabulary
from weft.importing.names import (
    ACTIVATIONS,
    BlockNames,
    blocks,
    plain,
    recurrent,
    recurrent_encoder,
    tables,
    tensor,
    zeros,
)
from weft.importing.writing import RunParts

NORM_EPSILON = 1e-6


class JoeyModel(NamedTuple):
    """What is read from a model directory of JoeyNMT: its recipe, its weights by name."""

    config: dict[str, Any]
    state: dict[str, Tensor]
    place: str  # of config.yaml
    weights: str

    def section(self, name: str) -> dict[str, Any]:
        """A table of the section `model`."""
        return table(self.config["model"], name, self.place)


def origins_of(model: JoeyModel) -> tuple[dict[str, Any], dict[str, TensorOrigin]]:
    """The recipe's section `model`, and the source of each of its tensors.

    Tables that are tied are in the file under each of their names.
    """
    head = "decoder.output_layer.weight"
    origins = {
        **tables("src_embed.lut.weight", "trg_embed.lut.weight", head),
        **zeros("head.bias", len(model.state.get(head, ()))),
    }
    settings: dict[str, Any] = {}
    for side, usual in (("encoder", "recurrent"), ("decoder", "transformer")):
        kind = choice(model.section(side), "type", model.place, "recurrent", "transformer", usual=usual)
        make = _transformer if kind == "transformer" else _encoder if side == "encoder" else _decoder
        settings[side], more = make(model, side)
        origins |= more
    training = model.config.get("training")
    smoothing = number(
        training if isinstance(training, dict) else {}, "label_smoothing", model.place, usual=0.0
    )
    return settings | {"smoothing": smoothing}, origins


def embedding_of(model: JoeyModel) -> dict[str, Any]:
    """The recipe's settings of both tables."""
    found = []
    for side in ("encoder", "decoder"):
        section = model.section(side)
        settings = table(section, "embeddings", model.place)
        dropout = number(section, "dropout", model.place, usual=0.0)
        found.append(
            {
                "size": number(settings, "embedding_dim", model.place),
                "scaled": bool(settings.get("scale", False)),
                "dropout": number(settings, "dropout", model.place, usual=dropout),
            }
        )
    for name in ("size", "scaled"):
        if found[0][name] != found[1][name]:
            raise ConfigError(
                f"{model.place}: embeddings: expected the same {name} for encoder and decoder, "
                f"got {found[0][name]} and {found[1][name]}, which Weft does not support"
            )
    return found[1] | {"tied": bool(model.config["model"].get("tied_softmax", False))}


def _encoder(model: JoeyModel, side: str) -> tuple[dict[str, Any], dict[str, TensorOrigin]]:
    section, size, depth, kind = _recurrence(model, side)
    both = bool(section.get("bidirectional", True))
    settings = {
        "use": "recurrent",
        "cell": kind,
        "sizes": [size] * depth,
        "bidirectional": both,
        "dropout": number(section, "dropout", model.place, usual=0.0),
    }
    return settings, recurrent_encoder("encoder.rnn", kind, depth, both=both)


def _decoder(model: JoeyModel, side: str) -> tuple[dict[str, Any], dict[str, TensorOrigin]]:
    """A recurrent decoder: late attention, a readout, and one map for the initial state of all layers."""
    section, size, depth, kind = _recurrence(model, side)
    choice(section, "activation", model.place, "tanh")
    begins = choice(section, "init_hidden", model.place, "bridge", "zero", "zeros", "last")
    if (
        begins == "last"
        and model.state.get("decoder.att_vector_layer.weight", torch.empty(0, 0)).shape[1] != 2 * size
    ):
        raise ConfigError(
            f"{model.place}: init_hidden: expected bridge or zero, got last with an encoder of another size "
            "than the decoder, which Weft does not support"
        )
    score = choice(section, "attention", model.place, "bahdanau", "luong")
    origins: dict[str, TensorOrigin] = plain("decoder.readout.0", "decoder.att_vector_layer")
    for layer in range(depth):
        origins |= recurrent(f"decoder.stack.forwards.{layer}", "decoder.rnn", kind, f"_l{layer}")
    if begins == "bridge":
        origins |= plain("decoder.bridge.maps.0", "decoder.bridge_layer")
    theirs, ours = "decoder.attention", "decoder.attention.score"
    if score == "luong":
        origins |= tensor(f"{ours}.weight.weight", f"{theirs}.key_layer.weight")
    else:
        for one, other in (("query", "query"), ("key", "key"), ("weight", "energy")):
            origins |= tensor(f"{ours}.{one}.weight", f"{theirs}.{other}_layer.weight")
        origins |= zeros(f"{ours}.query.bias", size)
    settings = {
        "use": "recurrent",
        "cell": kind,
        "sizes": [size] * depth,
        "score": "additive" if score == "bahdanau" else "bilinear",
        "enters": "late",
        "input_feeding": bool(section.get("input_feeding", True)),
        "bridge": {"bridge": "shared", "last": "summary"}.get(begins, "nothing"),
        "dropout": number(section, "hidden_dropout", model.place, usual=0.0),
    }
    return settings, origins


def _recurrence(model: JoeyModel, side: str) -> tuple[dict[str, Any], int, int, str]:
    """The section of a recurrent side, its size, its layers and its cell."""
    section = model.section(side)
    size = number(section, "hidden_size", model.place, usual=1)
    depth = layers(section, "num_layers", model.place, len(model.state), usual=1)
    return section, size, depth, choice(section, "rnn_type", model.place, "gru", "lstm")


def _transformer(model: JoeyModel, side: str) -> tuple[dict[str, Any], dict[str, TensorOrigin]]:
    """A side of a Transformer. Before 2.0 there was no setting for norms; all were before their sublayers."""
    section, place = model.section(side), model.place
    choice(section, "alpha", place, 1.0, usual=1.0)
    before = f"{side}.layer_norm.weight" in model.state
    depth = layers(section, "num_layers", place, len(model.state))
    origins: dict[str, TensorOrigin] = plain(f"{side}.last_norm", f"{side}.layer_norm") if before else {}
    own, norm = ("src_src_att", "layer_norm") if side == "encoder" else ("trg_trg_att", "x_layer_norm")
    names = BlockNames(
        _heads(own),
        norm,
        "feed_forward.pwff_layer.0",
        "feed_forward.pwff_layer.3",
        "feed_forward.layer_norm",
        _heads("src_trg_att"),
        "dec_layer_norm",
    )
    origins |= blocks(f"{side}.blocks", f"{side}.layers", depth, names, looks=side == "decoder")
    word = choice(section, "activation", place, "relu", "gelu", "swish")
    dropout = number(section, "dropout", place, usual=0.1)
    settings = {
        "use": "transformer",
        "size": number(section, "hidden_size", place),
        "num_layers": depth,
        "num_heads": number(section, "num_heads", place),
        "inner": number(section, "ff_size", place),
        "norm": "before" if before else "after",
        "norm_epsilon": NORM_EPSILON,
        "activation": ACTIVATIONS[word],
        "dropout": dropout,
        "attention_dropout": dropout,
    }
    return settings, origins


def _heads(attention: str) -> list[str]:
    return [f"{attention}.{name}_layer" for name in ("q", "k", "v", "output")]


CHECKPOINTS = ("best.ckpt", "avg_best.ckpt", "latest.ckpt")
SIDES = ("src", "trg")
SYMBOLS = (("pad", "<pad>"), ("unk", "<unk>"), ("bos", "<s>"), ("eos", "</s>"))
QUOTES = (("\u2019", "'"), ("\u201c", '"'), ("\u201d", '"'), ("\u200b", ""))
NORMALISE = (
    {"type": "NFKC"},
    *({"type": "Replace", "pattern": {"String": old}, "content": new} for old, new in QUOTES),
    {"type": "Replace", "pattern": {"Regex": "[ \u3000]+"}, "content": " "},
    *({"type": "Replace", "pattern": {"String": f" {mark}"}, "content": mark} for mark in "?!,.:"),
    {"type": "Strip", "strip_left": True, "strip_right": True},
)
COMPUTED = (".pe.pe",)  # tables that the model computes


def recognises(path: Path) -> bool:
    """Whether it is a directory with config.yaml and a checkpoint, or such a checkpoint."""
    if path.suffix == ".ckpt":
        return (path.parent / "config.yaml").is_file()
    return (path / "config.yaml").is_file() and _newest(path) is not None


def read(given: CheckpointHints) -> RunParts:
    """The run of a model directory, or of one of its checkpoints."""
    folder = given.path.parent if given.path.suffix == ".ckpt" else given.path
    weights = given.path if given.path.suffix == ".ckpt" else _newest(folder)
    assert weights is not None
    place = str(folder / "config.yaml")
    config = yaml(folder / "config.yaml")
    state = tensors(torchfile.read_torch_file(weights), "model_state", str(weights))
    model = JoeyModel(config, state, place, str(weights))
    table(config, "model", place)
    data = table(config, "data", place)
    found = [_vocabulary(given, folder, data, model, one) for one in (0, 1)]
    ours, origins = origins_of(model)
    translator = ToolkitTranslator(
        ours, embedding_of(model), origins, state, model.weights, _decoding(config), spare=COMPUTED
    )
    source, target = (_side(data, short).get("lang", data.get(short)) for short in SIDES)
    return assembled(given, translator, found, (source, target))


KIT = Kit("JoeyNMT", "a directory with config.yaml and best.ckpt", recognises, read)


def _newest(folder: Path) -> Path | None:
    """The best checkpoint, or the one of the most updates."""
    named = [folder / name for name in CHECKPOINTS if (folder / name).is_file()]
    steps = sorted(
        (file for file in folder.glob("*.ckpt") if file.stem.isdigit()), key=lambda one: int(one.stem)
    )
    return (named + steps[::-1] + [None])[0]


def _side(data: dict[str, Any], short: str) -> dict[str, Any]:
    """What the section `data` says about one side; before 2.0 it says it for both."""
    found = data.get(short)
    return found if isinstance(found, dict) else data


def _vocabulary(
    given: CheckpointHints, folder: Path, data: dict[str, Any], model: JoeyModel, one: int
) -> RunVocabulary:
    """The vocabulary of the source (0) or the target (1)."""
    short = SIDES[one]
    file = given_file(given.vocabulary, "vocabulary", one) or beside(folder, f"{short}_vocab.txt")
    tokens = lines(file)
    section = _side(data, short)
    names = data.get("special_symbols")
    names = names if isinstance(names, dict) else {}
    symbols = [str(names.get(f"{name}_token", usual)) for name, usual in SYMBOLS]
    special = vocabularies.special(tokens, symbols)
    if special.unknown < 0 or special.end < 0:
        raise CheckpointError(
            f"{file}: expected {' and '.join(symbols)} in it; is it a vocabulary of JoeyNMT?"
        )
    options = section.get("tokenizer_cfg")
    options = options if isinstance(options, dict) else {}
    choice(options, "pretokenizer", model.place, "none")
    choice(names, "lang_tags", model.place, [])
    level = choice(section, "level", model.place, "word", "char", "bpe")
    lowercase = bool(section.get("lowercase", False))
    framed = one == 0
    normaliser = vocabularies.normaliser(
        lowercase=lowercase, steps=NORMALISE if section.get("normalize") else ()
    )
    if level != "bpe":
        return vocabularies.from_words(
            tokens, special, framed=framed, normaliser=normaliser, characters=level == "char"
        )
    kind = choice(
        {"type": section.get("tokenizer_type", section.get("bpe_type"))},
        "type",
        model.place,
        "sentencepiece",
        "subword-nmt",
        usual="sentencepiece" if options else "subword-nmt",
    )
    subwords = given_file(given.subwords, "subwords", one)
    if subwords is None:
        named = options.get("model_file" if kind == "sentencepiece" else "codes")
        if not isinstance(named, str):
            raise ConfigError(
                f"{model.place}: names no BPE codes for {short} (JoeyNMT before 2.0 never does); give "
                "them with --subwords FILE"
            )
        subwords = beside(folder, Path(named).name)
    if kind == "sentencepiece":
        if section.get("normalize"):
            choice(section, "normalize", model.place, False)
        return vocabularies.from_model(
            tokens, special, subwords, framed=framed, lowercase=lowercase, restricted=True
        )
    joiner = str(options.get("separator", vocabularies.JOINER))
    return vocabularies.from_codes(
        tokens, special, subwords, framed=framed, normaliser=normaliser, joiner=joiner
    )


def _decoding(config: dict[str, Any]) -> dict[str, Any]:
    """The search of the section `testing`."""
    found = config.get("testing")
    found = found if isinstance(found, dict) else {}
    beam, alpha = found.get("beam_size", 1), found.get("beam_alpha", found.get("alpha", -1))
    least = found.get("min_output_length", 1)  # theirs is 1 by default, ours 0
    longer = {"min_length": least} if isinstance(least, int) and least > 1 else {}
    if not isinstance(beam, int) or beam < 2:
        return {"search": "greedy"} | longer
    alpha = float(alpha) if isinstance(alpha, int | float) and alpha > 0 else 0.0
    return {"search": "beam", "beam": beam, "length_penalty": alpha, "normalisation": "gnmt"} | longer
