"""Law 7 for recurrences without a matrix and the selective scan: every way is the loop over steps."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.laws.members import close, normal
from tests.nn.ways import near, needs, on_threads, second_derivatives, weighed
from weft.errors import ConfigError
from weft.nn.cells.cell import Cell
from weft.nn.cells.mingru import MinGRU
from weft.nn.cells.sru import SRU
from weft.nn.kernels import choice
from weft.nn.kernels.light import KINDS, light, scan_by_steps, selective

GATES = {"mingru": 2, "minlstm": 3, "ssru": 2, "sru": 3, "sru peeping": 3}
each_way = pytest.mark.parametrize("way", [pytest.param("native", marks=needs("light")), "torch"])


def given_to(kind: str, rows: int, steps: int, size: int, dtype: torch.dtype) -> dict[str, Any]:
    given: dict[str, Any] = {
        "z": normal(rows, steps, GATES[kind] * size, dtype=dtype),
        "c": normal(rows, size, seed=2, dtype=dtype),
    }
    if kind.startswith("sru"):
        given["past"] = normal(rows, steps, 2 * size, seed=3, dtype=dtype)[
            ..., size:
        ]  # beside something else
    if kind == "sru peeping":
        given["peep"] = normal(2, size, seed=4, dtype=dtype)
    return given


def everything(kind: str, given: dict[str, Any], mask: Tensor | None, way: Any) -> tuple[Tensor, ...]:
    with choice.use(cells=way), torch.no_grad():
        plain = light(kind.split()[0], **given, mask=mask)
    leaves = {name: tensor.detach().requires_grad_() for name, tensor in given.items()}
    with choice.use(cells=way):
        outs = light(kind.split()[0], **leaves, mask=mask)
    total = weighed(outs)
    return (*plain, *outs, *torch.autograd.grad(total, list(leaves.values())))


def holes(rows: int, steps: int) -> Tensor:
    """A mask with padding anywhere, and a row without a real position."""
    mask = normal(rows, steps, seed=9) > -0.5
    mask[1] = False
    return mask


@each_way
@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("threads", [1, 2])
def test_law_7_a_layer_is_the_loop(kind: str, way: str, threads: int) -> None:
    with on_threads(threads):
        for rows, steps, size in ((9, 5, 13), (3, 1, 37)):
            given = given_to(kind, rows, steps, size, torch.float32)
            for mask in (None, holes(rows, steps)):
                close(everything(kind, given, mask, way), everything(kind, given, mask, "steps"), 1e-5)


@each_way
@pytest.mark.parametrize("kind", GATES)
def test_a_second_derivative_is_that_of_the_loop(kind: str, way: str) -> None:
    given, found = given_to(kind, 3, 3, 5, torch.float32), []

    def run(*leaves: Tensor) -> tuple[Tensor, ...]:
        return light(kind.split()[0], **dict(zip(given, leaves, strict=True)), mask=holes(3, 3))

    for each in (way, "steps"):
        with choice.use(cells=each):  # type: ignore[arg-type]
            found.append(second_derivatives(run, given.values()))
    close(*found, 1e-4)


@each_way
def test_the_state_alone_has_a_gradient_too(way: str) -> None:
    found = []
    for each in (way, "steps"):
        given = {
            name: t.detach().requires_grad_() for name, t in given_to("sru", 3, 4, 5, torch.float32).items()
        }
        with choice.use(cells=each):  # type: ignore[arg-type]
            _, c = light("sru", **given)
        found.append(torch.autograd.grad(c.sum(), [given["z"], given["c"]]))
    close(*found, 1e-5)


@pytest.mark.parametrize("make", [MinGRU, SRU, lambda d, h: SRU(d, h, peephole=True)])
def test_a_nan_stays_in_its_row_and_bfloat16_is_near(make: Any) -> None:
    cell: Cell = make(3, 13)
    x = normal(4, 5, 3, dtype=torch.float32)
    want, _ = cell(x, cell.start(x))
    with torch.autocast("cpu", torch.bfloat16):
        got, _ = cell(x, cell.start(x))
    assert (got.float() - want).norm() < 0.05 * want.norm()  # bfloat16 keeps 8 bits
    x[2, 3] = torch.nan
    y, _ = cell(x, cell.start(x))
    assert y[2, 3:].isnan().all() and y[2, :3].isfinite().all() and y[[0, 1, 3]].isfinite().all()


def test_a_way_that_cannot_compute_this_is_refused() -> None:
    assert set(KINDS) == {kind.split()[0] for kind in GATES}
    given = given_to("mingru", 2, 3, 5, torch.float64)
    with choice.use(cells="native"), pytest.raises(ConfigError, match=r"mingru: "):
        light("mingru", **given)


@each_way
def test_minlstm_gates_too_small_for_float32(way: str) -> None:
    energies = torch.tensor([-1000.0, -100.0, -87.5, -20.0, 0.0, 20.0, 1000.0])
    f, i = torch.cartesian_prod(energies, energies).T
    candidate, c = normal(2, len(f), dtype=torch.float32)
    z = torch.cat([f, i, candidate])[None, None].requires_grad_()
    with choice.use(cells=way):  # type: ignore[arg-type]
        y = light("minlstm", z, c[None])[0]
    y.sum().backward()

    exact = z.detach().double().requires_grad_()
    f, i, candidate = exact[0, 0].chunk(3)
    odds = torch.nn.functional.logsigmoid(f) - torch.nn.functional.logsigmoid(i)
    want = odds.sigmoid() * c + (-odds).sigmoid() * candidate
    want.sum().backward()
    close(y[0, 0], want.float(), 1e-5)
    close(z.grad, exact.grad.float(), 1e-5)  # type: ignore[union-attr]


compiled = needs("selective")


def scan_terms(rows: int, steps: int, size: int, states: int) -> list[Tensor]:
    """u, dt, A, B, C and h; B, C and h have other strides, dt is 0 at some positions."""
    b = normal(rows, steps, states + 3, seed=3, dtype=torch.float32)[..., 3:]
    c = normal(rows, steps, states + 7, seed=6, dtype=torch.float32)[..., :states]
    dt = normal(rows, steps, size, seed=2, dtype=torch.float32).relu()
    a = -normal(states, size, seed=4, dtype=torch.float32).exp()
    u, h = normal(rows, steps, size, dtype=torch.float32), normal(rows, size, states, seed=5).float().mT
    return [u, dt, a, b, c, h]


@compiled
@pytest.mark.parametrize("states", [16, 5])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("rows", "steps", "size"), [(3, 1, 13), (5, 16, 37), (2, 35, 16), (3, 53, 67)])
def test_law_7_the_compiled_scan_is_the_loop(
    states: int, threads: int, rows: int, steps: int, size: int
) -> None:
    with on_threads(threads):
        found = []
        for run in (selective, scan_by_steps):
            given = [each.clone().requires_grad_() for each in scan_terms(rows, steps, size, states)]
            with torch.no_grad():
                plain = run(*given)
            outs = run(*given)
            total = weighed(outs)
            found.append((*plain, *outs, *torch.autograd.grad(total, given)))
        near(*found, 1e-5, relative=True)  # relative to the largest, as sums may cancel


@compiled
@pytest.mark.parametrize("which", [0, 1])
def test_each_output_alone_has_a_gradient(which: int) -> None:
    found = []
    for run in (selective, scan_by_steps):
        given = [each.clone().requires_grad_() for each in scan_terms(2, 19, 5, 3)]
        found.append(torch.autograd.grad(run(*given)[which].square().sum(), given, materialize_grads=True))
    near(*found, 1e-5, relative=True)


@compiled
def test_a_second_derivative_of_the_scan_is_that_of_the_loop() -> None:
    mine, true = (second_derivatives(run, scan_terms(2, 5, 3, 2)) for run in (selective, scan_by_steps))
    near(mine, true, 1e-4, relative=True)


@compiled
def test_a_scan_that_compiled_code_cannot_compute_is_refused_or_runs_step_by_step() -> None:
    given = [each.double() for each in scan_terms(2, 5, 3, 2)]
    with choice.use(cells="native"), pytest.raises(ConfigError, match="float32 on the CPU"):
        selective(*given)
    close(selective(*given), scan_by_steps(*given), 0.0)
    wide = scan_terms(2, 5, 3, 65)
    close(selective(*wide), scan_by_steps(*wide), 0.0)
