"""How the weights of a recurrence start."""

import torch
from torch import nn


def recurrent_weights(
    in_size: int, size: int, *, gates: int
) -> tuple[nn.Parameter, nn.Parameter, nn.Parameter]:
    """Weights for G gates stacked as torch stacks them.

    The input's are Glorot-uniform for each gate, the recurrent ones orthogonal for each gate (Saxe
    2014): a product of many of them neither grows nor shrinks. torch.nn draws both uniformly within
    1/sqrt(H).

    Returns:
        weight_x [G H, D], weight_h [G H, H], bias [G H] zeros.
    """
    weight_x = nn.Parameter(torch.empty(gates * size, in_size))
    weight_h = nn.Parameter(torch.empty(gates * size, size))
    for gate in range(gates):
        rows = slice(gate * size, (gate + 1) * size)
        nn.init.xavier_uniform_(weight_x.data[rows])
        nn.init.orthogonal_(weight_h.data[rows])
    return weight_x, weight_h, nn.Parameter(torch.zeros(gates * size))
