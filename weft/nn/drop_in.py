"""Drop-in replacements for torch.nn's RNN, LSTM, GRU and their cells: same arguments, state_dict and numbers.

    from weft.nn import LSTM          # instead of: from torch.nn import LSTM

They subclass torch's classes (isinstance, parametrizations and checkpoints work) with another `forward`:
layer by layer on the kernels of this package, and with a shrinking batch for packed sequences. torch's
operation is used where it is faster or the only one: on a GPU (cuDNN), with `proj_size`, for packed
sequences without gradients, and while a graph is traced or exported. A cell is torch's own step, with errors
that say what to do; cells/ has the cells of this package, for stacks, encoders and decoders.
A time step of a few rows, which a generator calls for every token, has a shorter way: compiled code, or with
gradients torch's operation, which trains small LSTMs too. Its checks only find out whether a call can be
served; others, wrong ones among them, are left to `forward`, its twin. Read next: drop_in_torch.py, input
checks; recurrent.py, whose stacks support a size per layer, a learned join and every cell of this package.
"""

import math
from abc import abstractmethod
from ctypes import c_float
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from weft import masks, native
from weft.errors import ConfigError
from weft.masks import inspectable
from weft.nn.border import called
from weft.nn.drop_in_torch import (
    DropInModule,
    InputShapeError,
    Nan,
    RecurrentInput,
    check_given,
    left_eager,
    pack_output,
    read_input,
    refuse_nan,
    state_found,
)
from weft.nn.ops import PLAIN_ROWS, LayerInput, dropout, forced, run_layer, skips_padding, torch_lstm
from weft.nn.ops import one_step as step_compiled
from weft.nn.recurrent import plan, run_pieces
from weft.probe import mapped, traced
from weft.shapes import check_choice

Join = Literal["concatenate", "mean", "sum"]
State = tuple[Tensor, ...]
Device = torch.device | str | int | None


