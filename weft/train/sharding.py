"""Sharded parameters (FSDP2): each process keeps its rows of every parameter, gradient and moment.

A parameter of R rows is cut along its first axis into N pieces of ceil(R / N) rows, the last ones shorter or
empty. Whole parameters are gathered for use: those of a Transformer block for that block (nn/transformer.py,
`calls`), all others for a whole pass, since the number of calls of a recurrent layer depends on the batch.
torch.distributed.fsdp.fully_shard does the work; this file defines the units, and converts between rows and
whole tensors for checkpoints. Without sharding nothing here has an effect. Read next: processes.py, parts.py.

Source: Rajbhandari et al. 2020 (ZeRO), stage 3; torch.distributed.fsdp.fully_shard.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.store import weights
from weft.train.feeding import Feeding, always_true

OUTER = ("loss", "carry_on")  # methods of a model that the loop calls


def shard(model: nn.Module, device: torch.device, count: int, feeding: Feeding) -> None:
    """Shard a model in place, so that this process keeps its rows of every parameter."""
    units = [module for module in model.modules() if getattr(module, "calls", ())]
    if units and not feeding.parallel and not always_true(feeding):
        raise ConfigError(
            "training.sharding: full does not support feeding words step by step; set "
            "training.feeding.parallel: true or sharding: none"
        )
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    # The keys and values of a block are views, and nothing writes into them.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    mesh = init_device_mesh(device.type, (count,))
    scalars = {parameter for parameter in model.parameters() if not parameter.dim()}  # cannot be cut
    for module in (*units, model):
        fully_shard(module, mesh=mesh, ignored_params=scalars)
        for name in OUTER if module is model else getattr(module, "calls", ()):
            if hasattr(module, name):
                register_fsdp_forward_method(module, name)
        # The loss is a sum: gradients are summed here and divided by the number of all targets later. Without
        # the second line torch asks for a scaled sum, which gloo does not support.
        cast(FSDPModule, module).set_gradient_divide_factor(1.0)
        cast(FSDPModule, module).set_force_sum_reduction_for_comms(True)


def is_sharded(tensor: Tensor) -> bool:
    """Whether a tensor is sharded, so that this process has only some rows."""
    return hasattr(tensor, "to_local")


def local(tensor: Tensor) -> Tensor:
    """This process's rows of a sharded tensor, those that a sparse one holds, or the whole of another.

    The result shares the tensor's memory.
    """
    if tensor.is_sparse:
        return tensor._values()
    return cast(Any, tensor).to_local() if is_sharded(tensor) else tensor


def rows(whole: Tensor, like: Tensor) -> Tensor:
    """Shard a whole tensor in the same way as a parameter."""
    if not is_sharded(like) or whole.shape != like.shape:
        return whole
    from torch.distributed.tensor import DTensor

    sharded = cast(Any, like)
    each = -(-len(whole) // sharded.device_mesh.size())
    begin = sharded.device_mesh.get_local_rank() * each
    mine = whole[begin : begin + each].to(like.device)
    return DTensor.from_local(
        mine.clone(),
        sharded.device_mesh,
        sharded.placements,
        run_check=False,
        shape=whole.shape,
        stride=whole.stride(),
    )


def restore(model: nn.Module, whole: Mapping[str, Tensor], place: str) -> None:
    """Load whole weights into a model, sharded or not."""
    own = model.state_dict()
    if not any(map(is_sharded, own.values())):
        weights.restore(model, whole, place)
        return
    weights.check_fits_model(own, whole, place)
    with torch.no_grad():
        for name, tensor in own.items():
            local(tensor).copy_(local(rows(whole[name], tensor)))


def gathered(model: nn.Module, make: Callable[[], nn.Module], *, wanted: bool) -> nn.Module | None:
    """A whole model with the weights of a sharded one; all processes must call this together."""
    whole = {}
    for name, tensor in model.state_dict().items():
        full = cast(Any, tensor).full_tensor() if is_sharded(tensor) else tensor
        if wanted:
            whole[name] = full
    if not wanted:
        return None
    made = make().to(next(model.parameters()).device)
    weights.restore(made, whole, "the sharded model")
    return made
