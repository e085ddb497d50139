"""Blocks of an encoder that see a window: what lies outside cannot be seen, rotary positions have a base."""

import torch

from weft.nn.distances import Rotary
from weft.nn.encoders.transformer import TransformerEncoder


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
