"""fairseq: Transformers and LSTMs of the task translation, with both kinds of checkpoints.

A checkpoint, checkpoint_best.pt, holds its settings under `args` (an argparse.Namespace, up to 0.9) or `cfg`
(dicts or containers of omegaconf, from 0.10 on). Its dictionaries, dict.LANG.txt, are beside it or given.
Read next: kit.py.

Source: Ott et al. 2019; fairseq 0.12.2.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing import torchfile
from weft.importing.checkpoint import Origins, TensorOrigin
from weft.importing.families.encoder_decoders import shifted_waves
from weft.importing.kits.kit import (
    CheckpointHints,
    Kit,
    ToolkitTranslator,
    assembled,
    beside,
    given_file,
    languages,
)
from weft.importing.kits.reading import ToolkitModel, ToolkitSettings, lines, tensors
from weft.importing.kits.vocabularies import RunVocabulary, Special, TokenList, normaliser
from weft.importing.names import (
    FAIRSEQ,
    MappedPart,
    blocks,
    plain,
    recurrent,
    recurrent_part,
    tables,
    tensor,
    turned,
    zeros,
)
from weft.importing.writing import RunParts

OFF = (
    "adaptive_input",
    "no_cross_attention",
    "cross_self_attention",
    "char_inputs",
    "base_layers",
    "quant_noise_pq",
    "no_decoder_final_norm",
    "encoder_layers_to_keep",
    "decoder_layers_to_keep",
    "scale_attn",
    "scale_fc",
    "scale_heads",
    "scale_resids",
)
"""Settings that Weft's parts cannot express."""

FUSED = re.compile(r"encoder\.layers\.\d+\.(in_proj|out_proj|fc1|fc2)_(weight|bias)")
"""Unused tensors of fairseq 0.12.2, which overwrites them with those of the layer when it reads them."""

OLD_NORMS = {
    "encoder": ("self_attn_layer_norm", "final_layer_norm"),
    "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
}
"""What `layer_norms.N` is called since 2018."""


def _same(settings: ToolkitSettings, name: str, usual: float) -> Any:
    """A number that a recipe has once and fairseq for each side."""
    found = [settings.number(f"{side}_{name}", usual) for side in ("encoder", "decoder")]
    if found[0] != found[1]:
        raise ConfigError(
            f"{settings.place}: {name}: expected the same for encoder and decoder, got {found[0]} and "
            f"{found[1]}, which Weft does not support"
        )
    return found[0]


def check_fairseq(found: ToolkitModel) -> None:
    """Refuse settings that Weft's parts cannot express."""
    found.settings.choice("task", "translation")
    for name in OFF:
        if found.settings.flag(name):
            said = str(found.settings.get(name))[:60]
            raise ConfigError(f"{found.place}: {name}: expected none, got {said}, which Weft cannot express")
    if any(".adaptive_softmax." in each for each in found.state):
        raise ConfigError(
            f"{found.place}: adaptive_softmax_cutoff: expected a plain softmax, got an adaptive one, "
            "which Weft cannot express"
        )


