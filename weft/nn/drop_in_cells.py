"""Drop-in replacements for torch.nn's RNNCell, LSTMCell and GRUCell, with errors that say what to do.

A step is torch's operation; drop_in.py has whole sequences. cells/ has the cells of this package, for
stacks, encoders and decoders. Read next: drop_in.py.
"""

from typing import Any

from torch import Tensor, nn

from weft.nn.drop_in_input import InputShapeError, as_configuration, check_dtype
from weft.nn.drop_in_torch import Known


class RNNCell(Known, nn.RNNCell):
    """torch.nn.RNNCell: h' = g(W_ih x + b_ih + W_hh h + b_hh).

    Args:
        input_size, hidden_size, bias, nonlinearity, device, dtype: as torch.nn.RNNCell.

    Example:
        >>> import torch
        >>> RNNCell(3, 5)(torch.zeros(2, 3)).shape
        torch.Size([2, 5])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        with as_configuration("RNNCell", input_size, hidden_size, 1):
            super().__init__(input_size, hidden_size, bias, nonlinearity, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Input [B, D] or [D], hx [B, H] or [H], to the next h; ShapeError where they do not fit."""
        _check(self, input, () if hx is None else (hx,), ("hidden",))
        return super().forward(input, hx)


class LSTMCell(Known, nn.LSTMCell):
    """torch.nn.LSTMCell.

    Args:
        input_size, hidden_size, bias, device, dtype: as torch.nn.LSTMCell.

    Example:
        >>> import torch
        >>> h, c = LSTMCell(3, 5)(torch.zeros(2, 3))
        >>> h.shape, c.shape
        (torch.Size([2, 5]), torch.Size([2, 5]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        with as_configuration("LSTMCell", input_size, hidden_size, 1):
            super().__init__(input_size, hidden_size, bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Input [B, D] or [D], (h, c) [B, H] or [H], to the next (h, c); ShapeError where they do not fit."""
        _check(self, input, () if hx is None else tuple(hx), ("hx[0]", "hx[1]"))
        return super().forward(input, hx)


class GRUCell(Known, nn.GRUCell):
    """torch.nn.GRUCell.

    Args:
        input_size, hidden_size, bias, device, dtype: as torch.nn.GRUCell.

    Example:
        >>> import torch
        >>> GRUCell(3, 5)(torch.zeros(2, 3)).shape
        torch.Size([2, 5])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        with as_configuration("GRUCell", input_size, hidden_size, 1):
            super().__init__(input_size, hidden_size, bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Input [B, D] or [D], hx [B, H] or [H], to the next h; ShapeError where they do not fit."""
        _check(self, input, () if hx is None else (hx,), ("hidden",))
        return super().forward(input, hx)


def _check(cell: nn.RNNCellBase, x: Tensor, state: tuple[Tensor, ...], names: tuple[str, ...]) -> None:
    name = type(cell).__name__
    if x.dim() not in (1, 2):
        raise InputShapeError(
            f"{name}: Expected input to be 1D or 2D, got {x.dim()}D instead: expected "
            f"[rows, {cell.input_size}] or [{cell.input_size}], got {list(x.shape)}"
        )
    if x.shape[-1] != cell.input_size:
        raise InputShapeError(
            f"{name}: input has inconsistent input_size: got {x.shape[-1]} expected {cell.input_size}: "
            f"the shape must be [rows, {cell.input_size}], got {list(x.shape)}"
        )
    if state and len(state) != len(names):
        raise InputShapeError(f"{name}: expected a state of {len(names)} tensors, got {len(state)}")
    for part, what in zip(state, names, strict=False):
        found = f"got a state {list(part.shape)} with an input {list(x.shape)}"
        if part.dim() not in (1, 2) or part.dim() != x.dim():
            raise InputShapeError(
                f"{name}: Expected {what} to be 1D or 2D, got {part.dim()}D instead: {found}; "
                "give both rows, or none"
            )
        if part.shape[-1] != cell.hidden_size:
            raise InputShapeError(
                f"{name}: hidden0 has inconsistent hidden_size: got {part.shape[-1]}, expected "
                f"{cell.hidden_size}: {found}; carry the state of this cell"
            )
        if x.dim() == 2 and len(part) != len(x):
            raise InputShapeError(
                f"{name}: Input batch size {len(x)} doesn't match hidden0 batch size {len(part)}: {found}; "
                "carry the state of the same rows"
            )
    check_dtype(x, cell.weight_ih)
