"""Import BERT: an encoder with a masked language model's head (M7)."""

from weft.importing.checkpoint import Foreign, Origin, fill
from weft.importing.names import activation, heads, plain, tensor
from weft.models import Predictor
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.transformed import Transformed

SPARE = (
    "embeddings.position_ids",
    "embeddings.token_type_ids",
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
    "cls.seq_relationship.weight",
    "cls.seq_relationship.bias",
    "bert.pooler.dense.weight",
    "bert.pooler.dense.bias",
)


def bert(foreign: Foreign) -> Predictor:
    """A `BertForMaskedLM`, which predicts the token at each position.

    All tokens belong to the first segment; its vector is added to the positions here. The parts for
    next-sentence prediction are left out.

    Raises:
        CheckpointError, ConfigError: see checkpoint.py.

    Source: Devlin et al. 2019.
    """
    foreign.need("tie_word_embeddings", True)
    foreign.need("is_decoder", False)
    foreign.need("position_embedding_type", "absolute")
    size, tokens = foreign.setting("hidden_size"), foreign.setting("vocab_size")
    epsilon = foreign.setting("layer_norm_eps", default=1e-12)
    embed = Tokens(tokens, size, scaled=False)
    encoder = TransformerEncoder(
        size,
        size=size,
        num_layers=foreign.setting("num_hidden_layers"),
        num_heads=foreign.setting("num_attention_heads"),
        inner=foreign.setting("intermediate_size"),
        norm="after",
        norm_epsilon=epsilon,
        activation=activation(foreign, "hidden_act"),
        positions="learned",
        max_length=foreign.setting("max_position_embeddings"),
        entry_norm=True,
        dropout=foreign.setting("hidden_dropout_prob", default=0.1),
        attention_dropout=foreign.setting("attention_probs_dropout_prob", default=0.1),
    )
    model = Predictor(embed, encoder, Transformed(size, tokens, tied=embed.table, norm_epsilon=epsilon))
    fill(model, foreign, _origins(len(encoder.blocks)), spare=SPARE)
    return model.eval()


def _origins(num_layers: int) -> dict[str, Origin]:
    """The checkpoint's tensors from which each parameter of Weft is made."""
    entry, prediction = "bert.embeddings", "cls.predictions"
    origins: dict[str, Origin] = {
        **tensor("embed.table.weight", f"{entry}.word_embeddings.weight"),
        **tensor("head.symbols.weight", f"{entry}.word_embeddings.weight"),
        "encoder.positions.table.weight": Origin(
            (f"{entry}.position_embeddings.weight", f"{entry}.token_type_embeddings.weight"),
            lambda positions, segments: positions + segments[0],
        ),
        **plain("encoder.entry_norm", f"{entry}.LayerNorm"),
        **plain("head.layer", f"{prediction}.transform.dense"),
        **plain("head.norm", f"{prediction}.transform.LayerNorm"),
        **tensor("head.symbols.bias", f"{prediction}.bias"),
    }
    for layer in range(num_layers):
        ours, theirs = f"encoder.blocks.{layer}", f"bert.encoder.layer.{layer}"
        attention = f"{theirs}.attention.self"
        origins |= {
            **heads(
                f"{ours}.attention",
                f"{attention}.query",
                f"{attention}.key",
                f"{attention}.value",
                f"{theirs}.attention.output.dense",
            ),
            **plain(f"{ours}.attention_norm", f"{theirs}.attention.output.LayerNorm"),
            **plain(f"{ours}.network.first", f"{theirs}.intermediate.dense"),
            **plain(f"{ours}.network.second", f"{theirs}.output.dense"),
            **plain(f"{ours}.network_norm", f"{theirs}.output.LayerNorm"),
        }
    return origins
