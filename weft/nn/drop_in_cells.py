"""Drop-in replacements for torch.nn's RNNCell, LSTMCell and GRUCell, with errors that say what to do.

A step is torch's operation; drop_in.py has whole sequences. cells/ has the cells of this package, for
stacks, encoders and decoders. Read next: drop_in.py.
"""

from typing import Any

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.drop_in_input import InputShapeError, state_found
from weft.nn.drop_in_torch import DropInModule


class DropInCell(DropInModule, nn.RNNCellBase):
    """Base of the three cells: torch's step after a check of its input."""

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The next state.

        Args:
            input: [B, D] or [D].
            hx: h [B, H] or [H], of an LSTM (h, c); None for zeros.

        Raises:
            ShapeError: input and state do not fit the cell or each other.
            ConfigError: the input's dtype differs from the weights'.
        """
        name, state = type(self).__name__, () if hx is None else (hx,) if isinstance(hx, Tensor) else hx
        if wrong := self._misfit(input, state):
            raise InputShapeError(
                f"{name}: {wrong}: expected an input [rows, {self.input_size}] and a state [rows, "
                f"{self.hidden_size}], got an input {list(input.shape)}{state_found(hx)}"
            )
        if input.dtype != self.weight_ih.dtype and not torch._C._is_any_autocast_enabled():
            raise ConfigError(
                f"{name}: input dtype ({input.dtype}) does not match weight dtype ({self.weight_ih.dtype}); "
                f"convert the input: input.to({self.weight_ih.dtype}), or the model: model.to({input.dtype})"
            )
        return super().forward(input, hx)

    def _misfit(self, x: Tensor, state: tuple[Tensor, ...]) -> str:
        """What does not fit, in torch's words; "" if all does."""
        names = ("hx[0]", "hx[1]") if isinstance(self, nn.LSTMCell) else ("hidden",)
        if x.dim() not in (1, 2):
            return f"Expected input to be 1D or 2D, got {x.dim()}D instead"
        if x.shape[-1] != self.input_size:
            return f"input has inconsistent input_size: got {x.shape[-1]} expected {self.input_size}"
        if state and len(state) != len(names):
            return f"Expected a state of {len(names)} tensors, got {len(state)}"
        for part, what in zip(state, names, strict=False):
            if part.dim() != x.dim():
                return f"Expected {what} to be 1D or 2D, got {part.dim()}D instead"
            if part.shape[-1] != self.hidden_size:
                return (
                    f"hidden0 has inconsistent hidden_size: got {part.shape[-1]}, expected {self.hidden_size}"
                )
            if x.dim() == 2 and len(part) != len(x):
                return f"Input batch size {len(x)} doesn't match hidden0 batch size {len(part)}"
        return ""


class RNNCell(DropInCell, nn.RNNCell):
    """torch.nn.RNNCell: h' = g(W_ih x + b_ih + W_hh h + b_hh).

    Args:
        input_size, hidden_size, bias, nonlinearity, device, dtype: as torch.nn.RNNCell.

    Example:
        >>> import torch
        >>> RNNCell(3, 5)(torch.zeros(2, 3)).shape
        torch.Size([2, 5])
    """


class LSTMCell(DropInCell, nn.LSTMCell):
    """torch.nn.LSTMCell.

    Args:
        input_size, hidden_size, bias, device, dtype: as torch.nn.LSTMCell.

    Example:
        >>> import torch
        >>> h, c = LSTMCell(3, 5)(torch.zeros(2, 3))
        >>> h.shape, c.shape
        (torch.Size([2, 5]), torch.Size([2, 5]))
    """


class GRUCell(DropInCell, nn.GRUCell):
    """torch.nn.GRUCell.

    Args:
        input_size, hidden_size, bias, device, dtype: as torch.nn.GRUCell.

    Example:
        >>> import torch
        >>> GRUCell(3, 5)(torch.zeros(2, 3)).shape
        torch.Size([2, 5])
    """
