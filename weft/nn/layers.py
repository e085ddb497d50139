"""Layers of torch's shape for every cell: `y, state = layer(x, state=None, mask=None)`.

`weft.nn.SRU(input_size, hidden_size, num_layers=2, bidirectional=True)` is one. `layer_of` makes each from a
cell of cells/, and a stack runs it over all steps. LSTM, GRU and RNN, which keep torch's own contract, are in
drop_in.py. Read next: recurrent.py, the stack; cells/cell.py, a cell's contract.
"""

import inspect
import math
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from weft.errors import ConfigError, ShapeError
from weft.masks import inspectable
from weft.nn import cells
from weft.nn.border import check_tensor, read_mask, weight_of
from weft.nn.cells.cell import Cell
from weft.nn.recurrent import Join, Stack, check_states
from weft.shapes import check_count
from weft.tree import State, leaves
from weft.wording import close_name


class RecurrentLayer(nn.Module):
    """Base of the layers: a cell over whole sequences, in one or more layers, in one or both directions.

    Args:
        input_size, hidden_size: D, features of the input, and H, those of the output of each direction.
        num_layers: L; each layer reads the output of the one below.
        batch_first: x and y are [B, T, ..]; False for [T, B, ..]. Mask and state have rows first in any case.
        bidirectional: a second network reads each layer from the end; y then has 2H features.
        dropout: dropout rate between layers, in training.
        join: "concatenate" the two directions, or take their "mean" or "sum", or "learned",
            tanh(W [forward; backward] + b).
        residual: layers above the first add their input to their output.
        device, dtype: of the weights.
        settings: those of the cell, by name.

    Raises:
        ConfigError: a size below 1, or a setting that the cell does not have.

    Example:
        >>> from weft.nn.cells import GRU
        >>> layer = layer_of(GRU)(8, 4, num_layers=2, reset="before")
        >>> y, state = layer(torch.zeros(2, 7, 8))  # [B, T, D] to [B, T, H]
        >>> y, state = layer(torch.zeros(2, 7, 8), state)  # the steps after these
        >>> layer
        GRU(8, 4, num_layers=2, reset='before')
    """

    cell_class: ClassVar[Callable[..., Cell]]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        batch_first: bool = True,
        bidirectional: bool = False,
        dropout: float = 0.0,
        join: Join = "concatenate",
        residual: bool = False,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        if type(self) is RecurrentLayer:
            raise ConfigError("expected a layer with a cell, such as weft.nn.SRU, got the base of all")
        name, known = type(self).__name__, inspect.signature(type(self)).parameters
        for setting in settings:
            if setting not in known:
                near = close_name(setting, known)
                hint = f"did you mean {near!r}?" if near else f"it takes {', '.join(known)}"
                raise ConfigError(f"{name}: unknown setting {setting!r}; {hint}")
        sizes = {"input_size": input_size, "hidden_size": hidden_size, "num_layers": num_layers}
        for what, size in sizes.items():
            check_count(f"{name}: {what}", size)
        given: dict[str, Any] = {"num_layers": num_layers, "batch_first": batch_first}
        given |= {"bidirectional": bidirectional, "dropout": dropout, "join": join, "residual": residual}
        given |= settings
        self.shown_settings = {one: value for one, value in given.items() if value != known[one].default}
        self.input_size, self.hidden_size, self.batch_first = input_size, hidden_size, batch_first
        cell = inspect.signature(self.cell_class).parameters
        # a cell that has layers inside takes their number and their dropout
        settings |= {one: given[one] for one in ("num_layers", "dropout") if one in cell}
        self.stack = Stack(
            input_size,
            (hidden_size,) * (1 if "num_layers" in cell else num_layers),
            cell=partial(self.cell_class, **settings),
            bidirectional=bidirectional,
            join=join,
            residual=residual,
            dropout=0.0 if "dropout" in cell else dropout,
            last_dropout=False,
        )
        self.to(device=device, dtype=dtype)

    def start(self, like: Tensor) -> tuple[State, ...]:
        """The state before the first step for the rows of `like` [B, ..]."""
        stack = self.stack
        directions = (stack.forwards, stack.backwards) if stack.bidirectional else (stack.forwards,)
        return tuple(cell.start(like) for cell in chain.from_iterable(zip(*directions, strict=True)))

    def step(self, x: Tensor, state: tuple[State, ...]) -> tuple[Tensor, tuple[State, ...]]:
        """One step: x [B, D] and a state give y [B, H] and the next state; not in both directions."""
        if self.stack.bidirectional:
            raise ConfigError(
                f"{type(self).__name__}: expected one direction for a step, got bidirectional=True"
            )
        check_tensor(f"{type(self).__name__}.step", "x", x, ("rows", self.input_size), weight_of(self))
        y, state = self(x[:, None] if self.batch_first else x[None], state)
        return y.flatten(0, 1), state

    def forward(
        self, x: Tensor, state: tuple[State, ...] | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, tuple[State, ...]]:
        """All layers over all steps.

        Args:
            x: [B, T, D], or [T, B, D] without batch_first.
            state: from an earlier call or `start`; None for that of `start`.
            mask: [B, T], True = real, at any positions; or integers, 0 = padding. At padding the state does
                not change, y is zero, and x is ignored.

        Returns:
            y [B, T, H], with both directions 2H features, and the state after the last real step: a tuple
            with the cell's for each layer and direction, in torch's order.

        Raises:
            ShapeError: wrong sizes, dtypes or devices; a mask that is False everywhere; NaN in x or state.
        """
        name = type(self).__name__
        axes = ("rows", "steps") if self.batch_first else ("steps", "rows")
        check_tensor(name, "x", x, (*axes, self.input_size), weight_of(self))
        x = x if self.batch_first else x.transpose(0, 1)
        both = 1 + self.stack.bidirectional
        if state is not None:
            check_states(name, state, x, len(self.stack.forwards) * both)
        if mask is not None:
            mask = read_mask(mask, x, name, some=True)
        forwards, backwards = (None, None) if state is None else (state[::both], state[1::both])
        y, finals = self.stack(x, forwards, mask, backwards or None)
        if inspectable(y) and y.is_cpu and math.isnan(float(y.detach().sum())):
            for what, part in (("x", x), ("a state", state)):
                if any(bool(one.isnan().any()) for one in leaves(part)):
                    raise ShapeError(f"{name}: expected {what} without NaN; fill or drop what is missing")
        return (y if self.batch_first else y.transpose(0, 1)), tuple(chain.from_iterable(finals))

    def __repr__(self) -> str:
        settings = (f"{name}={value!r}" for name, value in self.shown_settings.items())
        return f"{type(self).__name__}({', '.join([f'{self.input_size}, {self.hidden_size}', *settings])})"


