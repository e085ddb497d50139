"""Common code of the drop-in RNN, LSTM and GRU: layers, directions, rows of different lengths.

Read next: drop_in.py, the three classes; drop_in_input.py, input checks; drop_in_step.py; ragged.py.
"""

from abc import abstractmethod
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from weft import masks
from weft.nn.drop_in_input import Nan, RecurrentInput, pack_output, read_input, refuse_nan
from weft.nn.drop_in_step import one_step
from weft.nn.drop_in_torch import Known, left_eager
from weft.nn.ops import dropout, forced, mapped, skips_padding
from weft.nn.padding import inspectable
from weft.nn.ragged import plan, run_pieces
from weft.shapes import check_choice

Join = Literal["concatenate", "mean", "sum"]
State = tuple[Tensor, ...]


class DropIn(Known, nn.RNNBase):
    """Base of the three classes: `forward`, and keyword-only settings that torch.nn does not have.

    Subclasses implement one layer.

    Args:
        join: how to combine two directions: "concatenate" as in torch, or "mean" or "sum", with which
            layers above the first read H features instead of 2H.
        residual: layers above the first add their input to their output.
        nan: "refuse" raises an error if the input has NaN (on the CPU, checked only if the final state has
            NaN, which costs nothing); "pass" propagates NaN as torch does.
    """

    # defaults for a torch.nn module whose __class__ was set to one of these classes
    join: Join = "concatenate"
    residual: bool = False
    nan: Nan = "refuse"

    @abstractmethod
    def layer(
        self, weights: list[Tensor], x: Tensor, state: State, mask: Tensor | None
    ) -> tuple[Tensor, State]:
        """Run one layer and direction over x [B, T, D]; weights W_ih, W_hh, b_ih, b_hh."""

    @abstractmethod
    def cell(self) -> str:
        """Its name in the kernels."""

    @left_eager
    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> Any:
        """Like torch.nn's.

        Args:
            input: [T, B, D], [B, T, D] with batch_first, [T, D] for one sequence, or a PackedSequence.
            hx: the initial state, h [layers x directions, B, H], for an LSTM (h, c); None for zeros.

        Raises:
            ShapeError: no steps, a wrong number of features, or a state with wrong layers, rows or size.
            ConfigError: the dtype differs from the weights', or this machine does not support it.
        """
        if not self.residual:
            quick = one_step(self, self.cell(), input, hx, self.nan)
            if quick is not None:
                return quick
        own = self._torchs_own(input)
        read = read_input(self, input, hx, unpack=not own)
        if own:
            output, state = super().forward(input, hx)
        else:
            y, finals = self._layers(read)
            if (
                y.requires_grad and not self.bidirectional
            ):  # with one direction y is a view that callers must not change in place
                y = y.clone()
            output, state = pack_output(read, y, finals)
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

    def _settle(self, join: Join, residual: bool, nan: Nan) -> None:
        check_choice("join", join, Join)
        check_choice("nan", nan, Nan)
        self.join, self.residual, self.nan = join, residual, nan
        if join != "concatenate" and self.bidirectional:
            for name in self._flat_weights_names:
                weight = getattr(self, name)
                if name.startswith("weight_ih") and not name.startswith("weight_ih_l0"):
                    setattr(self, name, nn.Parameter(weight.detach()[:, : weight.shape[1] // 2].clone()))
            self.reset_parameters()

    def _torchs_own(self, input: Tensor | PackedSequence) -> bool:
        if self.residual or (self.bidirectional and self.join != "concatenate"):
            return False
        if mapped() and not self.proj_size:
            return False
        packed = isinstance(input, PackedSequence)
        x = input.data if packed else input
        if x.device.type != "cpu" or self.proj_size or not inspectable(x):
            return True
        if not torch.is_grad_enabled():
            return packed
        return not packed and self._single(x) and forced("cells") == "auto"

    def _single(self, x: Tensor) -> bool:
        """Whether x is one step of one row for which torch's operation trains faster."""
        return self.mode != "LSTM" and x.dim() == 3 and x.shape[0] == x.shape[1] == 1

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

                def run(
                    x: Tensor, state: State, mask: Tensor | None, weights: list[Tensor] = weights
                ) -> tuple[Tensor, State]:
                    return self.layer(weights, x, state, mask)

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
        if len(finals) == 1:
            return x, tuple(each[None] for each in finals[0])
        return x, tuple(torch.stack(each) for each in zip(*finals, strict=True))

    def _joined(self, ys: list[Tensor]) -> Tensor:
        if len(ys) == 1 or self.join == "concatenate":
            return ys[0] if len(ys) == 1 else torch.cat(ys, -1)
        total = ys[0] + ys[1]
        return total / 2 if self.join == "mean" else total


def _reversed(x: Tensor, mask: Tensor | None) -> Tensor:
    return x.flip(1) if mask is None else masks.reverse(x, mask)
