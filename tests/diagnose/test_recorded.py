"""Names of layers for readers: one name per layer, all different."""

import torch
from torch import nn

from weft.diagnose.forgetting import forgetting
from weft.diagnose.recorded import places, titles_of, trace, watch
from weft.nn.cells.gru import GRU
from weft.nn.cells.rwkv7_layers import RWKV7Layers
from weft.nn.recurrent import Stack


def test_layers_of_one_title_are_told_apart_by_their_modules() -> None:
    model = nn.ModuleDict(
        {"encoder": nn.ModuleDict({"past": GRU(3, 5), "other": GRU(3, 5)}), "decoder": GRU(3, 5)}
    )
    assert titles_of(places(model)) == {
        "encoder.past": "encoder, layer 1 (GRU), encoder.past",
        "encoder.other": "encoder, layer 1 (GRU), encoder.other",
        "decoder": "decoder, layer 1 (GRU)",
    }


def test_a_cell_of_several_layers_is_shown_layer_by_layer() -> None:
    model = nn.ModuleDict({"decoder": Stack(3, (8,), cell=RWKV7Layers)})
    assert list(titles_of(places(model)).values()) == ["decoder, layer 1 (RWKV7)", "decoder, layer 2 (RWKV7)"]
    x = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(1))
    with watch(model) as runs:
        y, _ = model["decoder"](x)
    assert [run.place.layer for run in runs] == [0, 1]
    with watch(model) as stepwise:
        state = model["decoder"].start(x)
        for t in range(5):
            last, finals = model["decoder"](x[:, t : t + 1], state)
            state = tuple(layer[0] for layer in finals)
    torch.testing.assert_close(last[:, 0], y[:, -1])
    for run, steps in zip(runs, stepwise, strict=True):
        found, again = forgetting(trace(run)), forgetting(trace(steps))
        assert found is not None and again is not None and found.heads and len(found.at) == 5
        torch.testing.assert_close(found.kept, again.kept, atol=1e-6, rtol=1e-4)
