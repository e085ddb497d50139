"""Import encoders: BERT, RoBERTa, XLM-R, DistilBERT and ModernBERT, which fill gaps or classify, and ViT.

Read next: ../names.py.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.importing.checkpoint import Checkpoint, Origins, TensorOrigin, fill, prefixed
from weft.importing.families.decoders import paired
from weft.importing.names import BlockNames, activation, architecture, blocks, is_tied, plain, tensor, zeros
from weft.models import Labeller
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.transformed import Transformed
from weft.nn.pictures.patches import Patches
from weft.nn.pools import First, Layer

SPARE = (
    "embeddings.position_ids",
    "embeddings.token_type_ids",
    "cls.seq_relationship.weight",
    "cls.seq_relationship.bias",
    "pooler.dense.weight",
    "pooler.dense.bias",
)


class BertNames(NamedTuple):
    """A family's names of tensors and settings."""

    architecture: str
    classifier: str  # the architecture of classifiers
    entry: str  # prefix of the embeddings
    blocks: str  # prefix of the layers
    block: BlockNames
    head: tuple[str, ...]  # the head's layer, its norm and its bias
    output: str  # second names of the embedding table and of the bias, as output layer
    unused: int = 0  # rows at the beginning of the learned positions

    @property
    def prefix(self) -> str:
        """Of all names but those of the output layer."""
        return f"{self.entry.partition('.')[0]}."


_BLOCK = BlockNames(
    [f"attention.{name}" for name in ("self.query", "self.key", "self.value", "output.dense")],
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)
BERT = BertNames(
    "BertForMaskedLM",
    "BertForSequenceClassification",
    "bert.embeddings",
    "bert.encoder.layer",
    _BLOCK,
    tuple(f"cls.predictions.{name}" for name in ("transform.dense", "transform.LayerNorm", "bias")),
    "cls.predictions.decoder",
)
ROBERTA = BertNames(
    "RobertaForMaskedLM",
    "RobertaForSequenceClassification",
    "roberta.embeddings",
    "roberta.encoder.layer",
    _BLOCK,
    ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    "lm_head.decoder",
    unused=2,
)
DISTILBERT = BertNames(
    "DistilBertForMaskedLM",
    "DistilBertForSequenceClassification",
    "distilbert.embeddings",
    "distilbert.transformer.layer",
    BlockNames(
        [f"attention.{name}_lin" for name in ("q", "k", "v", "out")],
        "sa_layer_norm",
        "ffn.lin1",
        "ffn.lin2",
        "output_layer_norm",
    ),
    ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
    "vocab_projector",
)
XLM_ROBERTA = ROBERTA._replace(
    architecture="XLMRobertaForMaskedLM", classifier="XLMRobertaForSequenceClassification"
)
BERTS = {"bert": BERT, "roberta": ROBERTA, "xlm-roberta": XLM_ROBERTA, "distilbert": DISTILBERT}


def bert(foreign: Checkpoint) -> Labeller:
    """A `BertForMaskedLM` or one of its relatives, which predicts the token at each position.

    All tokens belong to the first segment; its vector is added to the positions here. The parts for
    next-sentence prediction are left out.

    Source: Devlin et al. 2019; Liu et al. 2019 (RoBERTa); Conneau et al. 2020 (XLM-R); Sanh et al. 2019
    (DistilBERT).
    """
    names = BERTS[foreign.setting("model_type")]
    heads = (names.output.partition(".")[0], names.head[0].partition(".")[0], names.head[1].partition(".")[0])
    foreign = prefixed(foreign, names.prefix, *heads)
    own, tokens, epsilon = bert_settings(foreign), foreign.setting("vocab_size"), epsilon_of(foreign)
    foreign.need("tie_word_embeddings", True)
    is_tied(foreign, f"{names.entry}.word_embeddings.weight", f"{names.output}.weight", default=True)
    embed = Tokens(tokens, own["size"], scaled=False)
    encoder = TransformerEncoder(own["size"], **own)
    head = Transformed(own["size"], tokens, tied=embed.table, norm_epsilon=epsilon)
    model = Labeller(embed, encoder, head)
    second = {f"{names.output}.weight", f"{names.output}.bias"} - {names.head[2]}
    origins = body(foreign, names, len(encoder.blocks)) | {
        **tensor("head.symbols.weight", f"{names.entry}.word_embeddings.weight"),
        **plain("head.layer", names.head[0]),
        **plain("head.norm", names.head[1]),
        **tensor("head.symbols.bias", names.head[2]),
    }
    return fill(model, foreign, origins, spare=(*SPARE, *second))


