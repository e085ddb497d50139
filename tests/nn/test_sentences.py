"""A user's mistake gives one error message with what was expected, what was found and what to do."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from weft.errors import ConfigError, ShapeError
from weft.nn.attention import Heads, MultiHead
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.positions import Learned
from weft.nn.recurrent import Stack
from weft.nn.scores import Cosine, Dot, ScaledScore


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ShapeError, match=r"^3 heads do not divide the width 10; take a divisor of 10$"):
        MultiHead(10, 3)
    with pytest.raises(ShapeError, match="5 heads do not divide the width 12"):
        TransformerEncoder(12, size=12, num_heads=5)


@pytest.mark.parametrize(("score", "name"), [(Dot, "dot"), (ScaledScore, "scaled"), (Cosine, "cosine")])
def test_a_product_needs_equal_sizes(score: type, name: str) -> None:
    sentence = (
        rf"^score {name}: the query has 13 features, the key 10; make them equal, set key_size: 13, "
        r"or use bilinear or additive$"
    )
    with pytest.raises(ShapeError, match=sentence):
        score(13, 10)
    encoder = RecurrentEncoder(3, sizes=(5,), bidirectional=True)
    with pytest.raises(ShapeError, match=sentence):
        RecurrentDecoder(2, encoder, sizes=(13,), score=score)
    RecurrentDecoder(2, encoder, sizes=(13,), score=score, key_size=13)  # the remedy that the message names


def test_learned_positions_end() -> None:
    positions = Learned(4, max_length=7)
    assert positions(torch.zeros(1, 7, 4), torch.arange(7)).shape == (1, 7, 4)
    with pytest.raises(
        ShapeError, match=r"^expected at most 7 positions, got 8; shorten the text, or train a model with"
    ):
        positions(torch.zeros(1, 1, 4), torch.tensor([7]))


def test_a_cache_ends_where_learned_positions_do() -> None:
    decoder = TransformerDecoder(4, size=4, num_layers=1, num_heads=2, positions="learned", max_length=5)
    state = decoder.start(None, 2)
    for _ in range(5):
        _, state = decoder(torch.zeros(2, 1, 4), state)
    sentence = (
        r"^expected at most 5 positions, got 6; shorten the text, or train .* with a larger max_length$"
    )
    with pytest.raises(ShapeError, match=sentence):
        decoder(torch.zeros(2, 1, 4), state)
    with pytest.raises(ShapeError, match="at most 5 positions, got 6"):  # also with a mask
        decoder(torch.zeros(2, 6, 4), decoder.start(None, 2), torch.ones(2, 6, dtype=torch.bool))


def test_a_stack_needs_a_layer() -> None:
    with pytest.raises(ConfigError, match=r"needs a size for each layer, for example sizes: \[256, 256\]"):
        Stack(3, ())


@pytest.mark.parametrize(("sizes", "words"), [((0, 8), "num_tokens"), ((8, 0), "size"), ((8, 2.5), "size")])
def test_a_table_of_tokens_needs_sizes(sizes: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=f"^Tokens: {words}: expected a whole number of at least 1, got "):
        Tokens(*sizes)


@pytest.mark.parametrize(
    ("sizes", "words"), [((0, 2), "size"), ((6, 0), "num_heads"), ((6, 1.5), "num_heads")]
)
def test_heads_are_counted(sizes: Any, words: str) -> None:
    with pytest.raises(
        ConfigError, match=f"^MultiHead: {words}: expected a whole number of at least 1, got "
    ):
        MultiHead(*sizes)


def test_numbers_are_no_mask_of_multi_head_attention() -> None:
    attention, x = MultiHead(6, 2), torch.randn(2, 5, 6)
    keys, values = attention.keys_values(x)
    with pytest.raises(ShapeError, match=r"MultiHead: expected a mask of bool that broadcasts to .*float32"):
        attention(x, keys, values, torch.ones(2, 1, 1, 5))
    assert torch.equal(attention(x, keys, values), attention(x, keys, values, torch.ones(2, 1, 1, 5) > 0))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Elman(2, 3, activation="softmax"), "activation: .*'softmax'"),
        (lambda: GRU(2, 3, reset="never"), "reset: .*'never'"),
        (lambda: RecurrentEncoder(2, sizes=(3,), join="product"), "join: .*'product'"),
        (lambda: RecurrentEncoder(2, sizes=(3, 0)), "needs a size for each layer"),
        (lambda: RecurrentDecoder(2, RecurrentEncoder(2), enters="early"), "enters: .*'early'"),
        (lambda: RecurrentDecoder(2, RecurrentEncoder(2), bridge="top"), "bridge: .*'top'"),
        (lambda: RecurrentDecoder(2, TransformerEncoder(2), bridge="joint"), "bridge: joint needs a recur"),
        (
            lambda: RecurrentDecoder(2, RecurrentEncoder(2), readout_activation="relu"),
            "readout_activation: .*'relu'",
        ),
        (lambda: TransformerEncoder(2, norm="none"), "norm: .*'none'"),
        (lambda: TransformerEncoder(2, activation="tanh"), "activation: .*'tanh'"),
        (lambda: TransformerEncoder(2, positions="polar"), "positions: .*'polar'"),
        (lambda: TransformerEncoder(2, norm_kind="batch"), "norm_kind: .*'batch'"),
        (lambda: Heads(size=0), "heads.size: expected at least 1, got 0"),
    ],
)
def test_an_unknown_word_is_refused(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"heads": Heads(key_value=4)}, "heads.key_value: expected a divisor of the 6 heads, got 4"),
        ({"heads": Heads(rotary=4)}, "heads.rotary: expected at most 2, the features of a head, got 4"),
        ({"heads": Heads(size=3), "positions": "rotary"}, "even number of features per head, got 3"),
        ({"size": 13}, "6 heads do not divide the width 13"),
    ],
)
def test_heads_that_do_not_fit_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ShapeError, match=sentence):
        TransformerDecoder(2, **({"size": 12, "num_heads": 6} | settings))
