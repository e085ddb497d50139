"""Rotary positions that turn more slowly, for longer texts; blocks of an encoder that see a window."""

import math

import pytest
import torch

from tests.nn.ways import near
from weft.errors import ConfigError
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.distances import Rotary, Scaling, speeds
from weft.nn.encoders.transformer import TransformerEncoder

SIZE, BASE = 14, 50.0
LIKE = torch.ones(1, dtype=torch.float64)


def own(pair: int) -> float:
    """The speed of a pair without scaling: base^(-2i/K)."""
    return float(BASE ** (-2 * pair / SIZE))


def test_linear_scaling_gives_a_text_twice_as_long_the_same_angles() -> None:
    slow, fast = Rotary(SIZE, base=BASE, scaling=Scaling(kind="linear", factor=2.0)), Rotary(SIZE, base=BASE)
    ours, wanted = slow(torch.arange(0, 22, 2), range(0), LIKE).turn, fast(range(11), range(0), LIKE).turn
    assert ours is not None and wanted is not None
    near(ours, wanted, 1e-10)


def test_llama3_slows_by_turns_within_the_first_length() -> None:
    found = speeds(SIZE, BASE, Scaling(kind="llama3", factor=8.0, length=23, low=1.0, high=4.0), LIKE)
    for pair, speed in enumerate(found.tolist()):
        turns = 23 * own(pair) / (2 * math.pi)
        share = min(max((turns - 1) / 3, 0.0), 1.0)  # of the speed that stays
        assert speed == pytest.approx(own(pair) * (share + (1 - share) / 8), rel=1e-10)
    assert found[0] < own(0) and found[-1] == pytest.approx(own(6) / 8)


def test_yarn_goes_over_from_fast_pairs_to_slow_ones_and_scales_both_sides() -> None:
    how = Scaling(kind="yarn", factor=4.0, length=400, slow=1.0, fast=8.0, attention=1.25)
    found = speeds(SIZE, BASE, how, LIKE).tolist()

    def place(turns: float) -> float:  # of the pair that turns so often within 400 positions
        return SIZE * math.log(400 / (turns * 2 * math.pi)) / (2 * math.log(BASE))

    begin, end = math.floor(place(8.0)), math.ceil(place(1.0))
    assert 0 < begin < end < SIZE / 2 + 2
    for pair, speed in enumerate(found):
        share = min(max((pair - begin) / (end - begin), 0.0), 1.0)
        assert speed == pytest.approx(own(pair) * (1 - share + share / 4), rel=1e-10)
    turn = Rotary(SIZE, base=BASE, scaling=how)(range(1), range(1), LIKE).turn
    assert turn is not None and turn[0].flatten().tolist() == [1.25] * (SIZE // 2)


@pytest.mark.parametrize(
    ("settings", "word"),
    [({"factor": 0.0}, "factor"), ({"length": -1}, "length"), ({"low": 4.0}, "low"), ({"fast": 1.0}, "fast")],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, float], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        Scaling(kind="yarn", **settings)  # type: ignore[arg-type]


def test_other_positions_cannot_be_scaled() -> None:
    with pytest.raises(ConfigError, match="needs positions: rotary, got learned"):
        TransformerDecoder(
            6, size=6, num_heads=2, positions="learned", position_scaling=Scaling(kind="linear")
        )


def test_a_block_with_a_window_sees_so_many_positions_to_each_side() -> None:
    torch.manual_seed(2)
    given = {"size": 8, "num_layers": 3, "num_heads": 2, "positions": "rotary", "dropout": 0.0}
    encoder = TransformerEncoder(8, **given, window=2, global_every=3, window_base=50.0).double()
    x = torch.randn(2, 11, 8, dtype=torch.float64)
    near = (torch.arange(11)[:, None] - torch.arange(11)).abs() <= 2
    places = range(11)
    wide, narrow = (Rotary(4, base=base)(places, places, x) for base in (10000.0, 50.0))
    want = encoder.blocks[0].encode(x, None, wide)
    for block in encoder.blocks[1:]:
        want = block.encode(want, near[None, None], narrow)
    found = encoder(x, torch.ones(2, 11) > 0).states
    torch.testing.assert_close(found, encoder.last_norm(want), atol=1e-10, rtol=0)


def test_where_every_block_is_global_the_window_has_no_effect() -> None:
    encoder = TransformerEncoder(8, size=8, num_layers=2, num_heads=2, window=1, global_every=1)
    plain = TransformerEncoder(8, size=8, num_layers=2, num_heads=2)
    plain.load_state_dict(encoder.state_dict())
    x, mask = torch.randn(1, 7, 8), torch.ones(1, 7) > 0
    with torch.no_grad():
        torch.testing.assert_close(encoder.eval()(x, mask).states, plain.eval()(x, mask).states)
