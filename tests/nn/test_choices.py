"""A part rejects an unknown value of a string option itself, also without a recipe."""

from collections.abc import Callable
from typing import Any

import pytest

from weft.errors import ConfigError, ShapeError
from weft.nn.attention import Heads
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder


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
