"""Gates far beyond what exp and sigmoid can tell apart: every cell, both signs, first step, after a reset.

Weights and inputs are multiples of a power of two, so that energies of gates are exact in float32 and the
float64 loop over steps is a fair reference. The cells whose gates are exponential, or divided by each other,
are also compared with sums written out over all steps, with weights in log space.
"""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.laws.members import CELLS, READ, SIZE, Make, cases
from weft import tree
from weft.nn.cells.cell import Cell
from weft.nn.cells.minlstm import MinLSTM
from weft.nn.cells.mlstm import EPSILON, MLSTM
from weft.nn.cells.rglru import RGLRU, SHARPNESS
from weft.nn.cells.rwkv4 import RWKV4
from weft.nn.cells.rwkv7 import RWKV7
from weft.nn.cells.slstm import SLSTM
from weft.nn.kernels import choice
from weft.nn.ops import Corrected, Decayed, Replaced
from weft.tree import State

Run = Callable[[Cell, Tensor, State], tuple[Tensor, State]]
RUNS: dict[str, Run] = {
    "steps": lambda cell, x, state: Cell.run(cell, x, state, None),
    "all at once": lambda cell, x, state: cell(x, state),
}
TYPES = {torch.float32: 1e-3, torch.float64: 1e-9}
"""Tolerances, of the largest number; in float32 energies of 1000 have steps of 6e-5."""
PAST_1024 = 2.0
"""Energies of 1000 with what nine steps add to them have steps of 1.2e-4, which may add up to 1.1e-3."""


def exact(make: Make, dtype: torch.dtype) -> Cell:
    """A cell whose parameters are odd multiples of 1 / 64."""
    torch.manual_seed(1)  # for what is drawn and is no parameter
    cell: Cell = make(READ, SIZE).to(dtype).eval()
    generator = torch.Generator().manual_seed(3)
    for parameter in cell.parameters():
        drawn = torch.randint(-20, 20, parameter.shape, generator=generator)
        parameter.data.copy_((2 * drawn + 1) / 64)
    return cell


