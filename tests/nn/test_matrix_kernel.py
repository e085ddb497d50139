"""Law 7 for matrices per head: compiled code is the loop over steps, forward and backward."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.laws.members import close, normal
from tests.nn.ways import near, needs, on_threads, second_derivatives, weighed
from weft.errors import ConfigError
from weft.nn.kernels import choice
from weft.nn.kernels.matrix import Corrected, Decayed, Replaced, Scan, Terms, by_steps, compiled

pytestmark = needs("matrix")
KINDS = ["decayed", "replaced", "corrected"]


def given_to(kind: str, rows: int, steps: int, keys: int, values: int, decays: int) -> list[Tensor | None]:
    """The terms and the state; q has another order of axes, v other strides, k is the same for all heads."""
    heads = 3
    q = normal(heads, rows, steps, keys, dtype=torch.float32).permute(1, 2, 0, 3)
    k = F.normalize(normal(rows, steps, 1, keys, seed=2, dtype=torch.float32), dim=-1)
    k = k.expand(-1, -1, heads, -1)
    v = normal(rows, steps, heads, values + 3, seed=3, dtype=torch.float32)[..., 3:]
    a = normal(rows, steps, heads, decays, seed=4, dtype=torch.float32).sigmoid()
    e = -F.normalize(normal(rows, steps, heads, keys, seed=5, dtype=torch.float32), dim=-1)
    w = e * normal(rows, steps, heads, keys, seed=6, dtype=torch.float32).sigmoid()
    s = normal(rows, heads, values, keys, seed=7, dtype=torch.float32).mT
    return [q, k, v, a, None if kind == "decayed" else e, w if kind == "corrected" else None, s]


def run(scan: object, given: list[Tensor | None]) -> Scan:
    *terms, s = given
    found: Scan = scan(Terms(*terms), s)  # type: ignore[operator, arg-type]
    return found


def leaves(given: list[Tensor | None]) -> tuple[list[Tensor | None], list[Tensor]]:
    new = [None if each is None else each.detach().requires_grad_() for each in given]
    return new, [each for each in new if each is not None]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("rows", "steps", "keys", "values"), [(3, 1, 13, 11), (5, 16, 5, 37), (2, 35, 64, 65), (1, 17, 83, 131)]
)
@pytest.mark.parametrize("by_row", [False, True])
def test_law_7_the_compiled_scan_is_the_loop(
    kind: str, threads: int, rows: int, steps: int, keys: int, values: int, by_row: bool
) -> None:
    with on_threads(threads):
        found = []
        for scan in (compiled, by_steps):
            given, wanted = leaves(given_to(kind, rows, steps, keys, values, keys if by_row else 1))
            with torch.no_grad():
                plain = run(scan, given)
            outs = run(scan, given)
            total = weighed(outs)
            found.append((*plain, *outs, *torch.autograd.grad(total, wanted)))
        near(*found, 1e-5, relative=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", [0, 1])
def test_each_output_alone_has_a_gradient(kind: str, which: int) -> None:
    found = []
    for scan in (compiled, by_steps):
        given, wanted = leaves(given_to(kind, 2, 19, 5, 3, 5))
        total = run(scan, given)[which].square().sum()
        found.append(torch.autograd.grad(total, wanted, materialize_grads=True))
    near(*found, 1e-5, relative=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_derivative_is_that_of_the_loop(kind: str) -> None:
    q, *rest = given_to(kind, 2, 5, 3, 2, 1)
    assert q is not None
    for query in (q, q.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1)):  # whose features are apart
        given, found = [query, *rest], []
        for scan in (compiled, by_steps):

            def filled(*leaves: Tensor, scan: object = scan, given: Any = given) -> Scan:
                some = iter(leaves)
                return run(scan, [None if each is None else next(some) for each in given])

            found.append(second_derivatives(filled, [each for each in given if each is not None]))
        near(*found, 1e-4, relative=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_gradient_that_is_not_finite_stays_in_its_row(kind: str) -> None:
    given, wanted = leaves(given_to(kind, 3, 5, 13, 11, 1))
    o = run(compiled, given)[0]
    asked = torch.ones_like(o)
    asked[0] = torch.inf
    assert all(bool(each[1:].isfinite().all()) for each in torch.autograd.grad(o, wanted, asked))


@pytest.mark.parametrize("kind", KINDS)
def test_each_recurrence_of_the_cells_has_these_terms(kind: str) -> None:
    q, k, v, a, e, w, s = given_to(kind, 2, 35, 5, 7, 1)
    assert q is not None and k is not None and v is not None and a is not None and s is not None
    asked: Decayed | Replaced | Corrected = Decayed(q, k, v, a.log())
    if kind == "replaced":
        asked = Replaced(q, k, v, a.log(), a.square())
    elif e is not None and w is not None:
        asked = Corrected(q, k, v, a.log().expand_as(k), e, w)
    found = []
    for way in ("native", "torch"):
        parts = [part.detach().requires_grad_() for part in (*asked, s)]
        with choice.use(cells=way):  # type: ignore[arg-type]
            outs = type(asked)(*parts[:-1]).all(parts[-1])
        total = weighed(outs)
        found.append((*outs, *torch.autograd.grad(total, parts)))
    near(*found, 3e-5, relative=True)  # the sums of chunks have another order


def test_a_scan_that_compiled_code_cannot_compute_is_refused_or_runs_in_chunks() -> None:
    q, k, v, a, *_, s = (
        None if each is None else each.double() for each in given_to("decayed", 2, 5, 3, 2, 1)
    )
    assert q is not None and k is not None and v is not None and a is not None and s is not None
    asked = Decayed(q, k, v, a.log())
    with choice.use(cells="native"), pytest.raises(ConfigError, match="float32 on the CPU"):
        asked.all(s)
    close(asked.all(s), asked.chunks(s), 0.0)
