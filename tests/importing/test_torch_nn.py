"""Modules of torch.nn give the same outputs after import."""

import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import READ, ROWS, SIZE, SOURCE, SOURCE_LENGTHS, close, normal, source
from weft import masks
from weft.errors import ConfigError
from weft.importing.torch_nn import from_torch


def shaken(module: nn.Module) -> nn.Module:
    """In float64, with no parameter at its initial value."""
    module = module.double().eval()
    for seed, parameter in enumerate(module.parameters()):
        parameter.data = 0.4 * normal(*parameter.shape, seed=seed)
    return module


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("bias", [True, False])
def test_recurrent_networks_give_the_same(kind: type, both_ways: bool, bias: bool) -> None:
    theirs = shaken(kind(READ, SIZE, 2, bidirectional=both_ways, bias=bias, batch_first=True))
    ours = from_torch(theirs)
    x, mask = source()
    packed = nn.utils.rnn.pack_padded_sequence(
        x, torch.tensor(SOURCE_LENGTHS), batch_first=True, enforce_sorted=False
    )
    want, finals = theirs(packed)
    want, _ = nn.utils.rnn.pad_packed_sequence(want, batch_first=True, total_length=SOURCE)
    got, carry = ours(x, mask=mask)
    close(got[mask], want[mask])
    h = finals[0] if kind is nn.LSTM else finals
    close(torch.stack([state[0] for layer in carry for state in layer]), h)


def test_a_relu_network_is_one() -> None:
    theirs = shaken(nn.RNN(READ, SIZE, nonlinearity="relu", batch_first=True))
    close(from_torch(theirs)(source()[0])[0], theirs(source()[0])[0])


@pytest.mark.parametrize("width", [6, 11])
@pytest.mark.parametrize("bias", [True, False])
def test_attention_of_many_heads_gives_the_same(width: int, bias: bool) -> None:
    theirs = shaken(nn.MultiheadAttention(6, 2, bias=bias, kdim=width, vdim=width, batch_first=True))
    ours = from_torch(theirs)
    x, y, mask = normal(ROWS, 3, 6), normal(ROWS, SOURCE, width, seed=2), source()[1]
    want = theirs(x, y, y, key_padding_mask=~mask)[0]
    close(ours(x, *ours.keys_values(y), mask[:, None, None]), want)


@pytest.mark.parametrize("first", [False, True], ids=["after", "before"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("last", [False, True], ids=["bare", "normed"])
def test_a_transformer_encoder_gives_the_same(first: bool, activation: str, last: bool) -> None:
    layer = nn.TransformerEncoderLayer(
        6, 2, 19, 0.1, activation, batch_first=True, norm_first=first, layer_norm_eps=1e-4
    )
    norm = nn.LayerNorm(6, eps=1e-3) if last else None
    theirs = shaken(nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False))
    ours = from_torch(theirs)
    x, mask = normal(ROWS, SOURCE, 6), source()[1]
    close(ours(x, mask).states[mask], theirs(x, src_key_padding_mask=~mask)[mask])


def test_what_cannot_be_imported_is_said() -> None:
    with pytest.raises(ConfigError, match="Conv1d"):
        from_torch(nn.Conv1d(1, 1, 1))
    with pytest.raises(ConfigError, match="proj_size: "):
        from_torch(nn.LSTM(2, 5, proj_size=3))
    with pytest.raises(ConfigError, match="without bias_k"):
        from_torch(nn.MultiheadAttention(6, 2, add_bias_kv=True))


def test_it_learns_on_as_theirs_would() -> None:
    theirs = nn.GRU(READ, SIZE, batch_first=True)
    ours = from_torch(theirs)
    assert ours.training and next(ours.parameters()).dtype == torch.float32
    total: Tensor = ours(source(torch.float32)[0], mask=masks.from_lengths(torch.tensor(SOURCE_LENGTHS), 7))[
        0
    ].sum()
    total.backward()
    assert all(parameter.grad is not None for parameter in ours.parameters())
