"""Embedded tokens have variance 1 for any size, and their table can be shared with an output layer."""

import pytest
import torch

from weft.nn.embed.tokens import Tokens


@pytest.mark.parametrize("size", [7, 131])
def test_features_of_a_new_table_have_variance_one(size: int) -> None:
    tokens = torch.arange(1009)[None]
    embed = Tokens(1009, size)
    assert embed(tokens).var().item() == pytest.approx(1.0, abs=0.1)
    assert embed.table.weight.var().item() == pytest.approx(1 / size, rel=0.1)
