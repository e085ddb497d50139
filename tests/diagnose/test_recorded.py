"""Names of layers for readers: one name per layer, all different."""

from torch import nn

from weft.diagnose.recorded import places, titles_of
from weft.nn.cells.gru import GRU


def test_layers_of_one_title_are_told_apart_by_their_modules() -> None:
    model = nn.ModuleDict(
        {"encoder": nn.ModuleDict({"past": GRU(3, 5), "other": GRU(3, 5)}), "decoder": GRU(3, 5)}
    )
    assert titles_of(places(model)) == {
        "encoder.past": "encoder, layer 1 (GRU), encoder.past",
        "encoder.other": "encoder, layer 1 (GRU), encoder.other",
        "decoder": "decoder, layer 1 (GRU)",
    }
