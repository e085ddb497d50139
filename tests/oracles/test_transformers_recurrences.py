"""Recurrences of Transformers, whole models and layers with a matrix as state, compute the same numbers."""

import warnings
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from weft.nn.cells.block import Block
from weft.nn.cells.local_attention import LocalAttention
from weft.nn.cells.mamba import Mamba
from weft.nn.cells.rglru import RGLRU
from weft.nn.recurrent import Stack

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

ROWS, STEPS, WORDS, SIZE = 3, 29, 31, 16


def tokens() -> Tensor:
    return torch.randint(WORDS, (ROWS, STEPS), generator=torch.Generator().manual_seed(5))


def drawn(model: nn.Module) -> Any:
    """The model with random parameters, none of them zero or one."""
    generator = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        parameter.data.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def copy(ours: Any, theirs: Any) -> None:
    """Copy a linear layer or a convolution."""
    weight = theirs.weight.data
    ours.weight.data.copy_(weight[:, 0].T if weight.dim() == 3 else weight)
    if theirs.bias is not None:
        ours.bias.data.copy_(theirs.bias.data)


def in_pieces(stack: Stack, x: Tensor) -> Tensor:
    """All steps in segments of 13, 1 and 15 steps, each from the state before."""
    states, ys = stack.start(x), []
    for piece in x.split((13, 1, 15), 1):
        y, finals = stack(piece, states)
        states = tuple(layer[0] for layer in finals)
        ys.append(y)
    return torch.cat(ys, 1)


def test_a_stack_of_mamba_blocks_is_mamba() -> None:
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(
        vocab_size=WORDS, hidden_size=SIZE, num_hidden_layers=3, state_size=5, time_step_rank=3, expand=2
    )
    theirs = drawn(MambaForCausalLM(config))
    cell = partial(Block, cell=partial(Mamba, num_states=5, rank=3), norm_epsilon=config.layer_norm_epsilon)
    stack = Stack(SIZE, (SIZE,) * 3, cell=cell, last_norm="rms").eval()
    for block, layer in zip(stack.forwards, theirs.backbone.layers, strict=True):
        ours, mixer = block.cell, layer.mixer
        block.norm.weight.data.copy_(layer.norm.weight)
        for name, other in (("enter", "in_proj"), ("convolution", "conv1d"), ("select", "x_proj")):
            copy(getattr(ours, name), getattr(mixer, other))
        copy(ours.step_size, mixer.dt_proj)
        copy(ours.leave, mixer.out_proj)
        ours.log_decay.data.copy_(mixer.A_log.T)
        ours.skip.data.copy_(mixer.D)
    stack.last_norm.weight.data.copy_(theirs.backbone.norm_f.weight)
    with torch.no_grad():
        want = theirs(tokens()).logits
        x = theirs.backbone.embeddings(tokens())
        for h in (stack(x)[0], in_pieces(stack, x)):
            torch.testing.assert_close(theirs.lm_head(h), want, rtol=1e-5, atol=1e-5)