def bert_settings(foreign: Checkpoint) -> dict[str, Any]:
    """The settings of our encoder, as in a recipe."""
    family = foreign.setting("model_type")
    names = BERTS[family]
    architecture(foreign, names.architecture, bare=names.classifier)
    foreign.need("is_decoder", False)
    foreign.need("position_embedding_type", "absolute")
    foreign.need(
        "activation" if family == "distilbert" else "hidden_act", "gelu"
    )  # the head's is always gelu
    return {
        "size": foreign.setting("dim", "hidden_size"),
        "num_layers": foreign.setting("n_layers", "num_hidden_layers"),
        "num_heads": foreign.setting("n_heads", "num_attention_heads"),
        "inner": foreign.setting("hidden_dim", "intermediate_size"),
        "norm": "after",
        "norm_epsilon": epsilon_of(foreign),
        "activation": activation(foreign, "activation", "hidden_act"),
        "positions": "learned",
        "max_length": foreign.setting("max_position_embeddings") - names.unused,
        "entry_norm": True,
        "dropout": foreign.setting("dropout", "hidden_dropout_prob", default=0.1),
        "attention_dropout": foreign.setting(
            "attention_dropout", "attention_probs_dropout_prob", default=0.1
        ),
    }


def epsilon_of(foreign: Checkpoint) -> float:
    """The epsilon of the layer norms, 1e-12 where the checkpoint names none."""
    return float(foreign.setting("layer_norm_eps", default=1e-12))


def body(foreign: Checkpoint, names: BertNames, num_layers: int) -> Origins:
    """The checkpoint's tensors from which the embedding and the encoder are made."""
    table, segments = f"{names.entry}.word_embeddings.weight", f"{names.entry}.token_type_embeddings.weight"
    with_segments = (segments,) if segments in foreign.tensors else ()
    return {
        **tensor("embed.table.weight", table),
        "encoder.positions.table.weight": TensorOrigin(
            (f"{names.entry}.position_embeddings.weight", *with_segments),
            lambda positions, *segments: positions[names.unused :] + sum(each[0] for each in segments),
        ),
        **plain("encoder.entry_norm", f"{names.entry}.LayerNorm"),
        **blocks("encoder.blocks", names.blocks, num_layers, names.block),
    }


class HeadNames(NamedTuple):
    """A family's names of the head's tensors."""

    layer: str
    activation: Layer
    output: str


_ROBERTA = HeadNames("classifier.dense", "tanh", "classifier.out_proj")
HEADS = {
    "bert": HeadNames("bert.pooler.dense", "tanh", "classifier"),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "distilbert": HeadNames("pre_classifier", "relu", "classifier"),
}


def classifies(foreign: Checkpoint) -> bool:
    """Whether a checkpoint is a classifier of whole texts."""
    names = BERTS.get(foreign.setting("model_type"))
    return names is not None and names.classifier in (foreign.config.get("architectures") or [])


def classifier(foreign: Checkpoint) -> Labeller:
    """A `BertForSequenceClassification` or one of its relatives.

    Our tokens are multiplied by sqrt(D), so the table is divided by it.
    """
    family = foreign.setting("model_type")
    names, head, own = BERTS[family], HEADS[family], bert_settings(foreign)
    foreign = prefixed(
        foreign, names.prefix, *(name.partition(".")[0] for name in head if name != "bert.pooler.dense")
    )
    size, tokens = own["size"], foreign.setting("vocab_size")
    encoder = TransformerEncoder(size, **own)
    output = Categorical(size, len(classes(foreign)))
    model = Labeller(Tokens(tokens, size), encoder, output, pool=First(size, layer=head.activation))
    table = f"{names.entry}.word_embeddings.weight"
    origins = body(foreign, names, len(encoder.blocks)) | {
        **tensor("embed.table.weight", table, lambda rows: rows / size**0.5),
        **plain("pool.map", head.layer),
        **plain("head", head.output),
    }
    return fill(model, foreign, origins, spare=SPARE)


def classes(foreign: Checkpoint) -> list[str]:
    """The names of the classes, in the order of their numbers."""
    place, found = foreign.place, foreign.config.get("id2label") or {}
    usual = "single_label_classification"
    if (kind := foreign.config.get("problem_type") or usual) != usual:
        raise ConfigError(f"{place}: problem_type: expected {usual}, got {str(kind)[:60]}")
    bias = f"{HEADS[foreign.setting('model_type')].output}.bias"
    rows = [one for name, one in foreign.tensors.items() if name.endswith(bias)]
    count = len(rows[0]) if rows else len(found)
    names = [str(found.get(str(number), f"LABEL_{number}")) for number in range(count)]
    if count < 2 or len(set(names)) != count:
        raise ConfigError(
            f"{place}: id2label: expected at least two different classes, got {', '.join(names)[:80]}"
        )
    return names