class DropIn(DropInModule, nn.RNNBase):
    """Base of the three classes: `forward`, and keyword-only settings that torch.nn does not have.

    NaN is looked for on the CPU, and only if the final state has NaN, which costs nothing.
    """

    # defaults for a torch.nn module whose __class__ was set to one of these classes
    join: Join = "concatenate"
    residual: bool = False
    nan: Nan = "refuse"

    def __init__(
        self,
        *others: Any,
        join: Join = "concatenate",
        residual: bool = False,
        nan: Nan = "refuse",
        **more: Any,
    ) -> None:
        if more.get("proj_size") == 0:  # the default, which torch's RNN and GRU refuse to be told
            del more["proj_size"]
        super().__init__(*others, **more)
        check_choice("join", join, Join)
        check_choice("nan", nan, Nan)
        self.join, self.residual, self.nan = join, residual, nan
        if join != "concatenate" and self.bidirectional:
            for name in self._flat_weights_names:
                weight = getattr(self, name)
                if name.startswith("weight_ih") and not name.startswith("weight_ih_l0"):
                    setattr(self, name, nn.Parameter(weight.detach()[:, : weight.shape[1] // 2].clone()))
            self.reset_parameters()

    @abstractmethod
    def layer(
        self, weights: list[Tensor], x: Tensor, state: State, mask: Tensor | None
    ) -> tuple[Tensor, State]:
        """Run one layer and direction over x [B, T, D]; weights W_ih, W_hh, b_ih, b_hh."""

    @left_eager
    def forward(self, input: Tensor | PackedSequence, hx: Any = None, *, mask: None = None) -> Any:
        """Like torch.nn's, which knows no mask.

        Args:
            input: [T, B, D], [B, T, D] with batch_first, [T, D] for one sequence, or a PackedSequence.
        """
        if mask is not None:
            name = type(self).__name__
            raise ConfigError(
                f"{name}: expected rows packed by pack_padded_sequence, as torch's {name} takes them, got a "
                f"mask; weft.nn.layer_of(weft.nn.cells.{ALIKE.get(name, name)}) is a layer that takes one"
            )
        check_given(self, input)
        if not self.residual:
            found = quick(self, input, hx, self.nan)
            if found is not None:
                return found
        own = self._torchs_own(input)
        read = read_input(self, input, hx, unpack=not own)
        if own:
            output, state = super().forward(input, hx)
        else:
            y, finals = self._layers(read)
            if y.requires_grad and not self.bidirectional and self.mode != "LSTM":
                y = y.clone()  # a view, which callers may change in place as torch's; not that of an LSTM
            output, state = pack_output(self, read, y, finals)
        if self.nan == "refuse":
            refuse_nan(type(self).__name__, read, state)
        return output, state

    def flatten_parameters(self) -> None:
        """Like torch's; cuDNN has no joins other than concatenation."""
        if self.join == "concatenate":
            super().flatten_parameters()

    def extra_repr(self) -> str:
        """The settings shown by print."""
        own = [f"join={self.join}"] if self.join != "concatenate" else []
        own += ["residual=True"] if self.residual else []
        return ", ".join([super().extra_repr(), *own])

    def _torchs_own(self, input: Tensor | PackedSequence) -> bool:
        if self.residual or (self.bidirectional and self.join != "concatenate"):
            return False
        if mapped() and not self.proj_size:
            return False
        packed = isinstance(input, PackedSequence)
        x = input.data if packed else input
        if x.device.type != "cpu" or self.proj_size or not inspectable(x):
            return True
        if packed:
            return not torch.is_grad_enabled()
        rows = 1 if x.dim() == 2 else x.shape[0 if self.batch_first else 1]
        plain = x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
        return plain and torch.is_grad_enabled() and _torch_trains(self, rows)

    def _layers(self, read: RecurrentInput) -> tuple[Tensor, State]:
        """y [B, T, ..] and the final states [layers x directions, B, ..], in the computed order of rows."""
        x, mask = read.x, read.mask
        cuts = None if mask is None or skips_padding(x) else plan(mask)
        finals: list[State] = []
        for number in range(self.num_layers):
            ys = []
            for end in ("", "_reverse") if self.bidirectional else ("",):
                names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"][: 4 if self.bias else 2]
                weights = [getattr(self, f"{name}_l{number}{end}") for name in names]
                if self.proj_size:
                    weights.append(getattr(self, f"weight_hr_l{number}{end}"))
                run = partial(self.layer, weights)
                before = tuple(each[len(finals)] for each in read.state)
                inside = _reversed(x, mask) if end else x
                if mask is None or cuts is None:
                    y, final = run(inside, before, mask)
                else:
                    y, final = run_pieces(run, inside, before, mask, cuts)
                ys.append(_reversed(y, mask) if end else y)
                finals.append(final)
            y = self._joined(ys)
            y = x + y if self.residual and number else y
            x = dropout(y, self.dropout, training=self.training) if number < self.num_layers - 1 else y
        return x, tuple(torch.stack(each) for each in zip(*finals, strict=True))

    def _joined(self, ys: list[Tensor]) -> Tensor:
        if len(ys) == 1 or self.join == "concatenate":
            return ys[0] if len(ys) == 1 else torch.cat(ys, -1)
        total = ys[0] + ys[1]
        return total / 2 if self.join == "mean" else total


class RNN(DropIn, nn.RNN):
    """torch.nn.RNN, h_t = g(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh): the same arguments and state_dict.

    An input is [T, B, D], [B, T, D] with batch_first, [T, D] for one sequence, or a PackedSequence:
    output, h = rnn(input, h), where the state may be left out for zeros.

    Args:
        input_size, hidden_size: D, features of the input, and H, those of the state.
        num_layers: L; each layer reads the output of the one below.
        nonlinearity: g, "tanh" or "relu".
        bias: whether there are b_ih and b_hh.
        batch_first: whether rows come first in input and output; the state is [L, B, H] in any case.
        dropout: dropout rate between layers, in training.
        bidirectional: a second network reads each layer from the end; the state then is [2 L, B, H].
        proj_size: 0; only an LSTM has a projection.
        device, dtype: of the weights.
        join: "concatenate" the two directions as torch does, or give their "mean" or "sum"; layers above the
            first then read H features, not 2H.
        residual: layers above the first add their input to their output.
        nan: "refuse" raises an error that names the row and step of a NaN in the input; "pass" propagates it.

    Returns:
        The output of the top layer, in the form of the input, and the final state h.

    Raises:
        ShapeError, ConfigError: wrong shapes, dtypes or devices of the input or the state.

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
        nonlinearity: Literal["tanh", "relu"] = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device = None,
        dtype: torch.dtype | None = None,
        *,
        join: Join = "concatenate",
        residual: bool = False,
        nan: Nan = "refuse",
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            num_layers=num_layers,
            nonlinearity=nonlinearity,
            bias=bias,
            batch_first=batch_first,
            dropout=dropout,
            bidirectional=bidirectional,
            proj_size=proj_size,
            device=device,
            dtype=dtype,
            join=join,
            residual=residual,
            nan=nan,
        )

    def layer(
        self, weights: list[Tensor], x: Tensor, state: State, mask: Tensor | None
    ) -> tuple[Tensor, State]:
        weight_x, weight_h, *biases = weights
        bias = _bias(biases, weight_h)
        y, h, _ = run_layer(
            CELLS[self.mode], LayerInput(x, *state, None, weight_x, weight_h, bias, None, mask)
        )
        return y, (h,)


class _GatedDropIn(DropIn):
    """Base of the LSTM and the GRU, whose constructors take the same arguments."""

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
        device: Device = None,
        dtype: torch.dtype | None = None,
        *,
        join: Join = "concatenate",
        residual: bool = False,
        nan: Nan = "refuse",
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            num_layers=num_layers,
            bias=bias,
            batch_first=batch_first,
            dropout=dropout,
            bidirectional=bidirectional,
            proj_size=proj_size,
            device=device,
            dtype=dtype,
            join=join,
            residual=residual,
            nan=nan,
        )


class LSTM(_GatedDropIn, nn.LSTM):
    """torch.nn.LSTM: the same arguments, inputs, state_dict and numbers; computed by Weft's kernels on a CPU.

    An input is [T, B, D], [B, T, D] with batch_first, [T, D] for one sequence, or a PackedSequence:
    output, (h, c) = lstm(input, (h, c)), where the state may be left out for zeros.

    Args:
        input_size, hidden_size: D, features of the input, and H, those of the state.
        num_layers: L; each layer reads the output of the one below.
        bias: whether there are b_ih and b_hh.
        batch_first: whether rows come first in input and output; the state is [L, B, H] in any case.
        dropout: dropout rate between layers, in training.
        bidirectional: a second network reads each layer from the end; the state then is [2 L, B, H].
        proj_size: project h to this many features; 0 for no projection.
        device, dtype: of the weights.
        join: "concatenate" the two directions as torch does, or give their "mean" or "sum"; layers above the
            first then read H features, not 2H.
        residual: layers above the first add their input to their output.
        nan: "refuse" raises an error that names the row and step of a NaN in the input; "pass" propagates it.

    Returns:
        The output of the top layer, in the form of the input, and the final state (h, c).

    Raises:
        ShapeError, ConfigError: wrong shapes, dtypes or devices of the input or the state.

    Example:
        >>> import torch
        >>> x = torch.nn.utils.rnn.pack_sequence([torch.randn(2, 3), torch.randn(7, 3)], enforce_sorted=False)
        >>> y, (h, c) = LSTM(3, 5, bidirectional=True)(x)
        >>> y.data.shape, h.shape
        (torch.Size([9, 10]), torch.Size([2, 2, 5]))
    """

    def layer(
        self, weights: list[Tensor], x: Tensor, state: State, mask: Tensor | None
    ) -> tuple[Tensor, State]:
        weight_x, weight_h, *biases = weights
        if self.proj_size:
            return _projected(x, state, weights, mask)
        bias = _bias(biases, weight_h)
        y, *after = run_layer("lstm", LayerInput(x, *state, weight_x, weight_h, bias, None, mask))
        return y, tuple(after)


class GRU(_GatedDropIn, nn.GRU):
    """torch.nn.GRU, the reset gate after the recurrent product: the same arguments and state_dict.

    An input is [T, B, D], [B, T, D] with batch_first, [T, D] for one sequence, or a PackedSequence:
    output, h = gru(input, h), where the state may be left out for zeros.

    Args:
        input_size, hidden_size: D, features of the input, and H, those of the state.
        num_layers: L; each layer reads the output of the one below.
        bias: whether there are b_ih and b_hh.
        batch_first: whether rows come first in input and output; the state is [L, B, H] in any case.
        dropout: dropout rate between layers, in training.
        bidirectional: a second network reads each layer from the end; the state then is [2 L, B, H].
        proj_size: 0; only an LSTM has a projection.
        device, dtype: of the weights.
        join: "concatenate" the two directions as torch does, or give their "mean" or "sum"; layers above the
            first then read H features, not 2H.
        residual: layers above the first add their input to their output.
        nan: "refuse" raises an error that names the row and step of a NaN in the input; "pass" propagates it.

    Returns:
        The output of the top layer, in the form of the input, and the final state h.

    Raises:
        ShapeError, ConfigError: wrong shapes, dtypes or devices of the input or the state.

    Example:
        >>> import torch
        >>> y, h = GRU(3, 5, num_layers=2, batch_first=True, residual=True)(torch.zeros(2, 7, 3))
        >>> y.shape, h.shape
        (torch.Size([2, 7, 5]), torch.Size([2, 2, 5]))
    """

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
        y, h, _ = run_layer("gru", LayerInput(x, *state, None, weight_x, weight_h, bias, inner, mask))
        return y, (h,)


class DropInCell(DropInModule, nn.RNNCellBase):
    """Base of the three cells: torch's step, whose errors also say what was expected and what was found."""

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The next state.

        Args:
            input: [B, D] or [D].
            hx: h [B, H] or [H], of an LSTM (h, c); None for zeros.
        """
        check_given(self, input)
        name, dtype, count = type(self).__name__, self.weight_ih.dtype, 1 + isinstance(self, nn.LSTMCell)
        states = () if hx is None else hx if isinstance(hx, tuple | list) else (hx,)
        try:
            if len(states) not in (0, count) or not all(isinstance(one, Tensor) for one in states):
                found = ", ".join(map(called, states))
                raise ValueError(f"Expected a state of {count} tensors, got {len(states)}: {found}")
            return super().forward(input, hx)
        except (RuntimeError, ValueError, IndexError) as refusal:
            if type(refusal) not in (RuntimeError, ValueError, IndexError):  # such as too little memory
                raise
            if input.dtype != dtype and "dtype" in str(refusal):
                raise ConfigError(
                    f"{name}: input dtype ({input.dtype}) does not match weight dtype ({dtype}); "
                    f"convert the input: input.to({dtype}), or the model: model.to({input.dtype})"
                ) from None
            raise InputShapeError(
                f"{name}: {str(refusal).removeprefix(f'{name}: ')}: expected an input "
                f"[rows, {self.input_size}] and a state [rows, {self.hidden_size}], got an input "
                f"{list(input.shape)}{state_found(hx)}"
            ) from None


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


def _bias(biases: list[Tensor], weight_h: Tensor) -> Tensor:
    return biases[0] + biases[1] if biases else weight_h.new_zeros(weight_h.shape[0])


def _projected(x: Tensor, state: State, weights: list[Tensor], mask: Tensor | None) -> tuple[Tensor, State]:
    """An LSTM with a projection, with torch's operation; padding is handled by packing."""
    before = [each[None] for each in state]
    if mask is None:
        y, h, c = torch_lstm(x, before, weights)
        return y, (h[0], c[0])
    # rows are sorted, the longest first
    data, sizes = torch._VF._pack_padded_sequence(x, mask.sum(1).cpu(), True)
    y, h, c = torch_lstm(data, before, weights, sizes)
    y, _ = torch._VF._pad_packed_sequence(y, sizes, True, 0.0, mask.shape[1])
    return y, (h[0], c[0])


def _reversed(x: Tensor, mask: Tensor | None) -> Tensor:
    return x.flip(1) if mask is None else masks.reverse(x, mask)


ALIKE = {"RNN": "Elman"}  # cells with another name
PLAIN = (Tensor, nn.Parameter)
CELLS = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "elman", "RNN_RELU": "relu"}  # in the kernels
OPERATIONS = {"GRU": torch.gru, "RNN_TANH": torch.rnn_tanh, "RNN_RELU": torch.rnn_relu}


def quick(module: nn.RNNBase, x: Any, hx: Any, nan: str) -> tuple[Tensor, Any] | None:
    """Output and final state as `forward` gives them, or None where it has to compute them."""
    if not _plain(x) or x.dim() != 3 or torch.is_autocast_enabled("cpu"):
        return None
    rows, steps = x.shape[:2] if module.batch_first else (x.shape[1], x.shape[0])
    training = torch.is_grad_enabled()
    if training:
        served = rows * steps == 1 or (steps and _torch_trains(module, rows))
    else:
        served = steps == 1 <= rows <= PLAIN_ROWS
    if not served or x.shape[2] != module.input_size:
        return None
    if module.bidirectional or module.proj_size or (module.dropout and module.training):
        return None
    states = None if hx is None else _states(module, rows, hx)
    flat = _weights(module)
    if flat is None or (states is None and hx is not None) or traced():
        return None
    if training:
        return _trained(module, x, states or _zeros(module, x, rows), flat, nan)
    if native.loaded().library is None or forced("cells") not in ("auto", "native"):
        return None
    each = len(flat) // module.num_layers
    weights = [flat[first : first + each] for first in range(0, len(flat), each)]
    y = x.transpose(0, 1) if module.batch_first else x
    finals: list[list[Tensor]] = []
    for number, layer in enumerate(weights):
        before = states
        if states is not None and len(weights) > 1:
            before = tuple(state[number : number + 1] for state in states)
        y, *final = step_compiled(CELLS[module.mode], y, before, layer)
        finals.append(final)
    if nan == "refuse" and _is_nan(y):
        return None
    after = tuple(finals[0] if len(weights) == 1 else map(torch.cat, zip(*finals, strict=True)))
    return y.transpose(0, 1) if module.batch_first else y, after if len(after) > 1 else after[0]


def _trained(
    module: nn.RNNBase, x: Tensor, states: tuple[Tensor, ...], weights: list[Tensor], nan: str
) -> tuple[Tensor, Any] | None:
    """With gradients; torch's operation is the fastest way but for one step of one row of an LSTM."""
    if forced("cells") != "auto":
        return None
    how = module.bias, module.num_layers, 0.0, True, False, module.batch_first
    after: Any
    if module.mode != "LSTM":
        y, h = OPERATIONS[module.mode](x, states[0], weights, *how)
        after = h
    elif module.num_layers > 1 or x.shape[:2].numel() > 1:
        y, *after = torch.lstm(x, states, weights, *how)
        after, h = tuple(after), after[0]
    else:
        w_x, w_h, *biases = weights
        given = LayerInput(x, states[0][0], states[1][0], w_x, w_h, _bias(biases, w_h), None, None)
        y, h, c = run_layer("lstm", given)
        after = h[None], c[None]  # type: ignore[index]
    return None if nan == "refuse" and _is_nan(h.detach()) else (y, after)


def _torch_trains(module: nn.RNNBase, rows: int) -> bool:
    """Whether torch's operation trains an LSTM of this size at least as fast as compiled code."""
    if module.mode != "LSTM" or forced("cells") != "auto":
        return False
    size = module.hidden_size
    return 0 < rows <= 64 if size <= 128 else 5 <= rows <= 48 and size <= 650 and not native.tiles()


def _is_nan(state: Tensor) -> bool:
    """Whether a row is NaN; NaN in any feature of the input reaches all units of the last layer."""
    last = state.data_ptr() + 4 * (state.numel() - 1)
    return math.isnan(c_float.from_address(last).value if state.shape[1] == 1 else state.sum())


def _plain(tensor: Any) -> bool:
    return type(tensor) in PLAIN and tensor.dtype is torch.float32 and tensor.is_cpu


def _zeros(module: nn.RNNBase, x: Tensor, rows: int) -> tuple[Tensor, ...]:
    return (x.new_zeros(module.num_layers, rows, module.hidden_size),) * (2 if module.mode == "LSTM" else 1)


def _states(module: nn.RNNBase, rows: int, hx: Any) -> tuple[Tensor, ...] | None:
    """[layers, B, H] each."""
    count, shape = 2 if module.mode == "LSTM" else 1, (module.num_layers, rows, module.hidden_size)
    states = (hx,) if count == 1 else hx
    if type(states) is not tuple or len(states) != count:
        return None
    return states if all(_plain(state) and state.shape == shape for state in states) else None


def _weights(module: nn.RNNBase) -> list[Tensor] | None:
    """Those of all layers in turn, if they are the module's own parameters (and not computed from others)."""
    held = module._parameters
    flat = [held.get(name) for name in module._flat_weights_names]
    if all(_plain(weight) and weight.is_contiguous() for weight in flat):  # type: ignore[union-attr]
        return flat  # type: ignore[return-value]
    return None
