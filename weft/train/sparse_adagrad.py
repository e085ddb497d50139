"""torch's Adagrad, which steps on the rows alone that a gradient holds, in compiled code.

Word vectors read a few thousand rows of a large table in an update. Models with the attribute
`sparse_gradients` give sparse gradients if an optimiser sets it. The twin is torch's step on dense gradients,
where a row without a gradient does not move either. Read next: ../nn/kernels/neighbours.py.
"""

from typing import Any

import torch
from torch import Tensor, nn

from weft import native
from weft.native import pointer


class SparseAdagrad(torch.optim.Adagrad):
    """torch.optim.Adagrad for dense gradients and sparse, coalesced ones (float32 on a CPU)."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Take a step."""
        held: list[tuple[nn.Parameter, Tensor]] = []
        for options in self.param_groups:
            for parameter in options["params"]:
                if parameter.grad is not None and parameter.grad.is_sparse:
                    held.append((parameter, parameter.grad))
                    _step(parameter, parameter.grad, self.state[parameter], options["lr"], options["eps"])
                    parameter.grad = None
        loss = super().step(closure)
        for parameter, gradient in held:
            parameter.grad = gradient
        return loss


def _step(weight: Tensor, gradient: Tensor, state: dict[str, Any], rate: float, epsilon: float) -> None:
    rows, values = gradient._indices()[0], gradient._values()
    slabs = native.slabs(len(rows))
    state["step"] += 1
    job = native.AdagradJob(
        *(len(rows), weight.shape[1], slabs, rate, epsilon),
        *map(pointer, (rows, values, weight, state["sum"])),
    )
    native.call("weft_adagrad", job)
