"""The LSTM with exponential gates of xLSTM, and a recurrent matrix by heads. Read next: initial.py."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.nn.cells.cell import Cell
from weft.nn.cells.convolution import ShortConvolution
from weft.nn.cells.initial import GateNorm, Headwise, input_weights
from weft.nn.ops import linear
from weft.probe import exporting, record_all, watching
from weft.setting_types import Count
from weft.shapes import check_choice
from weft.tree import where

State = tuple[Tensor, ...]
Forget = Literal["exponential", "sigmoid"]
NOTHING = -1e30  # m where n is 0: smaller than any energy, so that the first step takes m = i~


class SLSTM(Cell):
    """c_t = f c_{t-1} + i z, n_t = f n_{t-1} + i, h_t = o c_t / n_t, with exponential i and f.

    i = exp(i~), f = exp(f~) or sigmoid(f~), z = tanh(z~) and o = sigmoid(o~); the energies i~, f~, z~, o~ are
    W x_t + R h_{t-1} + b with R block-diagonal, and with a convolution i~ and f~ read swish(conv(x)_t).
    c and n are stored divided by exp(m_t), m_t = max(log f + m_{t-1}, i~), so that no exponential overflows.

    Args:
        in_size: D, features of the input.
        size: H, features of the state.
        num_heads: blocks of R, 4 in the paper; units of different heads are not connected within the cell.
        forget: activation of the forget gate.
        forget_bias: initial value of b_f.
        norm: the output is y_t = gain * norm(h_t), a layer norm of each head: the group norm of the paper's
            block. False gives y_t = h_t.
        convolution: steps of the short convolution, 4 in the paper's block; 0 for none.

    The state is (h, c, n, m), and then the last inputs of the convolution; gates are stacked i, f, z, o. R
    starts random, in the authors' code with zeros.

    Raises:
        ConfigError: an unknown `forget`.

    Source: Beck et al. 2024, "xLSTM: extended long short-term memory", equations 8 to 17; figure 9: norm
    and convolution.

    Example:
        >>> import torch
        >>> cell = SLSTM(3, 6, num_heads=2)
        >>> cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))[0].shape
        torch.Size([2, 7, 6])
    """

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        num_heads: Count = 1,
        forget: Forget = "sigmoid",
        forget_bias: float = 3.0,
        norm: bool = False,
        convolution: int = 0,
    ) -> None:
        super().__init__(in_size, size)
        check_choice("forget", forget, Forget)
        self.forget = forget
        self.weight_x, self.bias = input_weights(in_size, size, gates=4)
        self.bias.data[size : 2 * size] = forget_bias
        self.convolution = ShortConvolution(in_size, convolution) if convolution else None
        self.recurrent = Headwise(size, num_heads, outputs=4, bias=False)
        self.norm = GateNorm(size // num_heads, gates=num_heads) if norm else nn.Identity()

    def start(self, like: Tensor) -> State:
        """Zeros; c, n and m in float32 at least, as bfloat16 adds up only to 256."""
        h = like.new_zeros(like.shape[0], self.size)
        zeros = _wide(h)
        return h, zeros, zeros, zeros, *self._window(like)

    def shown(self, state: State) -> Tensor:
        return self.norm(state[0])  # type: ignore[no-any-return]

    def carried(self, state: State) -> tuple[Tensor, ...]:
        """(h, c), in the dtype of h."""
        return state[0], state[1].to(state[0].dtype)

    def begin(self, carried: tuple[Tensor, ...]) -> State:
        """(h, c, ones, zeros, ...): c is what the cell has read on average."""
        h, c = carried[0], _wide(carried[1])
        return h, c, torch.ones_like(c), torch.zeros_like(c), *self._window(h)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        energies, window = self._energies(x[:, None], state, None)
        state = (*self._step(energies[:, 0], _entered(state)), *window)
        return self.shown(state), state

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        """All steps: one matrix product for the inputs, then one step after the other."""
        if watching() or exporting():
            return super().run(x, state, mask)
        whole, window = self._energies(x, state, mask)
        hs, state = [], _entered(state)
        for t, energies in enumerate(whole.unbind(1)):
            new = self._step(energies, state)
            state = new if mask is None else where(mask[:, t], new, state)
            hs.append(state[0])
        y = self.norm(torch.stack(hs, 1))
        return y if mask is None else y * mask[..., None], (*state, *window)

    def _window(self, like: Tensor) -> tuple[Tensor, ...]:
        return () if self.convolution is None else (self.convolution.start(like),)

    def _energies(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, tuple[Tensor, ...]]:
        """W x + b [B, T, 4 H], and the last inputs of the convolution."""
        if self.convolution is None:
            return linear(x, self.weight_x, self.bias), ()
        mixed, window = self.convolution(x, state[4], mask)
        sizes = 2 * self.size, 2 * self.size  # i and f, z and o
        pairs = zip((F.silu(mixed), x), self.weight_x.split(sizes), self.bias.split(sizes), strict=True)
        return torch.cat([linear(*pair) for pair in pairs], -1), (window,)

    def _step(self, energies: Tensor, state: State) -> State:
        """(h, c, n, m) after one step from W x + b."""
        h, c, n, m = state
        i, f, z, o = (energies + self.recurrent(h)).chunk(4, -1)
        log_f = (F.logsigmoid(f) if self.forget == "sigmoid" else f) + m
        top = torch.maximum(log_f, i)
        i, f = torch.exp(i - top), torch.exp(log_f - top)
        c, past = f * c + i * z.tanh(), f * n
        n = past + i
        h = (o.sigmoid() * c / n).to(energies.dtype)
        if watching():  # of the weights of c / n, which add up to one
            record_all(input_gate=i / n, forget_gate=past / n, output_gate=o.sigmoid(), cell=c / n, hidden=h)
        return h, c, n, top


def _entered(state: State) -> State:
    """(h, c, n, m) before a step: where nothing has been read, m has no say, as in the authors' code."""
    h, c, n, m = state[:4]
    return h, c, n, m.masked_fill(n == 0, NOTHING)


def _wide(state: Tensor) -> Tensor:
    return state.to(torch.promote_types(state.dtype, torch.float32))