def renamed(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors with the names of fairseq 0.12, as its `upgrade_state_dict` gives them."""
    found: dict[str, Tensor] = {}
    for name, one in state.items():
        if FUSED.fullmatch(name):
            continue
        begin, _, end = name.rpartition(".in_proj_")
        if begin and end in ("weight", "bias"):
            parts = zip("qkv", one.chunk(3), strict=False)
            found |= {f"{begin}.{letter}_proj.{end}": part for letter, part in parts}
        else:
            found[_modern(name)] = one
    return found


def _modern(name: str) -> str:
    pieces = name.split(".")
    if len(pieces) == 6 and pieces[3] == "layer_norms" and pieces[0] in OLD_NORMS and pieces[4] in "012":
        norms = OLD_NORMS[pieces[0]]
        if int(pieces[4]) < len(norms):
            return ".".join([*pieces[:3], norms[int(pieces[4])], pieces[5]])
    return "decoder.output_projection.weight" if name == "decoder.embed_out" else name


TRANSFORMERS = (
    "transformer",
    "transformer_tiny",
    "transformer_iwslt_de_en",
    "transformer_wmt_en_de",
    "transformer_wmt_en_de_big",
    "transformer_wmt_en_de_big_t2t",
    "transformer_vaswani_wmt_en_de_big",
    "transformer_vaswani_wmt_en_fr_big",
)
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_accurate": "gelu_tanh", "gelu_fast": "gelu_tanh"}
SOURCE, TARGET = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
UNUSED = 2  # positions are counted from 2, behind that of padding
MOST = 4096  # computed positions


def transformer(found: ToolkitModel) -> ToolkitTranslator:
    """A Transformer; missing settings have the values of `base_architecture`."""
    settings, size = found.settings, _same(found.settings, "embed_dim", 512)
    settings.check({"decoder_input_dim": (size,), "decoder_output_dim": (size,)})
    tied = _is_tied(settings)
    logits = TARGET if tied else "decoder.output_projection.weight"
    state = {name: one for name, one in found.state.items() if not tied or ".output_projection." not in name}
    origins = tables(SOURCE, TARGET, logits) | zeros("head.bias", len(state.get(logits, ())))
    model, most = {}, []
    for side, place in (("encoder", "source"), ("decoder", "target")):
        model[side], more = _side(found, side, place, size)
        most.append(model[side]["max_length"])
        origins |= more
    scaled = not settings.flag("no_scale_embedding")
    embedding = {"size": size, "dropout": 0.0, "tied": tied, "scaled": scaled}
    decoding = _decoding(settings)
    return ToolkitTranslator(model, embedding, origins, state, found.place, decoding, SPARE, min(most))


def _is_tied(settings: ToolkitSettings) -> bool:
    return settings.flag("share_decoder_input_output_embed") or settings.flag("share_all_embeddings")


def _side(found: ToolkitModel, side: str, place: str, size: int) -> MappedPart:
    """The encoder or the decoder of a Transformer."""
    given, entry = found.settings, found.settings.flag("layernorm_embedding")
    before = given.flag(f"{side}_normalize_before")
    layers = given.layers(f"{side}_layers", len(found.state), 6)
    kind, length, origins = _positions(found, side, place, size)
    if entry:
        origins |= plain(f"{side}.entry_norm", f"{side}.layernorm_embedding")
    if before:
        version = found.state.get(f"{side}.version", torch.ones(1))
        if version.numel() != 1 or version.item() < 3:
            raise ConfigError(
                f"{found.place}: {side}_normalize_before: expected a norm behind the last layer, got a "
                f"checkpoint of an early version ({side}.version) without it, which Weft does not support"
            )
        origins |= plain(f"{side}.last_norm", f"{side}.layer_norm")
    origins |= blocks(f"{side}.blocks", f"{side}.layers", layers, FAIRSEQ, looks=side == "decoder")
    settings = {
        "use": "transformer",
        "size": size,
        "num_layers": layers,
        "num_heads": given.number(f"{side}_attention_heads", 8),
        "inner": given.number(f"{side}_ffn_embed_dim", 2048),
        "norm": "before" if before else "after",
        "activation": ACTIVATIONS[given.choice("activation_fn", *ACTIVATIONS)],
        "positions": kind,
        "max_length": length,
        "entry_norm": entry,
        "dropout": given.number("dropout", 0.1),
        "attention_dropout": given.number("attention_dropout", 0.0),
    }
    return settings, origins


def _positions(found: ToolkitModel, side: str, place: str, size: int) -> tuple[str, int, Origins]:
    """The kind of positions, how many there are, and their table."""
    most = min(int(found.settings.number(f"max_{place}_positions", 1024)), MOST)
    if found.settings.flag("no_token_positional_embeddings"):
        return "none", most, {}
    ours, theirs = f"{side}.positions.table.weight", f"{side}.embed_positions.weight"
    if found.settings.flag(f"{side}_learned_pos"):
        rows = max(len(found.state.get(theirs, ())) - UNUSED, 1)
        return "learned", rows, tensor(ours, theirs, lambda table: table[UNUSED:])
    waves = shifted_waves(most, size, UNUSED, f"{found.place}: {side}_embed_dim")
    return "learned", most, {ours: TensorOrigin((), lambda: waves)}


LSTMS = ("lstm", "lstm_wiseman_iwslt_de_en", "lstm_luong_wmt_en_de")


def lstm(found: ToolkitModel) -> ToolkitTranslator:
    """An LSTM; missing settings have the values of its `base_architecture`."""
    settings = found.settings
    size, dropout = _same(settings, "embed_dim", 512), settings.number("dropout", 0.1)
    tied, layers = _is_tied(settings), settings.layers("encoder_layers", len(found.state), 1)
    both, width = settings.flag("encoder_bidirectional"), settings.number("encoder_hidden_size", size)
    hidden = settings.number("decoder_hidden_size", size)
    attends = str(settings.get("decoder_attention", "1")).strip().lower() not in ("0", "false", "none")
    origins = tables(SOURCE, TARGET, TARGET if tied else "decoder.fc_out.weight") | _logits(found, tied)
    leaving = settings.number("encoder_dropout_out", dropout)
    encoder, more = recurrent_part("encoder.lstm", "lstm", width, layers, both=both, dropout=leaving)
    origins |= more
    for layer in range(layers):
        origins |= recurrent(f"decoder.stack.forwards.{layer}", f"decoder.layers.{layer}", "lstm")
        if (1 + both) * width != hidden:
            for index, name in enumerate(("hidden", "cell")):
                origins |= plain(f"decoder.bridge.maps.{layer}.{index}", f"decoder.encoder_{name}_proj")
    if attends:
        origins |= {
            **tensor("decoder.attention.score.weight.weight", "decoder.attention.input_proj.weight", turned),
            **tensor("decoder.readout.0.weight", "decoder.attention.output_proj.weight", _swapped(hidden)),
            **zeros("decoder.readout.0.bias", hidden),
        }
    model = {
        "encoder": encoder,
        "decoder": {
            "use": "recurrent",
            "cell": "lstm",
            "sizes": [hidden] * layers,
            "score": "bilinear",
            "enters": "late" if attends else "never",
            "input_feeding": True,
            "bridge": "linear",
            "dropout": settings.number("decoder_dropout_out", dropout),
        },
    }
    rate = settings.number("decoder_dropout_in", dropout)
    embedding = {"size": size, "dropout": rate, "tied": tied, "scaled": False}
    decoding = _decoding(settings)
    return ToolkitTranslator(model, embedding, origins, found.state, found.place, decoding, SPARE)


def _logits(found: ToolkitModel, tied: bool) -> Origins:
    """The output layer of an LSTM; a linear layer before it becomes part of it, which changes no output."""
    extra = ("decoder.additional_fc.weight", "decoder.additional_fc.bias")
    table, bias = "decoder.fc_out.weight", "decoder.fc_out.bias"
    if tied:
        table = TARGET
        if extra[0] not in found.state:
            return zeros("head.bias", len(found.state.get(table, ())))
        project = tensor("head.project.weight", extra[0])
        return project | {"head.bias": TensorOrigin((table, extra[1]), lambda rows, one: rows @ one)}
    if extra[0] not in found.state:
        return tensor("head.bias", bias)
    return {
        "head.weight": TensorOrigin((table, extra[0]), lambda rows, one: rows @ one),
        "head.bias": TensorOrigin((table, extra[1], bias), lambda rows, one, own: rows @ one + own),
    }


def _swapped(hidden: int) -> Callable[[Tensor], Tensor]:
    """W of [h; out] from W of [out; h]."""
    return lambda weight: torch.cat([weight[:, -hidden:], weight[:, :-hidden]], 1)


CHECKPOINTS = ("checkpoint_best.pt", "model.pt", "checkpoint_last.pt")
CODES = ("bpecodes", "codes", "code", "bpe.codes")
PIECES = ("sentencepiece.bpe.model", "spm.model", "sentencepiece.model")
SYMBOLS = ["<s>", "<pad>", "</s>", "<unk>"]  # first in every dictionary, but not in its file
SPECIAL = Special(pad=1, unknown=3, start=2, end=2)  # </s> begins the output too
OVERWRITE = "#fairseq:overwrite"
SPACES = (
    {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
    {"type": "Strip", "strip_left": True, "strip_right": True},
)
SPARE = (".version", "._float_tensor", ".embed_positions.weights")
MODELS = {
    **dict.fromkeys(TRANSFORMERS, transformer),
    **dict.fromkeys(LSTMS, lstm),
}


def recognises(path: Path) -> bool:
    """Whether it is a checkpoint with an embedding table of fairseq's, or a directory with one."""
    file = _checkpoint(path)
    if file is None:
        return False
    head = torchfile.program(file)
    named = any(bytes([len(name)]) + b"\0\0\0" + name in head for name in (b"args", b"cfg"))
    return named and b"coder.embed_tokens.weight" in head


def read(given: CheckpointHints) -> RunParts:
    """The run of a checkpoint."""
    file = _checkpoint(given.path)
    assert file is not None
    whole = torchfile.read_torch_file(file)
    checkpoint = ToolkitModel(_settings(whole, file), tensors(whole, "model", str(file)), str(file))
    del whole
    translator = _model(checkpoint)
    known = [checkpoint.settings.get(name) for name in ("source_lang", "target_lang")]
    named = languages(given, *known)
    found = [_vocabulary(given, file.parent, named, known, one) for one in (0, 1)]
    return assembled(given, translator, found, (known[0], known[1]))


KIT = Kit("fairseq", "a checkpoint_best.pt next to dict.LANG.txt", recognises, read)


def _checkpoint(path: Path) -> Path | None:
    """The checkpoint itself, or the best one of a directory."""
    files = [path] if path.suffix == ".pt" else [path / name for name in CHECKPOINTS]
    return next((file for file in files if file.is_file()), None)


def _settings(whole: Any, file: Path) -> ToolkitSettings:
    """The settings of model, task, criterion and search, of both kinds of checkpoints, as one table."""
    parts = whole if isinstance(whole, dict) else {}
    found = torchfile.settings(parts.get("args"))
    if not found:
        sections = torchfile.content(parts.get("cfg"))
        for name in ("generation", "criterion", "task", "model"):  # later ones come first
            found |= {
                key: one for key, one in torchfile.settings(sections.get(name)).items() if one is not None
            }
    if not found:
        raise CheckpointError(f"{file}: expected settings under args or cfg, got none; is it a checkpoint?")
    return ToolkitSettings(found, str(file))


def _model(found: ToolkitModel) -> ToolkitTranslator:
    """The model of one of the known architectures."""
    name = found.settings.get("arch") or found.settings.get("_name")
    if not isinstance(name, str) or name not in MODELS:
        raise ConfigError(
            f"{found.place}: arch: expected one of {', '.join(MODELS)}, got {str(name)[:60]}; "
            "only Transformers and LSTMs for translation can be imported"
        )
    check_fairseq(found)
    made = MODELS[name](found._replace(state=renamed(found.state)))
    smoothing = found.settings.number("label_smoothing", 0.0)
    return made._replace(model=made.model | {"smoothing": smoothing})


def _vocabulary(
    given: CheckpointHints, folder: Path, named: dict[str, str], known: list[Any], one: int
) -> RunVocabulary:
    """The vocabulary of the source (0) or the target (1)."""
    language = known[one] if isinstance(known[one], str) else named[("source", "target")[one]]
    file = given_file(given.vocabulary, "vocabulary", one)
    file = file or beside(folder, f"dict.{Path(str(language)).name}.txt")
    found = TokenList(_tokens(file), SPECIAL, framed=one == 0, normaliser=normaliser(steps=SPACES))
    return found.subwords(given_file(given.subwords, "subwords", one) or _beside(folder), file)


def _tokens(file: Path) -> list[str]:
    """The tokens of a dict.LANG.txt: a token and how often it was seen, per line."""
    tokens = list(SYMBOLS)
    seen = {token: number for number, token in enumerate(tokens)}
    for count, line in enumerate(lines(file), 1):
        token, _, number = line.rstrip().rpartition(" ")
        again = number == OVERWRITE
        if again:
            token, _, number = token.rpartition(" ")
        if not token or not number.removeprefix("-").isdigit():
            raise CheckpointError(f"{file}:{count}: expected a token and a count, got {line[:40]!r}")
        if token in seen and not again:
            raise CheckpointError(
                f"{file}:{count}: {token[:40]!r} occurs twice; was the file written by fairseq-preprocess?"
            )
        seen[token] = len(tokens)
        tokens.append(token)
    return tokens


def _beside(folder: Path) -> Path | None:
    """BPE codes or a SentencePiece model with one of the usual names."""
    return next((folder / name for name in (*CODES, *PIECES) if (folder / name).is_file()), None)


def _decoding(found: ToolkitSettings) -> dict[str, Any]:
    """The search of fairseq-generate."""

    def within(name: str, least: float, most: float, usual: float) -> float:
        one = found.get(name)
        return one if isinstance(one, int | float) and least <= one <= most else usual

    return {
        "search": "beam",
        "beam": int(within("beam", 2, 1000, 5)),
        "length_penalty": float(within("lenpen", 0, 10, 1)),
        "normalisation": "length",
        "max_ratio": float(within("max_len_a", 0, 1000, 0)),
        "max_extra": int(within("max_len_b", 1, 10_000, 200)),
    }
