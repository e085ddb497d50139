"""Find where a loss or gradient stopped being finite, and warn of a training that diverges before it does.

The batches run again with the same dropout while hooks watch every layer. The first non-finite output of the
forward pass is reported, or else the first non-finite gradient of the backward pass. Read next: update.py.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from weft import tree
from weft.errors import WeftError
from weft.nn.heads.head import Loss
from weft.train.settings import TrainingSettings


class NonFinite(WeftError):
    """A loss or a gradient is infinite or not a number."""


def advice(settings: TrainingSettings) -> str:
    """What to change if updates are too large."""
    clip = settings.clip_norm
    return f"lower training.optimiser.lr (now {settings.optimiser.lr:g}), lengthen the warm-up, or " + (
        f"lower training.clip_norm (now {clip:g})" if clip else "set training.clip_norm: 1.0 (now 0, off)"
    )


def explain(model: nn.Module, losses: Iterator[Loss]) -> tuple[int, str]:
    """Find the batch and the layer where numbers stopped being finite.

    Returns:
        The index of the batch in the group, and a phrase that names the layer.
    """
    for name, parameter in model.named_parameters():
        if not _finite(parameter):
            return 0, f"parameter {name} was not finite before the update"
    found: list[str] = []
    handles = [
        module.register_forward_hook(partial(_forward, found, name or "the model"))
        for name, module in model.named_modules()
    ]
    handles += [
        parameter.register_hook(partial(_backward, found, f"of parameter {name}"))
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    ]
    last = 0
    try:
        for last, loss in enumerate(losses):
            if not _finite(loss.total):
                where = (
                    found[0] if found else "every layer's output is finite, so the loss itself is the cause"
                )
                return last, f"the loss is {loss.total.item()}: {where}"
            loss.total.backward()
            if found:
                return last, found[0]
    finally:
        for handle in handles:
            handle.remove()
    return last, "the norm of the gradient overflows, although each of its parts is finite"


def _forward(found: list[str], name: str, module: nn.Module, inputs: Any, output: Any) -> None:
    for leaf in tree.leaves(output):
        if not _finite(leaf):
            found.append(f"the output of layer {name} is not finite")
            return
        if leaf.requires_grad:
            leaf.register_hook(partial(_backward, found, f"at the output of layer {name}"))


def _backward(found: list[str], where: str, gradient: Tensor | None) -> None:
    if gradient is not None and not _finite(gradient):  # None for an output that the loss does not use
        found.append(f"the gradient {where} is not finite")


def _finite(tensor: Tensor) -> bool:
    return bool(torch.isfinite(tensor._values() if tensor.is_sparse else tensor).all())


AT_ONCE = 100.0
"""A loss above this multiple of the lowest one so far (or of 1, if larger) is divergence at once."""

LASTING = 10.0
"""A loss above this multiple for PATIENCE updates is divergence; single outliers occur in forecasting."""

PATIENCE = 10


class Divergence:
    """Compares each update's loss with the lowest one so far.

    Args:
        settings: training settings, for the advice.

    Example:
        >>> from weft.train.optimisers import SGD
        >>> watch = Divergence(TrainingSettings(optimiser=SGD(lr=10.0), max_epochs=1))
        >>> watch.after(1, 3.0)
        ''
        >>> watch.after(2, 4e30)[:38]
        'update 2: the loss is 4e+30, and was 3'
    """

    def __init__(self, settings: TrainingSettings) -> None:
        self._settings = settings
        self._lowest = math.inf
        self._high = 0
        self._said = False

    def after(self, update: int, loss: float) -> str:
        """The warning after an update; "" if there is nothing to report, and after the first warning.

        Args:
            loss: per target, in nats.
        """
        if self._said:
            return ""
        self._lowest = min(self._lowest, loss)
        usual = max(1.0, abs(self._lowest))
        self._high = self._high + 1 if loss > LASTING * usual else 0
        if loss <= AT_ONCE * usual and self._high < PATIENCE:
            return ""
        self._said = True
        return (
            f"update {update}: the loss is {loss:.3g}, and was {self._lowest:.3g} at its lowest: training "
            f"diverges and is unlikely to recover; stop it and start a new run: {advice(self._settings)}"
        )
