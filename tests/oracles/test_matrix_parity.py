"""Layers with copied weights give the outputs of transformers: Mamba-2, xLSTM, Qwen3-Next, RWKV-4."""

import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("transformers", reason="pip install --group import-tests")

from transformers import Mamba2Config, Qwen3NextConfig, RwkvConfig, xLSTMConfig
from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextGatedDeltaNet
from transformers.models.rwkv.modeling_rwkv import RwkvSelfAttention
from transformers.models.xlstm import modeling_xlstm

from tests.laws.members import normal
from weft.nn.cells.cell import Cell
from weft.nn.cells.gated_delta import GatedDelta
from weft.nn.cells.mlstm import MLSTM
from weft.nn.cells.rwkv4 import RWKV4
from weft.nn.cells.ssd import SSD

SIZE, HEADS, KEYS, VALUES, STEPS = 24, 3, 8, 16, 131


def drawn(layer: nn.Module) -> nn.Module:
    for n, parameter in enumerate(layer.parameters()):
        parameter.data = 0.3 * normal(*parameter.shape, seed=n, dtype=torch.float32)
    return layer.eval()


def copied(cell: Cell, weights: dict[str, Tensor]) -> Cell:
    cell.load_state_dict({name: weight.detach().clone() for name, weight in weights.items()})
    return cell.eval()


def same(cell: Cell, want: Tensor, x: Tensor) -> None:
    got, _ = cell(x, cell.start(x))
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


def test_mamba2() -> None:
    config = Mamba2Config(
        hidden_size=SIZE,
        num_heads=HEADS,
        head_dim=VALUES,
        state_size=KEYS,
        expand=2,
        n_groups=1,
        conv_kernel=4,
    )
    layer = drawn(Mamba2Mixer(config, layer_idx=0))
    cell = SSD(SIZE, SIZE, num_heads=HEADS, key_size=KEYS, value_size=VALUES)
    weights = {
        "project.weight": layer.in_proj.weight,
        "short.weight": layer.conv1d.weight[:, 0].T,
        "short.bias": layer.conv1d.bias,
        "log_rate": layer.A_log,
        "bias": layer.dt_bias,
        "skip": layer.D,
        "norm.weight": layer.norm.weight,
        "out.weight": layer.out_proj.weight,
    }
    x = normal(2, STEPS, SIZE, seed=99, dtype=torch.float32)
    with torch.no_grad():
        same(copied(cell, weights), layer(x), x)


def test_gated_delta_of_qwen3_next() -> None:
    config = Qwen3NextConfig(
        hidden_size=SIZE,
        linear_num_value_heads=HEADS,
        linear_num_key_heads=HEADS,
        linear_key_head_dim=KEYS,
        linear_value_head_dim=VALUES,
        linear_conv_kernel_dim=4,
        num_hidden_layers=4,
    )
    layer = drawn(Qwen3NextGatedDeltaNet(config, layer_idx=0))
    cell = GatedDelta(SIZE, SIZE, num_heads=HEADS, key_size=KEYS, value_size=VALUES)
    heads = layer.in_proj_qkvz.weight.unflatten(0, (HEADS, -1)).split([KEYS, KEYS, VALUES, VALUES], 1)
    rates = layer.in_proj_ba.weight.unflatten(0, (HEADS, 2))
    weights = {
        "project.weight": torch.cat([part.flatten(0, 1) for part in heads] + list(rates.unbind(1))),
        "short.weight": layer.conv1d.weight[:, 0].T,
        "log_rate": layer.A_log,
        "bias": layer.dt_bias,
        "norm.weight": layer.norm.weight,
        "out.weight": layer.out_proj.weight,
    }
    x = normal(2, STEPS, SIZE, seed=99, dtype=torch.float32)
    with torch.no_grad():
        same(copied(cell, weights), layer(x), x)


def test_mlstm_of_xlstm() -> None:
    config = xLSTMConfig(
        hidden_size=HEADS * VALUES,
        num_heads=HEADS,
        qk_dim_factor=0.5,
        v_dim_factor=1.0,
        gate_soft_cap=15.0,
        norm_eps=1e-5,
        mode="inference",
        return_last_states=True,
    )
    layer = drawn(modeling_xlstm.xLSTMLayer(config))
    cell = MLSTM(HEADS * VALUES, HEADS * VALUES, num_heads=HEADS, key_size=KEYS, value_size=VALUES, cap=15.0)
    gates = (layer.ogate_preact, layer.igate_preact, layer.fgate_preact)
    bias = torch.cat([torch.zeros(HEADS * VALUES), layer.igate_preact.bias, layer.fgate_preact.bias])
    weights = {
        "project.weight": torch.cat([part.weight for part in (layer.q, layer.k, layer.v)]),
        "gates.weight": torch.cat([part.weight for part in gates]),
        "gates.bias": bias,
        "norm.gain": layer.multihead_norm.weight,
        "out.weight": layer.out_proj.weight,
    }
    x = normal(2, STEPS, HEADS * VALUES, seed=99, dtype=torch.float32)
    with torch.no_grad():
        same(copied(cell, weights), layer(x)[0], x)


def test_time_mixing_of_rwkv() -> None:
    config = RwkvConfig(hidden_size=SIZE, attention_hidden_size=SIZE, num_hidden_layers=2)
    layer = drawn(RwkvSelfAttention(config))
    mix = (layer.time_mix_receptance, layer.time_mix_key, layer.time_mix_value)
    weights = {
        "mix": 1 - torch.cat(mix)[:, 0],
        "decay": layer.time_decay,
        "bonus": layer.time_first,
        "project.r.weight": layer.receptance.weight,
        "project.k.weight": layer.key.weight,
        "project.v.weight": layer.value.weight,
        "out.weight": layer.output.weight,
    }
    x = normal(2, STEPS, SIZE, seed=99, dtype=torch.float32)
    with torch.no_grad():
        same(copied(RWKV4(SIZE, SIZE), weights), layer(x)[0], x)