def layer_of(cell: Callable[..., Cell]) -> type[RecurrentLayer]:
    """The layer of a cell, which takes the cell's settings beside those of `RecurrentLayer`.

    Args:
        cell: a class of weft.nn.cells, or one of your own.

    Example:
        >>> from weft.nn.cells import LSTM
        >>> layer_of(LSTM)(8, 4, bidirectional=True, forget_gate=False)  # the LSTM of 1997
        LSTM(8, 4, bidirectional=True, forget_gate=False)
    """
    name = cell.__name__
    shared = [one for one in inspect.signature(RecurrentLayer).parameters.values() if one.name != "settings"]
    known = {one.name for one in shared}
    own = [one for one in inspect.signature(cell).parameters.values() if one.kind is one.KEYWORD_ONLY]
    own = [one for one in own if one.name not in known]
    inside = {
        "cell_class": cell,
        "__module__": __name__,
        "__signature__": inspect.Signature([*shared, *own]),
        "__doc__": DOCUMENTATION.format(
            equation=(cell.__doc__ or "").split("\n\n")[0],
            name=name,
            cell=f"{cell.__module__}.{name}",
            settings=", ".join(one.name for one in own) or "no others",
        ),
    }
    return type(name, (RecurrentLayer,), inside)


DOCUMENTATION = """{equation}

    The call is ``y, state = layer(x, state=None, mask=None)``, with mask True at real positions.

    Args:
        input_size, hidden_size, num_layers: D, H and L.
        batch_first, bidirectional, dropout, join, residual, device, dtype: as in `RecurrentLayer`.
        {settings}: of the cell, `{cell}`.

    Returns:
        y [B, T, H], with both directions 2H features, and the state, which the next call takes.

    Example:
        >>> y, state = {name}(8, 4)(torch.zeros(2, 7, 8))  # [B, T, D]
        >>> y.shape
        torch.Size([2, 7, 4])
"""

Block = layer_of(cells.Block)
Coupled = layer_of(cells.Coupled)
Delta = layer_of(cells.Delta)
Elman = layer_of(cells.Elman)
GLA = layer_of(cells.GLA)
GatedDelta = layer_of(cells.GatedDelta)
HGRN2 = layer_of(cells.HGRN2)
Jordan = layer_of(cells.Jordan)
LRU = layer_of(cells.LRU)
LocalAttention = layer_of(cells.LocalAttention)
MLSTM = layer_of(cells.MLSTM)
Mamba = layer_of(cells.Mamba)
MinGRU = layer_of(cells.MinGRU)
MinLSTM = layer_of(cells.MinLSTM)
Orthogonal = layer_of(cells.Orthogonal)
Peephole = layer_of(cells.Peephole)
Projected = layer_of(cells.Projected)
RGLRU = layer_of(cells.RGLRU)
RWKV4 = layer_of(cells.RWKV4)
RWKV7 = layer_of(cells.RWKV7)
RWKV7Layers = layer_of(cells.RWKV7Layers)
Retention = layer_of(cells.Retention)
S4D = layer_of(cells.S4D)
SLSTM = layer_of(cells.SLSTM)
SRU = layer_of(cells.SRU)
SSD = layer_of(cells.SSD)
SSRU = layer_of(cells.SSRU)
Stepwise = layer_of(cells.Stepwise)
Unitary = layer_of(cells.Unitary)
Variational = layer_of(cells.Variational)
Zoneout = layer_of(cells.Zoneout)
