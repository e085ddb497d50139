"""The eigenvalues, shares and half-lives of every cell of C13 are those of its equation, in float64."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.diagnose.models import Batch, Linear, Reader
from weft.diagnose.forgetting import Forgetting, forgetting, half_lives, output_reach, verdict_of
from weft.diagnose.reach import seen
from weft.diagnose.recorded import StepTrace, trace
from weft.nn.cells.block import Block
from weft.nn.cells.cell import Cell
from weft.nn.cells.delta import Delta
from weft.nn.cells.gated_delta import GatedDelta
from weft.nn.cells.gla import GLA
from weft.nn.cells.gru import GRU
from weft.nn.cells.hgrn2 import HGRN2
from weft.nn.cells.lru import LRU
from weft.nn.cells.mamba import Mamba
from weft.nn.cells.mlstm import MLSTM
from weft.nn.cells.retention import Retention
from weft.nn.cells.rglru import RGLRU
from weft.nn.cells.rwkv7 import RWKV7
from weft.nn.cells.s4d import S4D
from weft.nn.cells.slstm import SLSTM
from weft.nn.cells.ssd import SSD
from weft.nn.recurrent import Stack

READ, SIZE, HEADS, KEYS, STEPS = 5, 6, 2, 3, 11
MATRIX = {"num_heads": HEADS, "key_size": KEYS, "value_size": 5}


def traced(
    kind: Callable[[int, int], Cell], steps: int = STEPS, *, size: int = SIZE, seed: int = 3
) -> StepTrace:
    """A trace of a cell with random weights over random inputs."""
    torch.manual_seed(seed)
    stack = Stack(READ, (size,), cell=kind).double()
    for parameter in stack.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return followed(stack, torch.randn(1, steps, READ, dtype=torch.float64))


def followed(stack: Stack, x: Tensor) -> StepTrace:
    (run,) = seen(Reader(stack), Batch(x, torch.ones(x.shape[:2], dtype=torch.bool)))
    return trace(run)


def measured(steps: StepTrace) -> Forgetting:
    found = forgetting(steps)
    assert found is not None and (half_lives(steps) is not None) == (found.heads and len(found.at) > 1)
    return found


def conv(short: nn.Module, u: Tensor) -> Tensor:
    """The causal convolution of u [T, D] by torch."""
    weight = short.weight.T[:, None]
    padded = F.pad(u.T[None], (weight.shape[-1] - 1, 0))
    return F.conv1d(padded, weight, short.bias, groups=len(weight))[0].T


def lru(cell: LRU, x: Tensor) -> Tensor:
    return torch.exp(torch.complex(-cell.nu.exp(), cell.theta.exp())).expand(len(x), -1)


def s4d(cell: S4D, x: Tensor) -> Tensor:
    a = torch.complex(-cell.log_decay.exp(), cell.frequency)
    return torch.exp(cell.log_step.exp() * a).flatten().expand(len(x), -1)


def rglru(cell: RGLRU, x: Tensor) -> Tensor:
    gate = cell.recurrence_gate
    r = (cell.entry(x) @ gate.weight[0, 0].T + gate.bias).sigmoid()
    return cell.rate.neg().sigmoid() ** (8 * r)


def slstm(cell: SLSTM, x: Tensor) -> Tensor:
    """Without stabilisers: f n_{t-1} / n_t."""
    h = c = n = torch.zeros(SIZE, dtype=x.dtype)
    shares = []
    for one in x:
        recurrent = torch.cat([h @ cell.recurrent.weight[g, 0].T for g in range(4)])
        i, f, z, o = (cell.weight_x @ one + cell.bias + recurrent).chunk(4)
        past = f.sigmoid() * n
        c, n = f.sigmoid() * c + i.exp() * z.tanh(), past + i.exp()
        h = o.sigmoid() * c / n
        shares.append(past / n)
    return torch.stack(shares)


def mlstm(cell: MLSTM, x: Tensor) -> Tensor:
    return (x @ cell.gates.weight[-HEADS:].T + cell.gates.bias[-HEADS:]).sigmoid()


def retention(cell: Retention, x: Tensor) -> Tensor:
    return torch.tensor([31 / 32, 63 / 64], dtype=x.dtype).expand(len(x), -1)


def gla(cell: GLA, x: Tensor) -> Tensor:
    low = x @ cell.project.weight[-16:].T
    return (low @ cell.decay.weight.T + cell.decay.bias).sigmoid() ** (1 / 16)


def hgrn2(cell: HGRN2, x: Tensor) -> Tensor:
    return 0.4 + 0.6 * (x @ cell.forget.weight.T + cell.forget.bias).sigmoid()


def mamba(cell: Mamba, x: Tensor) -> Tensor:
    u = F.silu(conv(cell.convolution, x @ cell.enter.weight[: cell.inner].T))
    low = u @ cell.select.weight[: cell.rank].T
    dt = torch.log1p(torch.exp(low @ cell.step_size.weight.T + cell.step_size.bias))
    return torch.exp(-dt[..., None] * cell.log_decay.T.exp()).flatten(1)


def ssd(cell: SSD, x: Tensor) -> Tensor:
    d = x @ cell.project.weight[-HEADS:].T + cell.bias
    return torch.exp(-cell.log_rate.exp() * torch.log1p(d.exp()))


def replaced(keys: Tensor, rate: Tensor, decay: Tensor) -> Tensor:
    """Closed form: a K - 1 times, and a (1 - b |k|^2), for keys [T, heads K] before their norm."""
    keys = keys.unflatten(-1, (HEADS, KEYS)).square().sum(-1)
    once = 1 - rate * keys / (keys + 1e-6)
    return torch.cat([once[..., None], torch.ones(*once.shape, KEYS - 1)], -1) * decay[..., None]


def delta(cell: Delta, x: Tensor) -> Tensor:
    keys = F.silu(conv(cell.short, x @ cell.project.weight[:-HEADS].T))[:, HEADS * KEYS : 2 * HEADS * KEYS]
    rate = (x @ cell.project.weight[-HEADS:].T).sigmoid()
    return replaced(keys, rate, torch.ones_like(rate))


def gated_delta(cell: GatedDelta, x: Tensor) -> Tensor:
    every = x @ cell.project.weight.T
    keys = F.silu(conv(cell.short, every[:, : sum(cell.sizes)]))[:, HEADS * KEYS : 2 * HEADS * KEYS]
    b, a = every[:, -2 * HEADS :].split(HEADS, -1)
    decay = torch.exp(-cell.log_rate.exp() * torch.log1p((a + cell.bias).exp()))
    return replaced(keys, b.sigmoid(), decay)


def rwkv7(cell: RWKV7, x: Tensor) -> Tensor:
    """Of the symmetric matrix diag(w) - sqrt(a) c c^T sqrt(a), which is similar to that of the equation."""
    mixed = x + (F.pad(x, (0, 0, 1, 0))[:-1] - x) * cell.mix[:, None]
    k, d, a = (mixed["rkvdag".index(one)] @ cell.project[one].weight.T for one in "kda")
    w = torch.exp(-math.exp(-0.5) * (d.tanh() @ cell.decay.weight.T + cell.decay.bias).sigmoid())
    root = (a @ cell.rate.weight.T + cell.rate.bias).sigmoid().sqrt()
    w, root, c = (one.unflatten(-1, (HEADS, KEYS)) for one in (w, root, k * cell.remove))
    c = root * c / c.norm(dim=-1, keepdim=True)
    return torch.linalg.eigvalsh(torch.diag_embed(w) - c[..., None] * c[..., None, :])


CASES: dict[str, tuple[Callable[[int, int], Cell], Callable[..., Tensor]]] = {
    "lru": (LRU, lru),
    "s4d": (partial(S4D, num_states=3), s4d),
    "rglru": (RGLRU, rglru),
    "slstm": (SLSTM, slstm),
    "mlstm": (partial(MLSTM, **MATRIX), mlstm),
    "retention": (partial(Retention, **MATRIX), retention),
    "gla": (partial(GLA, **MATRIX), gla),
    "hgrn2": (partial(HGRN2, **MATRIX, lower_bound=0.4), hgrn2),
    "mamba": (partial(Mamba, inner=4, num_states=3), mamba),
    "ssd": (partial(SSD, **MATRIX), ssd),
    "delta": (partial(Delta, **MATRIX), delta),
    "gated_delta": (partial(GatedDelta, **MATRIX), gated_delta),
    "rwkv7": (partial(RWKV7, **MATRIX), rwkv7),
}


@pytest.mark.parametrize("name", CASES)
def test_the_eigenvalues_of_each_step_are_those_of_the_equation(name: str) -> None:
    kind, equation = CASES[name]
    steps = traced(kind)
    found = measured(steps)
    with torch.no_grad():
        expected = equation(steps.place.cell, steps.x[0])
    if found.heads:  # in ascending order within a head
        assert found.eigenvalues.imag.abs().max() < 1e-7
        both = (found.eigenvalues.real.unflatten(1, (HEADS, KEYS)), expected)
        shown, expected = (one.sort(-1).values.flatten(1) for one in both)
    else:
        shown = found.eigenvalues
    np.testing.assert_allclose(shown.numpy(), expected.numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("delta", "gated_delta", "rwkv7")])
def test_shares_and_half_lives_follow_from_the_decays(name: str) -> None:
    kind, equation = CASES[name]
    steps = traced(kind)
    found = measured(steps)
    with torch.no_grad():
        sizes = equation(steps.place.cell, steps.x[0]).abs().numpy()
    for t in range(STEPS):
        np.testing.assert_allclose(found.kept[t], sizes[t + 1 :].prod(0), rtol=1e-9)
    rates = np.log(sizes[1:]).mean(0)
    np.testing.assert_allclose(found.half_lives, np.log(0.5) / rates, rtol=1e-9)


@pytest.mark.parametrize("name", ["delta", "gated_delta", "rwkv7"])
def test_shares_of_matrices_are_those_of_a_written_value_in_the_state(name: str) -> None:
    steps = traced(CASES[name][0])
    found = measured(steps)
    cell, x = steps.place.cell, steps.x
    written, last = 4, STEPS - 1
    with torch.no_grad():
        _, k, v, *_ = cell.read(x, steps.states[0][2:], None)[0]
        for head in range(HEADS):  # the same steps from two states, which differ by the written value
            both = list(steps.states[written + 1])
            changed = both[1].clone()
            changed[0, head] += k[0, written, head][:, None] * v[0, written, head]
            other = (both[0], changed, *both[2:])
            state: tuple[Tensor, ...] = tuple(both)
            for t in range(written + 1, last + 1):
                state, other = cell.step(x[:, t], state)[1], cell.step(x[:, t], other)[1]
            left = (other[1] - state[1])[0, head].norm()
            share = float(left / (k[0, written, head].norm() * v[0, written, head].norm()))
            assert float(found.kept[written, head]) == pytest.approx(share, rel=1e-9)


def of_decays(*decays: float, steps: int = 101) -> Forgetting:
    """An LRU whose |lambda| are these numbers."""
    torch.manual_seed(1)
    stack = Stack(READ, (SIZE,), cell=partial(LRU, num_states=len(decays))).double()
    stack.forwards[0].nu.data = torch.log(-torch.log(torch.tensor(decays, dtype=torch.float64)))
    return measured(followed(stack, torch.randn(1, steps, READ, dtype=torch.float64)))


def test_a_known_decay_has_the_known_half_life() -> None:
    found = of_decays(0.5, 0.5 ** (1 / 12), 0.5 ** (1 / 900))
    assert found.half_lives.tolist() == pytest.approx([1, 12, 900], rel=1e-9)
    words = verdict_of(found, "layer 1").sentence
    assert "forgotten after 12 steps in the median channel" in words
    assert "the slowest of 3 channels keeps half for 900 steps" in words
    assert f"at most {0.5 ** (100 / 900):.2%} of the first of the 101 positions" in words


@pytest.mark.parametrize(
    ("lives", "steps", "kind"),
    [
        ((4.0, 15.0), 101, "forgets"),  # 2^(-100 / 15) = 0.0098
        ((4.0, 15.2), 101, "mixed"),  # 0.0105
        ((4.0, 15.0), 100, "mixed"),  # the same memory over a shorter input
        ((99.0, 900.0), 101, "mixed"),
        ((101.0, 900.0), 101, "keeps"),
    ],
)
def test_the_verdict_turns_with_the_half_lives_and_the_length(
    lives: tuple[float, ...], steps: int, kind: str
) -> None:
    found = verdict_of(of_decays(*(0.5 ** (1 / life) for life in lives), steps=steps), "a layer")
    assert found.kind == kind
    assert ("add attention" in found.sentence) == (kind == "forgets")


def test_a_delta_rule_that_writes_nothing_never_forgets() -> None:
    stack = Stack(READ, (SIZE,), cell=partial(Delta, **MATRIX, convolution=0)).double()
    cell = stack.forwards[0]
    cell.project.weight.data[-HEADS:] = 0
    cell.project.weight.data[-HEADS:, 0] = -1e3  # b = sigmoid(-1000) = 0
    x = torch.randn(1, 7, READ, dtype=torch.float64)
    x[..., 0] = 1
    found = verdict_of(measured(followed(stack, x)), "a layer")
    assert found.kind == "keeps" and "is never forgotten" in found.sentence


def test_a_block_is_measured_as_the_cell_in_it_and_a_plain_network_not_at_all() -> None:
    assert measured(traced(partial(Block, cell=partial(Retention, **MATRIX)))).half_lives.tolist() == [
        pytest.approx(math.log(2) / -math.log(31 / 32)),
        pytest.approx(math.log(2) / -math.log(63 / 64)),
    ]
    assert forgetting(traced(Linear)) is None
    assert measured(traced(GRU)).kept.shape == (STEPS, SIZE)


def test_padding_and_one_step() -> None:
    torch.manual_seed(3)
    stack = Stack(READ, (SIZE,), cell=partial(GatedDelta, **MATRIX)).double()
    x = torch.randn(1, 7, READ, dtype=torch.float64)
    mask = torch.arange(7)[None] < 4
    (run,) = seen(Reader(stack), Batch(x, mask))
    padded, alone = measured(trace(run)), measured(followed(stack, x[:, :4]))
    np.testing.assert_allclose(padded.kept, alone.kept, rtol=1e-12)
    np.testing.assert_allclose(padded.half_lives, alone.half_lives, rtol=1e-12)
    assert measured(followed(stack, x[:, :1])).kept.tolist() == [[1.0] * HEADS]


@pytest.mark.parametrize(
    ("kind", "size", "close"), [(partial(GatedDelta, **MATRIX), SIZE, 1e-10), (LRU, 97, 0.25)]
)  # of more outputs than ROWS it is estimated
def test_the_reach_of_the_last_output_is_its_derivative_by_every_input(
    kind: Callable[[int, int], Cell], size: int, close: float
) -> None:
    steps = traced(kind, 7, size=size)
    cell, state = steps.place.cell, steps.states[0]
    jacobian = torch.autograd.functional.jacobian(lambda x: cell(x, state)[0][0, -1], steps.x)
    expected = jacobian[:, 0].square().sum((0, 2)).sqrt()
    np.testing.assert_allclose(output_reach(steps), expected, rtol=close)