def inputs(scale: float) -> Tensor:
    """x [4, 9, D]: mild steps between extreme ones; rows begin with the signs -, +, both, and mild."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randint(-4, 4, (4, 9, READ), generator=generator).double() / 4 + 0.125
    x[:, 3], x[:, 5], x[:, 6] = scale, -scale, torch.tensor([1.0, -1, 1]) * scale
    x[0, 0], x[1, 0], x[2, 0] = -scale, scale, torch.tensor([-1.0, 1, 1]) * scale
    return x


def everything(cell: Cell, run: Run, x: Tensor) -> list[Tensor]:
    """Outputs, and the gradients of a combination of them by input and parameters."""
    x = x.clone().requires_grad_()
    y = run(cell, x, cell.start(x))[0]
    weights = torch.randn(y.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64).to(
        y.dtype
    )
    return [y, *torch.autograd.grad((weights * y).sum(), [x, *cell.parameters()], materialize_grads=True)]


def same(got: list[Tensor], want: list[Tensor], tolerance: float) -> None:
    for one, other in zip(got, want, strict=True):
        most = max(1e-3, float(other.detach().abs().max()))
        torch.testing.assert_close(one.double() / most, other.double() / most, rtol=0, atol=tolerance)


def extreme_gates(make: Make, scales: tuple[float, ...]) -> None:
    for scale in scales:
        if make.func is RWKV7 and (scale > 20 or "first_values" in make.keywords):
            continue  # gradients are small differences of huge numbers: the output grows with the third power
            # of the input, and the norm of two features is a sign; RWKV7Layers normalises the input
        want = everything(exact(make, torch.float64), RUNS["steps"], inputs(scale))
        tolerances = TYPES | ({torch.float32: PAST_1024 * TYPES[torch.float32]} if scale == 1000.0 else {})
        for dtype, way in itertools.product(TYPES, RUNS):
            if (dtype, way) != (torch.float64, "steps"):  # which is `want`
                found = everything(exact(make, dtype), RUNS[way], inputs(scale).to(dtype))
                same(found, want, tolerances[dtype])
        with choice.use(cells="torch", linear="torch"):
            found = everything(exact(make, torch.float32), RUNS["all at once"], inputs(scale).float())
            same(found, want, tolerances[torch.float32])


@cases(CELLS)
def test_extreme_gates(make: Make) -> None:
    extreme_gates(make, (100.0, 1000.0))


@pytest.mark.slow
@pytest.mark.parametrize("make", CELLS.values(), ids=CELLS)
def test_more_extreme_gates(make: Make) -> None:
    extreme_gates(make, (20.0, 80.0))


# The cells whose gates are exponential or divided by each other, as sums over all steps, with one unit or
# head. Their inputs are the energies i and f themselves, then what else each reads.

ENERGIES = (-1000.0, -100.0, -80.0, -20.0, 0.0, 20.0, 80.0, 100.0, 1000.0)
STEPS = 5
Formula = Callable[[Tensor], Tensor]  # x [T, B, D] to y [T, B, H]


def sequences(rest: int) -> Tensor:
    """x [B, T, 2 + rest]: every pair of i and f is the first of a sequence, and comes later in others."""
    pairs = torch.tensor(list(itertools.product(ENERGIES, repeat=2)), dtype=torch.float64)
    order = torch.arange(len(pairs))[:, None] + torch.tensor([0, 17, 40, 58, 71])
    values = torch.randn(len(pairs), STEPS, rest, generator=torch.Generator().manual_seed(2)).double()
    return torch.cat([pairs[order % len(pairs)], values], -1)


def log_weights(i: Tensor, log_f: Tensor) -> Tensor:
    """log of what step s weighs at step t, i_s + log f_(s+1) + .. + log f_t, -inf for s > t; [T, T, B]."""
    later = torch.full_like(i[0], -torch.inf)
    return torch.stack(
        [
            torch.stack([i[s] + log_f[s + 1 : t + 1].sum(0) if s <= t else later for s in range(STEPS)])
            for t in range(STEPS)
        ]
    )


def picking(cell: Cell, maps: dict[str, list[list[float]]]) -> Cell:
    """A cell whose parameters are zeros but for those given."""
    for name, parameter in cell.named_parameters():
        given = maps.get(name)
        parameter.data.zero_()
        if given is not None:
            parameter.data.copy_(torch.tensor(given).view_as(parameter))
    return cell


READ_I, READ_F, READ_V = [1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]
GAIN = 0.75


def minlstm() -> tuple[Cell, Formula]:
    def formula(x: Tensor) -> Tensor:
        odds = F.logsigmoid(x[..., 1]) - F.logsigmoid(x[..., 0])
        weights = log_weights(F.logsigmoid(-odds), F.logsigmoid(odds)).exp()
        return (weights * x[..., 2]).sum(1)[..., None]

    return picking(MinLSTM(3, 1), {"weight_x": [READ_F, READ_I, READ_V]}), formula


def slstm(forget: str) -> tuple[Cell, Formula]:
    def formula(x: Tensor) -> Tensor:
        i, f, v = x.unbind(-1)
        log_f = F.logsigmoid(f) if forget == "sigmoid" else f
        mean = (log_weights(i, log_f).softmax(1) * v.tanh()).sum(1)
        return torch.sigmoid(torch.tensor(GAIN, dtype=x.dtype)) * mean[..., None]

    cell = SLSTM(3, 1, forget=forget)  # type: ignore[arg-type]
    return picking(
        cell, {"weight_x": [READ_I, READ_F, READ_V, [0, 0, 0]], "bias": [[0, 0, 0, GAIN]]}
    ), formula


def mlstm() -> tuple[Cell, Formula]:
    def formula(x: Tensor) -> Tensor:
        i, f, q, k = x[..., :4].unbind(-1)
        log_f = F.logsigmoid(f)
        weights = log_weights(i, log_f)
        m = torch.maximum(weights.amax(1), log_f.cumsum(0))
        top = m.clamp(min=0)  # the greater of what is read and the 1 of the denominator
        products = (weights - top[:, None]).exp() * k * q[:, None]
        least = EPSILON * (m - top).exp()
        sums = torch.maximum(products.sum(1).abs(), (-top).exp()) + least
        found = (products[..., None] * x[..., 4:]).sum(1) / sums[..., None]
        return F.layer_norm(found, found.shape[-1:]) / 2

    eye = torch.eye(7).tolist()
    gates = [[0.0] * 7] * 3 + eye[:2]
    maps = {"project.weight": eye[2:], "gates.weight": gates, "norm.gain": [1.0] * 3}
    cell = MLSTM(7, 3, num_heads=1, key_size=1)
    return picking(cell, {**maps, "out.weight": torch.eye(3).tolist()}), formula


def rwkv4() -> tuple[Cell, Formula]:
    def formula(x: Tensor) -> Tensor:
        k, r, v = x.unbind(-1)
        past = log_weights(k, torch.full_like(k, -math.exp(GAIN)))
        now = torch.diag_embed((k + GAIN).T).permute(1, 2, 0)  # u is GAIN, too
        before = torch.cat([torch.full_like(past[:1], -torch.inf), past[:-1]])
        energies = torch.where(torch.eye(STEPS, dtype=torch.bool)[..., None], now, before)
        return (r.sigmoid() * (energies.softmax(1) * v).sum(1))[..., None]

    maps = {"r": [READ_F], "k": [READ_I], "v": [READ_V]}
    given = {f"project.{name}.weight": each for name, each in maps.items()}
    return picking(
        RWKV4(3, 1), {**given, "decay": [[GAIN]], "bonus": [[GAIN]], "out.weight": [[1.0]]}
    ), formula


def rglru() -> tuple[Cell, Formula]:
    def formula(x: Tensor) -> Tensor:
        i, r, u = x.unbind(-1)
        rate = F.softplus(torch.tensor(GAIN, dtype=x.dtype))
        log_rate = F.logsigmoid(r) + torch.log(SHARPNESS * rate)  # log(-log a)
        slow = log_rate < -20
        squared = -torch.expm1(-2 * torch.where(slow, 0.0, log_rate).exp())  # 1 - a^2
        entering = torch.where(slow, math.log(2) + log_rate, squared.log()) / 2 + F.logsigmoid(i)
        h = (log_weights(entering, -log_rate.exp()).exp() * u).sum(1)[..., None]
        return torch.cat([torch.zeros_like(h), torch.zeros_like(h), h], -1)

    zeros = [0.0, 0, 0]
    maps = {"recurrence_gate.weight": [zeros, zeros, READ_F], "input_gate.weight": [zeros, zeros, READ_I]}
    return picking(RGLRU(3, 3), {**maps, "rate": [[GAIN] * 3]}), formula


FORMULAS = {
    "minlstm": minlstm,
    "slstm, sigmoid": lambda: slstm("sigmoid"),
    "slstm, exponential": lambda: slstm("exponential"),
    "mlstm": mlstm,
    "rwkv4": rwkv4,
    "rglru": rglru,
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_ratios_of_gates_equal_their_sums_in_log_space(name: str, dtype: torch.dtype) -> None:
    cell, formula = FORMULAS[name]()
    cell = cell.to(dtype)
    x = sequences(cell.in_size - 2)
    last = -1 if name == "rglru" else slice(None)  # its other units read the energies as values
    weights = torch.randn(x.shape[0], STEPS, cell.size, generator=torch.Generator().manual_seed(5)).double()

    def ends(run: Callable[[Tensor], Tensor], x: Tensor) -> list[Tensor]:
        x = x.clone().requires_grad_()
        y = run(x)[..., last]
        return [y, torch.autograd.grad((weights[..., last].to(y.dtype) * y).sum(), x)[0]]

    want = ends(lambda x: formula(x.transpose(0, 1)).transpose(0, 1), x)
    for run in RUNS.values():
        for state in (cell.start(x.to(dtype)), after_a_reset(cell, x.to(dtype))):
            got = ends(lambda x, run=run, state=state: run(cell, x, state)[0], x.to(dtype))
            same(got, want, TYPES[dtype])


def after_a_reset(cell: Cell, x: Tensor) -> State:
    """The state of rows that are begun anew, as a stream of texts begins them."""
    used, fresh = cell(x, cell.start(x))[1], cell.start(x)
    return tree.where(torch.zeros(len(x), dtype=torch.bool), used, fresh)


def test_a_state_of_zeros_is_the_start_of_an_slstm() -> None:
    cell, _ = slstm("sigmoid")
    x = sequences(1).float()
    zeros = tree.tree_map(torch.zeros_like, cell.start(x))
    torch.testing.assert_close(cell(x, zeros), cell(x, cell.start(x)), rtol=0, atol=0)


@pytest.mark.parametrize("decays", ["head", "rows"])
@pytest.mark.parametrize("kind", [Decayed, Replaced, Corrected])
def test_chunks_remember_exactly_after_a_step_that_forgets_all(kind: type, decays: str) -> None:
    if (kind, decays) in ((Replaced, "rows"), (Corrected, "head")):
        pytest.skip("such decays do not exist")
    generator = torch.Generator().manual_seed(2)
    q, k, v, e, w = torch.randn(5, 2, 64, 2, 3, generator=generator).double() / 2
    decay = -torch.rand(2, 64, 2, 3 if decays == "rows" else 1, generator=generator).double() / 8
    decay[:, 5::9] = -16000.0
    rest = {Decayed: (), Replaced: (e[..., :1].sigmoid(),), Corrected: (e, w)}[kind]
    given = [part.requires_grad_() for part in (q, k / 2, v, decay, *rest)]
    state = torch.randn(2, 2, 3, 3, generator=generator).double()

    def ends(dtype: torch.dtype, way: str) -> list[Tensor]:
        parts, outs, s = kind(*(part.to(dtype) for part in given)), [], state.to(dtype)
        if way == "chunks":
            y = parts.chunks(s)[0]
        else:
            for t in range(64):
                o, s = kind(*(part[:, t : t + 1] for part in parts)).one(s)
                outs.append(o)
            y = torch.cat(outs, 1)
        return [y, *torch.autograd.grad(y.sum(), given)]

    same(ends(torch.float32, "chunks"), ends(torch.float64, "steps"), 1e-5)
