"""Drop-in replacements for torch.nn's RNN, LSTM and GRU: same arguments, inputs, state_dict and numbers.

    from weft.nn import LSTM          # instead of: from torch.nn import LSTM

They subclass torch's classes (isinstance, parametrizations and checkpoints work) with another `forward`:
layer by layer on the kernels of this package, and with a shrinking batch for packed sequences. torch's
operation is used where it is faster or the only one: on a GPU (cuDNN), with `proj_size`, for packed
sequences without gradients, and while a graph is traced or exported.
Read next: drop_in_layers.py, the `forward`; drop_in_input.py, input checks; drop_in_cells.py; recurrent.py,
whose stacks support a size per layer, a learned join and every cell of this package.
"""

from typing import Any

import torch
from torch import Tensor, nn

from weft.nn.drop_in_input import Nan, as_configuration, refuse_projection
from weft.nn.drop_in_layers import DropIn, Join, State
from weft.nn.ops import elman, gru, lstm, torch_lstm


class RNN(DropIn, nn.RNN):
    """torch.nn.RNN: h_t = g(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh).

    Args:
        input_size, hidden_size, num_layers, nonlinearity, bias, batch_first, dropout, bidirectional,
            device, dtype: as torch.nn.RNN.
        join, residual, nan: see `DropIn`.
        proj_size: 0, as only an LSTM has a projection.

    Raises:
        ConfigError: another proj_size.

    Example:
        >>> import torch
        >>> theirs = torch.nn.RNN(3, 5, num_layers=2)
        >>> ours = RNN(3, 5, num_layers=2)
        >>> ours.load_state_dict(theirs.state_dict())
        <All keys matched successfully>
        >>> x = torch.randn(7, 2, 3)
        >>> torch.allclose(ours(x)[0], theirs(x)[0], atol=1e-5)
        True
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        join: Join = "concatenate",
        residual: bool = False,
        nan: Nan = "refuse",
        proj_size: int = 0,
    ) -> None:
        refuse_projection("RNN", proj_size)
        with as_configuration("RNN", input_size, hidden_size, num_layers):
            super().__init__(
                input_size,
                hidden_size,
                num_layers,
                nonlinearity,
                bias,
                batch_first,
                dropout,
                bidirectional,
                device=device,
                dtype=dtype,
            )
        self._settle(join, residual, nan)

    def cell(self) -> str:
        return {"tanh": "elman", "relu": "relu"}[self.nonlinearity]

    def layer(
        self, weights: list[Tensor], x: Tensor, state: State, mask: Tensor | None
    ) -> tuple[Tensor, State]:
        weight_x, weight_h, *biases = weights
        y, h = elman(x, state[0], weight_x, weight_h, _bias(biases, weight_h), self.nonlinearity, mask)
        return y, (h,)


class LSTM(DropIn, nn.LSTM):
    """torch.nn.LSTM, including projections.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device,
            dtype: as torch.nn.LSTM.
        join, residual, nan: see `DropIn`.

    Example:
        >>> import torch
        >>> x = torch.nn.utils.rnn.pack_sequence([torch.randn(2, 3), torch.randn(7, 3)], enforce_sorted=False)
        >>> y, (h, c) = LSTM(3, 5, bidirectional=True)(x)
        >>> y.data.shape, h.shape
        (torch.Size([9, 10]), torch.Size([2, 2, 5]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        join: Join = "concatenate",
        residual: bool = False,
        nan: Nan = "refuse",
    ) -> None:
        with as_configuration("LSTM", input_size, hidden_size, num_layers):
            super().__init__(
                input_size,
                hidden_size,
                num_layers,
                bias,
                batch_first,
                dropout,
                bidirectional,
                proj_size,
                device=device,
                dtype=dtype,
            )
        self._settle(join, residual, nan)

    def cell(self) -> str:
        return "lstm"

    def layer(
        self, weights: list[Tensor], x: Tensor, state: State, mask: Tensor | None
    ) -> tuple[Tensor, State]:
        weight_x, weight_h, *biases = weights
        if self.proj_size:
            return _projected(x, state, weights, mask)
        y, h, c = lstm(x, state[0], state[1], weight_x, weight_h, _bias(biases, weight_h), mask)
        return y, (h, c)


class GRU(DropIn, nn.GRU):
    """torch.nn.GRU, with the reset gate after the recurrent product.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype: as
            torch.nn.GRU.
        join, residual, nan: see `DropIn`.
        proj_size: 0, as only an LSTM has a projection.

    Raises:
        ConfigError: another proj_size.

    Example:
        >>> import torch
        >>> y, h = GRU(3, 5, num_layers=2, batch_first=True, residual=True)(torch.zeros(2, 7, 3))
        >>> y.shape, h.shape
        (torch.Size([2, 7, 5]), torch.Size([2, 2, 5]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        join: Join = "concatenate",
        residual: bool = False,
        nan: Nan = "refuse",
        proj_size: int = 0,
    ) -> None:
        refuse_projection("GRU", proj_size)
        with as_configuration("GRU", input_size, hidden_size, num_layers):
            super().__init__(
                input_size,
                hidden_size,
                num_layers,
                bias,
                batch_first,
                dropout,
                bidirectional,
                device=device,
                dtype=dtype,
            )
        self._settle(join, residual, nan)

    def cell(self) -> str:
        return "gru"

    def layer(
        self, weights: list[Tensor], x: Tensor, state: State, mask: Tensor | None
    ) -> tuple[Tensor, State]:
        weight_x, weight_h, *biases = weights
        size = self.hidden_size
        if biases:
            gates = biases[0][: 2 * size] + biases[1][: 2 * size]
            bias, inner = torch.cat([gates, biases[0][2 * size :]]), biases[1][2 * size :]
        else:
            bias, inner = weight_h.new_zeros(3 * size), weight_h.new_zeros(size)
        y, h = gru(x, state[0], weight_x, weight_h, bias, inner, mask)
        return y, (h,)


def _bias(biases: list[Tensor], weight_h: Tensor) -> Tensor:
    return biases[0] + biases[1] if biases else weight_h.new_zeros(weight_h.shape[0])


def _projected(x: Tensor, state: State, weights: list[Tensor], mask: Tensor | None) -> tuple[Tensor, State]:
    """An LSTM with a projection, with torch's operation; padding is handled by packing."""
    before = [each[None] for each in state]
    if mask is None:
        y, h, c = torch_lstm(x, before, weights)
        return y, (h[0], c[0])
    data, sizes = torch._VF._pack_padded_sequence(
        x, mask.sum(1).cpu(), True
    )  # rows are sorted, the longest first
    y, h, c = torch_lstm(data, before, weights, sizes)
    y, _ = torch._VF._pad_packed_sequence(y, sizes, True, 0.0, mask.shape[1])
    return y, (h[0], c[0])
