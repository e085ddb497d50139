"""Sharded parameters (FSDP2): each process keeps its rows of every parameter, gradient and moment.

A parameter of R rows is cut along its first axis into N runs of ceil(R / N) rows, the last ones shorter or
empty. The whole is gathered where it is used: a Transformer's block by itself (nn/transformer.py, `calls`),
everything else for the whole of a pass, since a recurrent layer is called as often as a batch wants.
torch.distributed.fsdp.fully_shard does the work; this file says what is a unit, and turns rows to wholes and
back for checkpoints. Without sharding nothing here touches anything. Read next: processes.py, parts.py.

Source: Rajbhandari et al. 2020 (ZeRO), stage 3; torch.distributed.fsdp.fully_shard.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.train import weights
from weft.train.feeding.feeding import Feeding, always_true

OUTER = ("loss", "carry_on")  # what the loop calls of a model


def shard(model: nn.Module, device: torch.device, count: int, feeding: Feeding) -> None:
    """Leave this process its rows of every parameter, in place.

    Args:
        model: whole, the same in all processes.
        device: where it is.
        count: processes.
        feeding: of the training.

    Raises:
        ConfigError: the model's own words are fed step by step: the processes' batches have not as many
            steps, so they could not gather a block together.
    """
    units = [module for module in model.modules() if getattr(module, "calls", ())]
    if units and not feeding.parallel and not always_true(feeding):
        raise ConfigError(
            "training.sharding: full cannot feed words step by step; set "
            "training.feeding.parallel: true or sharding: none"
        )
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    # A block's keys and values are views, and nothing of ours writes into them.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    mesh = init_device_mesh(device.type, (count,))
    scalars = {parameter for parameter in model.parameters() if not parameter.dim()}  # nothing to be cut
    for module in (*units, model):
        fully_shard(module, mesh=mesh, ignored_params=scalars)
        for name in OUTER if module is model else getattr(module, "calls", ()):
            if hasattr(module, name):
                register_fsdp_forward_method(module, name)
        # A loss is a sum: gradients are summed, and divided by the count of all targets later. Without the
        # second line it asks for a scaled sum, which gloo has not.
        cast(FSDPModule, module).set_gradient_divide_factor(1.0)
        cast(FSDPModule, module).set_force_sum_reduction_for_comms(True)


def is_sharded(tensor: Tensor) -> bool:
    """Whether a parameter, or what belongs to one, is here by its rows."""
    return hasattr(tensor, "to_local")


def local(tensor: Tensor) -> Tensor:
    """What of it is here: this process's rows, or all of it; the same memory."""
    return cast(Any, tensor).to_local() if is_sharded(tensor) else tensor


def rows(whole: Tensor, like: Tensor) -> Tensor:
    """This process's rows of a whole tensor that belongs to a parameter, as a parameter has them.

    Args:
        whole: the same in all processes.
        like: the parameter.
    """
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
    """Put whole weights into a model, sharded or not.

    Raises:
        CheckpointError: they are those of another model.
    """
    own = model.state_dict()
    if not any(map(is_sharded, own.values())):
        weights.restore(model, whole, place)
        return
    weights.check(own, whole, place)
    with torch.no_grad():
        for name, tensor in own.items():
            local(tensor).copy_(local(rows(whole[name], tensor)))


def gathered(model: nn.Module, make: Callable[[], nn.Module], *, wanted: bool) -> nn.Module | None:
    """A whole model with the weights of a sharded one; all processes must ask for it together.

    Args:
        model: sharded.
        make: a new model, whole.
        wanted: whether this process keeps it; the others help, one tensor in memory at a time.
    """
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
