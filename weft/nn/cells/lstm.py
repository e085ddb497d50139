"""The long short-term memory with a forget gate. Read next: gru.py."""

import torch
from torch import Tensor

from weft.nn.cells.cell import Candidate, Gated
from weft.nn.cells.initial import GateNorm
from weft.nn.ops import HOLD, Gates, equations, linear
from weft.probe import record_all, watching


class LSTM(Gated):
    """i, f, o = sigmoid(W h_{t-1} + W x_t + b), c^ = tanh(...), c_t = f c_{t-1} + i c^, h_t = o tanh(c_t).

    Args:
        in_size: D, features of the input.
        size: H, features of the state.
        forget_bias: initial value of b_f; 1 helps to keep the old state from the first update on.
        candidate: the activation of c^.
        forget_gate: False sets f = 1, the LSTM of 1997.
        input_gate: False sets i = 1; without both gates c_t = c_{t-1} + c^ and dc_t/dc_{t-1} = I.
        normalised: layer normalisation of each gate's W x and W h, and of c before its tanh.

    The gates are stacked i, f, c^, o as in torch.nn.LSTM, with one bias instead of torch's two; a disabled
    gate has no weights.

    Raises:
        ConfigError: an unknown candidate.

    Source: Hochreiter & Schmidhuber 1997; forget gate: Gers, Schmidhuber & Cummins 2000; its bias:
    Jozefowicz, Zaremba & Sutskever 2015; layer normalisation: Ba 2016, equations 20 to 22.

    Example:
        >>> import torch
        >>> cell = LSTM(3, 5)
        >>> y, (h, c) = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape, h.shape
        (torch.Size([2, 7, 5]), torch.Size([2, 5]))
    """

    vectors = 2

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        forget_bias: float = 1.0,
        candidate: Candidate = "tanh",
        forget_gate: bool = True,
        input_gate: bool = True,
        normalised: bool = False,
    ) -> None:
        gates = 2 + forget_gate + input_gate
        super().__init__(in_size, size, gates=gates, candidate=candidate, normalised=normalised)
        self.forget_gate = forget_gate
        self.input_gate = input_gate
        self.whole = forget_gate and input_gate
        if forget_gate:
            self.bias.data[input_gate * size : (1 + input_gate) * size] = forget_bias
        if normalised:
            self.norm_x, self.norm_h = GateNorm(size, gates=gates), GateNorm(size, gates=gates)
            self.norm_c = GateNorm(size)

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        h, c = state
        kept = linear(h, self.weight_h)
        energy = self.energies(x) + (self.norm_h(kept) if self.normalised else kept)
        gates = list(energy.split(self.size, -1))
        i = gates.pop(0) if self.input_gate else None
        f = gates.pop(0) if self.forget_gate else None
        norm = self.norm_c if self.normalised else None
        new = equations.lstm(i, f, *gates, c, activation=self.candidate, norm=norm)
        if watching():
            record_all(**new._asdict())
        return new.hidden, (new.hidden, new.cell)

    def step_weights(self) -> Gates | None:
        if not (self.usual and self.whole):
            return None
        return Gates("lstm", self.weight_x, self.bias, self.weight_h)

    def kernel(self) -> str:
        return "lstm"

    def kernel_weights(self) -> tuple[Tensor, Tensor, Tensor, None]:
        if self.whole:
            return self.weight_x, self.weight_h, self.bias, None
        return self._filled(self.weight_x), self._filled(self.weight_h), self._filled(self.bias), None

    def _filled(self, weight: Tensor) -> Tensor:
        """The weights of all four gates; a disabled gate gets zero weights and a bias of 5e3.

        sigmoid(5e3) is exactly 1, and -1e4 still closes the input gate at padding.
        """
        gates = list(weight.split(self.size))
        always = torch.full_like(gates[0], HOLD / 2 if weight.dim() == 1 else 0.0)
        for place, enabled in enumerate((self.input_gate, self.forget_gate)):
            if not enabled:
                gates.insert(place, always)
        return torch.cat(gates)
