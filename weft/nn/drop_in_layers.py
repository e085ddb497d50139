"""What the drop-ins for torch.nn's RNN, LSTM and GRU have in common: layers, directions, rows of any length.

Read next: drop_in.py, the three; drop_in_input.py, inputs and what is refused; ragged.py.
"""

from abc import abstractmethod
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from weft import masks
from weft.nn.drop_in_input import Nan, Read, read_input, refuse_nan, written
from weft.nn.drop_in_torch import Known, left_eager
from weft.nn.kernels.cells.layer import skips_padding
from weft.nn.kernels.dropout import dropout
from weft.nn.padding import looked_at
from weft.nn.ragged import plan, run_pieces
from weft.shapes import check_choice

Join = Literal["concatenate", "mean", "sum"]
State = tuple[Tensor, ...]


class DropIn(Known, nn.RNNBase):
    """What the three have in common: `forward`, and the settings that torch.nn does not have.

    A subclass says what one layer computes. The settings are keyword-only:

    Args:
        join: how two directions become one, "concatenate" as torch, or their "mean" or "sum"; with
            these two a layer above the first reads H features, not 2H.
        residual: every layer above the first adds what it read to what it gives.
        nan: "refuse" an input that is not a number (looked for on the CPU, and only where a final state is
            none, which costs nothing), or "pass" it on as torch does.
    """

    # what holds for a torch.nn module whose __class__ was set to one of these
    join: Join = "concatenate"
    residual: bool = False
    nan: Nan = "refuse"

    @abstractmethod
    def layer(
        self, weights: list[Tensor], x: Tensor, state: State, mask: Tensor | None
    ) -> tuple[Tensor, State]:
        """One layer and direction over x [B, T, D]; weights W_ih, W_hh, b_ih, b_hh."""

    @left_eager
    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> Any:
        """As torch.nn's.

        Args:
            input: [T, B, D], [B, T, D] with batch_first, [T, D] for one sequence, or a PackedSequence.
            hx: the state before, h [layers x directions, B, H], for an LSTM (h, c); None for zeros.

        Raises:
            ShapeError: no step, other features than input_size, or a state of other layers, rows or size.
            ConfigError: another dtype than the weights, or one that this machine cannot compute.
        """
        own = self._torchs_own(input)
        read = read_input(self, input, hx, unpack=not own)
        if own:
            output, state = super().forward(input, hx)
        else:
            y, finals = self._layers(read)
            if (
                y.requires_grad and not self.bidirectional
            ):  # one direction gives a view that must not be changed
                y = y.clone()
            output, state = written(read, y, finals)
        if self.nan == "refuse":
            refuse_nan(type(self).__name__, read, state)
        return output, state

    def flatten_parameters(self) -> None:
        """As torch's; with a join of its own there is nothing that cuDNN could take as one."""
        if self.join == "concatenate":
            super().flatten_parameters()

    def extra_repr(self) -> str:
        """For print."""
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
        packed = isinstance(input, PackedSequence)
        x = input.data if packed else input
        if x.device.type != "cpu" or self.proj_size or not looked_at(x):
            return True
        return packed and not torch.is_grad_enabled()

    def _layers(self, read: Read) -> tuple[Tensor, State]:
        """y [B, T, ..] and the final states [layers x directions, B, ..], rows as they are computed."""
        x, mask = read.x, read.mask
        cuts = None if skips_padding(x) else plan(mask)
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
        return x, tuple(torch.stack(each) for each in zip(*finals, strict=True))

    def _joined(self, ys: list[Tensor]) -> Tensor:
        if len(ys) == 1 or self.join == "concatenate":
            return ys[0] if len(ys) == 1 else torch.cat(ys, -1)
        total = ys[0] + ys[1]
        return total / 2 if self.join == "mean" else total


def _reversed(x: Tensor, mask: Tensor | None) -> Tensor:
    return x.flip(1) if mask is None else masks.reverse(x, mask)