MODERN_TABLE = "model.embeddings.tok_embeddings.weight"
GLOBAL, LOCAL = "full_attention", "sliding_attention"


def modernbert(foreign: Checkpoint) -> Labeller:
    """A `ModernBertForMaskedLM` (Warner et al. 2024); a layer without a bias there has a zero one here."""
    foreign = prefixed(foreign, "model.", "head.", "decoder.")
    own, count = modernbert_settings(foreign), foreign.setting("vocab_size")
    foreign.need("tie_word_embeddings", True)
    foreign.need("classifier_activation", "gelu")
    is_tied(foreign, MODERN_TABLE, "decoder.weight", default=True)
    size, epsilon = own["size"], own["norm_epsilon"]
    embed = Tokens(count, size, scaled=False)
    encoder = TransformerEncoder(size, **own)
    head = Transformed(size, count, tied=embed.table, norm_epsilon=epsilon)
    origins = {
        **tensor("embed.table.weight", MODERN_TABLE),
        **tensor("head.symbols.weight", MODERN_TABLE),
        **_with_bias(foreign, "encoder.entry_norm", "model.embeddings.norm", size),
        **_with_bias(foreign, "encoder.last_norm", "model.final_norm", size),
        **_with_bias(foreign, "head.layer", "head.dense", size),
        **_with_bias(foreign, "head.norm", "head.norm", size),
    }
    has = "decoder.bias" in foreign.tensors
    origins |= tensor("head.symbols.bias", "decoder.bias") if has else zeros("head.symbols.bias", count)
    for layer in range(own["num_layers"]):
        origins |= _modernbert_block(foreign, layer, own)
    model = Labeller(embed, encoder, head)
    origins = {name: one for name, one in origins.items() if name in model.state_dict()}
    return fill(model, foreign, origins, spare=("decoder.weight",))


def modernbert_settings(foreign: Checkpoint) -> dict[str, Any]:
    """The settings of our encoder, as in a recipe."""
    architecture(foreign, "ModernBertForMaskedLM", bare="ModernBertModel")
    foreign.need("hidden_activation", "gelu")
    count = foreign.setting("num_hidden_layers")
    every, window = _global_every(foreign, count), foreign.setting("local_attention", default=128) // 2
    return {
        "size": foreign.setting("hidden_size"),
        "num_layers": count,
        "num_heads": foreign.setting("num_attention_heads"),
        "inner": foreign.setting("intermediate_size"),
        "norm": "before",
        "norm_epsilon": float(foreign.setting("norm_eps", default=1e-5)),
        "activation": "geglu_exact",
        "bias": any(foreign.config.get(f"{name}_bias", False) for name in ("norm", "attention", "mlp")),
        "positions": "rotary",
        "position_base": _rotary_base(foreign, GLOBAL, "global_rope_theta", 160_000.0),
        "window": window,
        "window_base": _rotary_base(foreign, LOCAL, "local_rope_theta", 10_000.0),
        "global_every": every,
        "entry_norm": True,
        "first_norm": False,
        "dropout": foreign.setting("mlp_dropout", default=0.0),
        "attention_dropout": foreign.setting("attention_dropout", default=0.0),
    }


def _global_every(foreign: Checkpoint, count: int) -> int:
    """Every so many blocks, from the first one on, see all positions."""
    kinds = foreign.config.get("layer_types")
    if kinds is None:
        return int(foreign.setting("global_attn_every_n_layers", default=3))
    every = next((n for n in range(1, count) if kinds[n] == GLOBAL), count)
    if list(kinds) != [LOCAL if n % every else GLOBAL for n in range(count)]:
        raise ConfigError(
            f"{foreign.place}: layer_types: expected {GLOBAL} at the first layer and then at equal "
            f"distances, got {', '.join(map(str, kinds))[:80]}"
        )
    return every


def _rotary_base(foreign: Checkpoint, kind: str, older: str, usual: float) -> float:
    known = (foreign.config.get("rope_parameters") or {}).get(kind) or {}
    if (scaling := known.get("rope_type", "default")) != "default":
        raise ConfigError(f"{foreign.place}: rope_type: expected default, got {str(scaling)[:40]}")
    return float(known.get("rope_theta", foreign.setting(older, default=usual)))


