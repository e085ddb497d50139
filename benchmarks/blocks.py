"""A Mamba and an xLSTM block in training, beside those of `transformers` with the same weights: A B A B ...

    python benchmarks/blocks.py                          width 256, 64 rows of 256 steps, five rounds
    python benchmarks/blocks.py --rows 8 --blocks mamba  for a first look: its Mamba takes minutes at 64 rows

A block is norm, cell, residual connection and, in xLSTM, a feed-forward network. Both libraries are seen to
give the same outputs first. Times are CPU seconds of a forward and a backward pass in float32, one thread,
medians; a ratio is transformers' time by Weft's in the same round.
Needs transformers: pip install --group import-tests -c constraints.txt
Read next: matrix_cells.py, cells beside attention.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import transformers
from torch import Tensor, nn
from transformers.models.mamba.modeling_mamba import MambaBlock
from transformers.models.xlstm import modeling_xlstm

from weft.nn.cells import MLSTM, Block, Mamba

HEADS = 4
Run = Callable[[Tensor], Tensor]


def mamba(width: int) -> tuple[Block, Run, nn.Module]:
    """Weft's block, transformers' as a function, and its parameters."""
    config = transformers.MambaConfig(hidden_size=width, num_hidden_layers=1)
    theirs = transformers.MambaModel(config).train().layers[0]  # for its initialisation
    assert isinstance(theirs, MambaBlock)
    ours, mixer = Block(width, width, cell=Mamba, norm_epsilon=config.layer_norm_epsilon), theirs.mixer
    cell = ours.cell
    assert isinstance(cell, Mamba)
    weights = {
        "enter.weight": mixer.in_proj.weight,
        "convolution.weight": mixer.conv1d.weight[:, 0].T,
        "convolution.bias": mixer.conv1d.bias,
        "select.weight": mixer.x_proj.weight,
        "step_size.weight": mixer.dt_proj.weight,
        "step_size.bias": mixer.dt_proj.bias,
        "log_decay": mixer.A_log.T,
        "skip": mixer.D,
        "leave.weight": mixer.out_proj.weight,
    }
    cell.load_state_dict({name: weight.detach().clone() for name, weight in weights.items()})
    return ours, theirs, theirs


def xlstm(width: int) -> tuple[Block, Run, nn.Module]:
    """Weft's block, transformers' as a function, and its parameters."""
    config = transformers.xLSTMConfig(
        hidden_size=width,
        num_hidden_layers=1,
        num_heads=HEADS,
        mode="train",
        autocast_kernel_dtype="float32",
        norm_eps=1e-5,
    )
    theirs = modeling_xlstm.xLSTMBlock(config)
    layer, network = theirs.mlstm_layer, theirs.ffn
    keys = layer.q.out_features // HEADS

    def cell(in_size: int, size: int) -> MLSTM:
        return MLSTM(in_size, size, num_heads=HEADS, key_size=keys, cap=config.gate_soft_cap)

    ours = Block(
        width,
        width,
        cell=cell,
        norm_epsilon=config.norm_eps,
        network=network.up_proj_dim,
        network_activation="swiglu",
    )
    gates = (layer.ogate_preact, layer.igate_preact, layer.fgate_preact)
    weights = {
        "project.weight": torch.cat([part.weight for part in (layer.q, layer.k, layer.v)]),
        "gates.weight": torch.cat([part.weight for part in gates]),
        "gates.bias": torch.cat([torch.zeros(width), *(part.bias for part in gates[1:])]),
        "norm.gain": layer.multihead_norm.weight,
        "out.weight": layer.out_proj.weight,
    }
    ours.cell.load_state_dict({name: weight.detach().clone() for name, weight in weights.items()})
    with torch.no_grad():
        ours.network.first.weight.copy_(torch.cat([network.proj_up_gate.weight, network.proj_up.weight]))
        ours.network.second.weight.copy_(network.proj_down.weight)
        ours.network.first.bias.zero_()  # transformers has none
        ours.network.second.bias.zero_()
    return ours, lambda x: theirs(x)[0], theirs


BLOCKS = {"mamba": mamba, "xlstm": xlstm}


def training(run: Run, of: nn.Module, x: Tensor) -> float:
    """CPU seconds of a forward and a backward pass."""
    of.zero_grad()
    x = x.clone().requires_grad_()
    begin = time.process_time()
    run(x).square().mean().backward()
    return time.process_time() - begin


def main() -> None:
    """Print both ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, number in (("width", 256), ("rows", 64), ("steps", 256), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--blocks", nargs="+", choices=BLOCKS, default=[*BLOCKS])
    settings = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    x = torch.randn(settings.rows, settings.steps, settings.width)
    print(
        f"width {settings.width}, {settings.rows} x {settings.steps}, transformers {transformers.__version__}"
    )
    for name in settings.blocks:
        block, theirs, module = BLOCKS[name](settings.width)

        def ours(x: Tensor, block: Block = block) -> Tensor:
            return block(x, block.start(x))[0]

        with torch.no_grad():
            torch.testing.assert_close(ours(x[:2]), theirs(x[:2]), rtol=1e-4, atol=1e-4)
        found = []
        for round_number in range(settings.rounds + 1):
            pair = training(ours, block, x), training(theirs, module, x)
            if round_number:  # the first does not count
                found.append(pair)
        weft, other = (statistics.median(times) for times in zip(*found, strict=True))
        ratios = sorted(b / a for a, b in found)
        print(
            f"{name}: Weft {weft:.2f} s, transformers {other:.2f} s, "
            f"ratio {statistics.median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
