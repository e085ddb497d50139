"""Import ViT: image patches, a Transformer encoder, a class token at the first position."""

from weft.importing.checkpoint import Checkpoint, Origins, fill
from weft.importing.names import BlockNames, activation, blocks, plain, tensor
from weft.models import Labeller
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.pictures.patches import Patches
from weft.nn.pools import First

BLOCK = BlockNames(
    [*(f"attention.attention.{name}" for name in ("query", "key", "value")), "attention.output.dense"],
    "layernorm_before",
    "intermediate.dense",
    "output.dense",
    "layernorm_after",
)


def vit(foreign: Checkpoint) -> Labeller:
    """A `ViTForImageClassification`; images are [B, height, width, channels].

    Source: Dosovitskiy et al. 2021.
    """
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
    origins |= blocks("encoder.blocks", "vit.encoder.layer", len(encoder.blocks), BLOCK)
    return fill(model, foreign, origins, spare=("vit.pooler.dense.weight", "vit.pooler.dense.bias"))