def _with_bias(foreign: Checkpoint, ours: str, theirs: str, size: int) -> Origins:
    """A layer whose bias the checkpoint may lack."""
    has = f"{theirs}.bias" in foreign.tensors
    bias = tensor(f"{ours}.bias", f"{theirs}.bias") if has else zeros(f"{ours}.bias", size)
    return tensor(f"{ours}.weight", f"{theirs}.weight") | bias


def _modernbert_block(foreign: Checkpoint, layer: int, own: dict[str, Any]) -> Origins:
    ours, theirs, size = f"encoder.blocks.{layer}", f"model.layers.{layer}", own["size"]
    turn = paired(own["num_heads"], size // own["num_heads"])
    packed = f"{theirs}.attn.Wqkv"
    origins = {
        **_with_bias(foreign, f"{ours}.attention.out", f"{theirs}.attn.Wo", size),
        **_with_bias(foreign, f"{ours}.network.first", f"{theirs}.mlp.Wi", 2 * own["inner"]),
        **_with_bias(foreign, f"{ours}.network.second", f"{theirs}.mlp.Wo", size),
        **_with_bias(foreign, f"{ours}.network_norm", f"{theirs}.mlp_norm", size),
    }
    if layer:
        origins |= _with_bias(foreign, f"{ours}.attention_norm", f"{theirs}.attn_norm", size)

    def keys_values(rows: Tensor) -> Tensor:
        return torch.cat([turn(rows[size : 2 * size]), rows[2 * size :]])

    for part in ("weight", "bias"):
        if f"{packed}.{part}" in foreign.tensors:
            origins |= tensor(
                f"{ours}.attention.query.{part}", f"{packed}.{part}", lambda rows: turn(rows[:size])
            )
            origins[f"{ours}.attention.key_value.{part}"] = TensorOrigin((f"{packed}.{part}",), keys_values)
        else:
            origins |= zeros(f"{ours}.attention.query.{part}", size)
            origins |= zeros(f"{ours}.attention.key_value.{part}", 2 * size)
    return origins


VIT_BLOCK = BlockNames(
    [*(f"attention.attention.{name}" for name in ("query", "key", "value")), "attention.output.dense"],
    "layernorm_before",
    "intermediate.dense",
    "output.dense",
    "layernorm_after",
)


def vit(foreign: Checkpoint) -> Labeller:
    """A `ViTForImageClassification` (Dosovitskiy et al. 2021); images are [B, height, width, channels]."""
    foreign.need("qkv_bias", True)
    size, patch = foreign.setting("hidden_size"), foreign.setting("patch_size")
    channels, epsilon = foreign.setting("num_channels"), foreign.setting("layer_norm_eps", default=1e-12)
    places = (foreign.setting("image_size") // patch) ** 2
    classes = len(foreign.setting("id2label", default={0: "", 1: ""}))
    encoder = TransformerEncoder(
        size,
        size=size,
        num_layers=foreign.setting("num_hidden_layers"),
        num_heads=foreign.setting("num_attention_heads"),
        inner=foreign.setting("intermediate_size"),
        norm="before",
        norm_epsilon=epsilon,
        activation=activation(foreign, "hidden_act"),
        positions="learned",
        max_length=places + 1,
        dropout=foreign.setting("hidden_dropout_prob", default=0.1),
        attention_dropout=foreign.setting("attention_probs_dropout_prob", default=0.0),
    )
    embed = Patches(channels, size, patch=patch, first=True)
    model = Labeller(embed, encoder, Categorical(size, classes), pool=First(size))
    entry = "vit.embeddings"
    origins: Origins = {
        **tensor("embed.first", f"{entry}.cls_token", lambda first: first[0, 0]),
        **tensor(
            "embed.project.weight",
            f"{entry}.patch_embeddings.projection.weight",
            lambda w: w.permute(0, 2, 3, 1).flatten(1),
        ),
        **tensor("embed.project.bias", f"{entry}.patch_embeddings.projection.bias"),
        **tensor("encoder.positions.table.weight", f"{entry}.position_embeddings", lambda table: table[0]),
        **plain("encoder.last_norm", "vit.layernorm"),
        **plain("head", "classifier"),
    }
    origins |= blocks("encoder.blocks", "vit.encoder.layer", len(encoder.blocks), VIT_BLOCK)
    return fill(model, foreign, origins, spare=("vit.pooler.dense.weight", "vit.pooler.dense.bias"))
