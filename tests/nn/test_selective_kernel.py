"""Law 7 for the selective scan: compiled code is the loop over steps, forward and backward."""

import pytest
import torch
from torch import Tensor

from tests.laws.members import close, normal
from tests.nn.ways import near, needs, on_threads, second_derivatives, weighed
from weft.errors import ConfigError
from weft.nn.kernels import choice
from weft.nn.kernels.light import scan_by_steps, selective

compiled = needs("selective")


def given_to(rows: int, steps: int, size: int, states: int) -> list[Tensor]:
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
            given = [each.clone().requires_grad_() for each in given_to(rows, steps, size, states)]
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
        given = [each.clone().requires_grad_() for each in given_to(2, 19, 5, 3)]
        found.append(torch.autograd.grad(run(*given)[which].square().sum(), given, materialize_grads=True))
    near(*found, 1e-5, relative=True)


@compiled
def test_a_second_derivative_is_that_of_the_loop() -> None:
    mine, true = (second_derivatives(run, given_to(2, 5, 3, 2)) for run in (selective, scan_by_steps))
    near(mine, true, 1e-4, relative=True)


@compiled
def test_a_scan_that_compiled_code_cannot_compute_is_refused_or_runs_step_by_step() -> None:
    given = [each.double() for each in given_to(2, 5, 3, 2)]
    with choice.use(cells="native"), pytest.raises(ConfigError, match="float32 on the CPU"):
        selective(*given)
    close(selective(*given), scan_by_steps(*given), 0.0)
    wide = given_to(2, 5, 3, 65)
    close(selective(*wide), scan_by_steps(*wide), 0.0)
