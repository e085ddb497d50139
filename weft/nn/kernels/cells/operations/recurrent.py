"""torch's recurrent operations with what cuDNN asks for on a GPU. Read next: lstm.py, gru.py, elman.py.

cuDNN computes gradients only of calls that announce them (`train`), and reads all weights of a layer from
one piece of memory: the matrices, then the biases. Where they lie apart, torch copies them and warns.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def recurrent(
    function: Callable[..., Any],
    x: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor],
    sizes: Tensor | None = None,
) -> Any:
    """One layer in one direction, with rows first.

    Args:
        function: torch.lstm, torch.gru, torch.rnn_tanh or torch.rnn_relu.
        x: [B, T, D]; with `sizes`, the data of packed rows [N, D].
        state: h [1, B, H], and c for an LSTM.
        weights: those of the inputs and of the state, then two biases or none, then a projection's.
        sizes: the packed rows' sizes [T].

    Returns:
        What the function returns: y, h, and c for an LSTM.
    """
    training = False
    if x.is_cuda:
        training = torch.is_grad_enabled() and any(each.requires_grad for each in (x, *state, *weights))
        state, weights = [each.contiguous() for each in state], together(weights)
    started = list(state) if len(state) > 1 else state[0]
    how = list(weights), len(weights) > 3, 1, 0.0, training, False
    if sizes is not None:
        return function(x, sizes, started, *how)
    return function(x, started, *how, True)


def together(weights: Sequence[Tensor]) -> list[Tensor]:
    """The same weights as parts of one tensor: matrices before biases, in the order of `weights` within each.

    Example:
        >>> parts = together([torch.ones(4, 2), torch.ones(4), torch.ones(3, 2)])
        >>> [list(part.shape) for part in parts], [part.storage_offset() for part in parts]
        ([[4, 2], [4], [3, 2]], [0, 14, 8])
    """
    order = sorted(range(len(weights)), key=lambda number: -weights[number].dim())
    flat = torch.cat([weights[number].reshape(-1) for number in order])
    parts = flat.split([weights[number].numel() for number in order])
    placed = {number: part.view_as(weights[number]) for number, part in zip(order, parts, strict=True)}
    return [placed[number] for number in range(len(weights))]
