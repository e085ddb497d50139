"""The LSTM with peepholes, whose gates also read the cell state. Read next: coupled.py."""

from typing import Literal

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.cells.cell import Candidate, Gated
from weft.nn.cells.initial import GateNorm
from weft.nn.ops import equations, linear
from weft.probe import record_all, watching
from weft.shapes import check_choice

Form = Literal["diagonal", "full"]
Gate = Literal["input", "forget", "output"]


class Peephole(Gated):
    """The LSTM (lstm.py) with p_i, p_f and p_o added inside its gates' sigmoids.

    form = "diagonal": p_i = w_i c_{t-1}, p_f = w_f c_{t-1}, p_o = w_o c_t, elementwise (Gers 2000).
    form = "full": p = W_c c_{t-1} with a matrix for each gate, all three at c_{t-1} (as in the lectures).

    Args:
        in_size: D, features of the input.
        size: H, features of the state.
        form: see above.
        gates: the gates with peepholes; none gives the LSTM.
        forget_bias: initial value of b_f.
        candidate: the activation of c^.
        normalised: layer normalisation of each gate's W x and W h, and of c before its tanh.

    The peepholes start at zero, so initially the cell is an LSTM.

    Raises:
        ConfigError: an unknown form, candidate or gate, or a gate named twice.

    Source: Gers & Schmidhuber 2000, "Recurrent nets that time and count".

    Example:
        >>> import torch
        >>> cell = Peephole(3, 5, form="full", gates=("forget",))
        >>> y, (h, c) = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape, cell.weight_c.shape
        (torch.Size([2, 7, 5]), torch.Size([5, 5]))
    """

    vectors = 2

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        form: Form = "diagonal",
        gates: tuple[Gate, ...] = ("input", "forget", "output"),
        forget_bias: float = 1.0,
        candidate: Candidate = "tanh",
        normalised: bool = False,
    ) -> None:
        super().__init__(in_size, size, gates=4, candidate=candidate, normalised=normalised)
        check_choice("form", form, Form)
        for gate in gates:
            check_choice("gates", gate, Gate)
        if len(set(gates)) != len(gates):
            raise ConfigError(f"gates: {list(gates)} names one of them twice; name each once")
        self.form = form
        self.gates = tuple(gate for gate in ("input", "forget", "output") if gate in gates)
        self.bias.data[size : 2 * size] = forget_bias
        shape = (len(gates) * size, size) if form == "full" else (len(gates), size)
        self.weight_c = nn.Parameter(torch.zeros(shape))
        if normalised:
            self.norm_x, self.norm_h = GateNorm(size, gates=4), GateNorm(size, gates=4)
        self.norm_c = GateNorm(size) if normalised else nn.Identity()

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        h, before = state
        kept = linear(h, self.weight_h)
        energy = self.energies(x) + (self.norm_h(kept) if self.normalised else kept)
        i, f, candidate, o = energy.chunk(4, -1)
        seen = self._seen(before)
        i, f = i + seen.get("input", 0.0), f + seen.get("forget", 0.0)

        def peep(c: Tensor) -> Tensor | float:
            return (seen if self.form == "full" else self._seen(c)).get("output", 0.0)

        new = equations.lstm(
            i, f, candidate, o, before, activation=self.candidate, peep=peep, norm=self.norm_c
        )
        if watching():
            record_all(**new._asdict())
        return new.hidden, (new.hidden, new.cell)

    def kernel(self) -> str | None:
        return None if self.form == "full" else "peephole"

    def kernel_weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.weight_x, self.weight_h, self.bias, self._three()

    def _three(self) -> Tensor:
        """The peephole weights of all three gates; zeros for gates without peepholes."""
        if len(self.gates) == 3:
            return self.weight_c
        given = dict(zip(self.gates, self.weight_c, strict=True))
        zeros = self.weight_c.new_zeros(self.size)
        return torch.stack([given.get(gate, zeros) for gate in ("input", "forget", "output")])

    def _seen(self, c: Tensor) -> dict[str, Tensor]:
        """The peephole term of each gate that has one."""
        if self.form == "full":
            products = linear(c, self.weight_c).split(self.size, -1) if self.gates else ()
        else:
            products = [weight * c for weight in self.weight_c]
        return dict(zip(self.gates, products, strict=True))
