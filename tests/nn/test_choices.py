"""A part rejects an unknown value of a string option itself, also without a recipe."""

from collections.abc import Callable

import pytest

from weft.errors import ConfigError
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: Elman(2, 3, activation="softmax"),
            "activation: .*'softmax'",
        ),
        (lambda: GRU(2, 3, reset="never"), "reset: .*'never'"),
        (
            lambda: RecurrentEncoder(2, sizes=(3,), join="product"),
            "join: .*'product'",
        ),
        (lambda: RecurrentEncoder(2, sizes=(3, 0)), "needs a size for each layer"),
        (lambda: RecurrentDecoder(2, RecurrentEncoder(2), enters="early"), "enters: .*'early'"),
        (lambda: RecurrentDecoder(2, RecurrentEncoder(2), bridge="top"), "bridge: .*'top'"),
        (lambda: TransformerEncoder(2, norm="none"), "norm: .*'none'"),
        (lambda: TransformerEncoder(2, activation="tanh"), "activation: .*'tanh'"),
        (lambda: TransformerEncoder(2, positions="polar"), "positions: .*'polar'"),
        (lambda: TransformerEncoder(2, norm_kind="batch"), "norm_kind: .*'batch'"),
    ],
)
def test_an_unknown_word_is_refused(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make()