def test_recurrent_and_attention_blocks_in_turn_are_recurrentgemma() -> None:
    """Positions count from 1, because transformers takes position 0 for the begin of a text, whose input it
    does not scale by sqrt(1 - a^2), unlike equation 4 of the paper.
    """
    from transformers import RecurrentGemmaConfig, RecurrentGemmaForCausalLM

    config = RecurrentGemmaConfig(
        vocab_size=WORDS,
        hidden_size=SIZE,
        lru_width=SIZE,
        intermediate_size=22,
        num_hidden_layers=5,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        attention_window_size=7,
        block_types=("recurrent", "recurrent", "attention"),
        attn_implementation="eager",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = drawn(RecurrentGemmaForCausalLM(config))
    recurrent = partial(Block, cell=partial(RGLRU, num_heads=4), convolution=4, gate="input", network=11)
    local = partial(LocalAttention, num_heads=4, key_value_heads=2, head_size=8, window=7, rotary=4)
    cells = (recurrent, recurrent, partial(Block, cell=local, network=11))
    stack = Stack(SIZE, (SIZE,) * 5, cell=cells, last_norm="rms").eval()
    stack.last_norm.eps = config.rms_norm_eps
    for block, layer in zip(stack.forwards, theirs.model.layers, strict=True):
        copied_block(block, layer)
    stack.last_norm.weight.data.copy_(1 + theirs.model.final_norm.weight)
    with torch.no_grad():
        positions = torch.arange(1, STEPS + 1).expand(ROWS, -1)
        want = theirs(tokens(), position_ids=positions, use_cache=False).logits
        x = theirs.model.embed_tokens(tokens()) * SIZE**0.5
        for h in (stack(x)[0], in_pieces(stack, x)):
            logits = theirs.lm_head(h)
            cap = config.logits_soft_cap
            torch.testing.assert_close(torch.tanh(logits / cap) * cap, want, rtol=1e-5, atol=1e-5)


def copied_block(block: Any, layer: Any) -> None:
    block.norm.weight.data.copy_(1 + layer.temporal_pre_norm.weight)
    block.network_norm.weight.data.copy_(1 + layer.channel_pre_norm.weight)
    mlp, mixer = layer.mlp_block, layer.temporal_block
    stacked(block.network.first, mlp.gate_proj, mlp.up_proj)
    copy(block.network.second, mlp.down_proj)
    if block.gate == "input":
        stacked(block.enter, mixer.linear_x, mixer.linear_y)
        copy(block.leave, mixer.linear_out)
        copy(block.convolution, mixer.conv_1d)
        unit, other = block.cell, mixer.rg_lru
        unit.rate.data.copy_(other.recurrent_param)
        for gate, name in ((unit.recurrence_gate, "recurrent_gate"), (unit.input_gate, "input_gate")):
            gate.weight.data.copy_(getattr(other, name + "_weight").mT[None])
            gate.bias.data.copy_(getattr(other, name + "_bias").flatten())
    else:
        block.cell.query.weight.data.copy_(paired(mixer.q_proj.weight))
        keys_values = [paired(mixer.k_proj.weight), mixer.v_proj.weight]
        block.cell.key_value.weight.data.copy_(torch.cat(keys_values))
        copy(block.cell.out, mixer.o_proj)


def stacked(ours: Any, *theirs: Any) -> None:
    ours.weight.data.copy_(torch.cat([each.weight for each in theirs]))
    ours.bias.data.copy_(torch.cat([each.bias for each in theirs]))


def paired(weight: Tensor) -> Tensor:
    """Rotated features in pairs (2i, 2i + 1) instead of halves (i, i + 2), in heads of 8 that rotate 4."""
    order = torch.tensor([0, 2, 1, 3, 4, 5, 6, 7])
    return weight.unflatten(0, (-1, 8))[:, order].flatten(0, 1)


WIDTH, HEADS, KEYS, VALUES, LONG = 24, 3, 8, 16, 131


def drawn_layer(layer: nn.Module) -> nn.Module:
    for n, parameter in enumerate(layer.parameters()):
        parameter.data = 0.3 * normal(*parameter.shape, seed=n, dtype=torch.float32)
    return layer.eval()


def same(layer: nn.Module, cell: Cell, weights: dict[str, Tensor], width: int = WIDTH) -> None:
    """With the layer's weights, the cell has its outputs."""
    cell.load_state_dict({name: weight.detach().clone() for name, weight in weights.items()})
    x = normal(2, LONG, width, seed=99, dtype=torch.float32)
    with torch.no_grad():
        found, (got, _) = layer(x), cell.eval()(x, cell.start(x))
    want = found if isinstance(found, Tensor) else found[0]
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


def test_mamba2() -> None:
    config = Mamba2Config(
        hidden_size=WIDTH,
        num_heads=HEADS,
        head_dim=VALUES,
        state_size=KEYS,
        expand=2,
        n_groups=1,
        conv_kernel=4,
    )
    layer = drawn_layer(Mamba2Mixer(config, layer_idx=0))
    cell = SSD(WIDTH, WIDTH, num_heads=HEADS, key_size=KEYS, value_size=VALUES)
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
    same(layer, cell, weights)


def test_gated_delta_of_qwen3_next() -> None:
    config = Qwen3NextConfig(
        hidden_size=WIDTH,
        linear_num_value_heads=HEADS,
        linear_num_key_heads=HEADS,
        linear_key_head_dim=KEYS,
        linear_value_head_dim=VALUES,
        linear_conv_kernel_dim=4,
        num_hidden_layers=4,
    )
    layer = drawn_layer(Qwen3NextGatedDeltaNet(config, layer_idx=0))
    cell = GatedDelta(WIDTH, WIDTH, num_heads=HEADS, key_size=KEYS, value_size=VALUES)
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
    same(layer, cell, weights)


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
    layer = drawn_layer(modeling_xlstm.xLSTMLayer(config))
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
    same(layer, cell, weights, HEADS * VALUES)


def test_time_mixing_of_rwkv() -> None:
    config = RwkvConfig(hidden_size=WIDTH, attention_hidden_size=WIDTH, num_hidden_layers=2)
    layer = drawn_layer(RwkvSelfAttention(config))
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
    same(layer, RWKV4(WIDTH, WIDTH), weights)
