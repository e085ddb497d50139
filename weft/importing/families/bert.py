"""Import BERT, RoBERTa, XLM-R and DistilBERT: an encoder with a masked language model's head."""

from typing import Any, NamedTuple

from weft.importing.checkpoint import Checkpoint, Origins, TensorOrigin, fill, prefixed
from weft.importing.names import BlockNames, activation, architecture, blocks, is_tied, plain, tensor
from weft.models import Labeller
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.transformed import Transformed

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
FAMILIES = {"bert": BERT, "roberta": ROBERTA, "xlm-roberta": XLM_ROBERTA, "distilbert": DISTILBERT}


def bert(foreign: Checkpoint) -> Labeller:
    """A `BertForMaskedLM` or one of its relatives, which predicts the token at each position.

    All tokens belong to the first segment; its vector is added to the positions here. The parts for
    next-sentence prediction are left out.

    Source: Devlin et al. 2019; Liu et al. 2019 (RoBERTa); Conneau et al. 2020 (XLM-R); Sanh et al. 2019
    (DistilBERT).
    """
    names = FAMILIES[foreign.setting("model_type")]
    heads = (names.output.partition(".")[0], names.head[0].partition(".")[0], names.head[1].partition(".")[0])
    foreign = prefixed(foreign, names.prefix, *heads)
    own, tokens, epsilon = settings(foreign), foreign.setting("vocab_size"), epsilon_of(foreign)
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


def settings(foreign: Checkpoint) -> dict[str, Any]:
    """The settings of our encoder, as in a recipe."""
    family = foreign.setting("model_type")
    names = FAMILIES[family]
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
