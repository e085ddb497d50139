"""What decoders without an encoder share: an embedding, the decoder, an output layer without a bias.

Read next: gpt2.py, llama.py.
"""

from typing import Any

from weft.importing.checkpoint import Checkpoint, Origins
from weft.importing.names import is_tied, tables, zeros
from weft.models import Generator
from weft.nn.attention import Heads
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.distances import Scaling
from weft.nn.embed.tokens import Tokens
from weft.nn.heads.categorical import Categorical


def decoder_model(
    foreign: Checkpoint,
    own: dict[str, Any],
    table: str,
    head: str,
    *,
    width: int | None = None,
    dropout: float = 0.0,
    scaled: bool = False,
    tied: bool = True,
) -> tuple[Generator, Origins]:
    """A model with a decoder of these settings, and the sources of its tables; its bias is zero.

    `width` is that of the embedding; `tied` is what config.json means if it does not say.
    """
    tokens, in_size = foreign.setting("vocab_size"), own["size"] if width is None else width
    embed = Tokens(tokens, in_size, dropout=dropout, scaled=scaled)
    shares = is_tied(foreign, table, head, default=tied)
    heads, scaling = Heads(**own.get("heads", {})), Scaling(**own.get("position_scaling", {}))
    decoder = TransformerDecoder(in_size, None, **own | {"heads": heads, "position_scaling": scaling})
    output = Categorical(own["size"], tokens, tied=embed.table if shares else None)
    origins = tables(table, table, table if shares else head) | zeros("head.bias", tokens)
    return Generator(embed, decoder, output), origins
