"""flash-linear-attention's kernels, in Triton's interpreter on a CPU, are Weft's chunks.

The interpreter checks numbers, layouts and gradients, not speed. Two of its gaps are closed here: it has
nothing to measure kernels with, so the first configuration is taken, and it counts loops in Python's numbers.
"""

import builtins
import sys
import warnings
from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.laws.members import close, normal
from tests.nn.ways import near
from weft import masks
from weft.nn import cells
from weft.nn.cells.matrix import MatrixCell
from weft.nn.kernels import choice
from weft.nn.kernels import flash_linear_attention as library
from weft.nn.kernels.matrix import Corrected, Decayed, MatrixRecurrence, Replaced

WHY = "flash-linear-attention is not installed: pip install --group fla-tests"
pytest.importorskip("triton", reason=WHY)
on_gpu = torch.cuda.is_available()
DEVICE = torch.device("cuda" if on_gpu else "cpu")
HALF = torch.bfloat16 if on_gpu else torch.float16  # the interpreter cannot multiply bfloat16

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # without a GPU the library warns
    pytest.importorskip("fla.ops", reason=WHY, exc_type=ImportError)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
KINDS = ("by head", "by row", "replaced", "corrected")
CELLS: dict[str, type[MatrixCell]] = {
    "retention": cells.Retention,
    "gla": cells.GLA,
    "hgrn2": cells.HGRN2,
    "mlstm": cells.MLSTM,
    "ssd": cells.SSD,
    "delta": cells.Delta,
    "gated_delta": cells.GatedDelta,
    "rwkv7": cells.RWKV7,
}


@pytest.fixture(autouse=True)
def interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's kernels in Triton's interpreter, where there is no GPU."""
    if on_gpu:
        return
    import triton.language as tl
    from triton.runtime.autotuner import Autotuner

    def counted(*ends: object) -> Iterator[object]:
        plain = (int(end.handle.data.item()) if hasattr(end, "handle") else end for end in ends)
        return (tl.full([], i, tl.int32) for i in builtins.range(*plain))  # type: ignore[arg-type]

    monkeypatch.setattr(Autotuner, "prune_configs", lambda self, _: self.configs[:1])
    monkeypatch.setattr(library, "DEVICES", ("cpu",))
    for name, module in list(sys.modules.items()):
        if name.startswith("fla.ops"):
            monkeypatch.setattr(module, "range", counted, raising=False)
            if hasattr(module, "gather"):  # a function of Triton that was imported before it was interpreted
                monkeypatch.setattr(module, "gather", lambda *given, **more: tl.gather(*given, **more))


def recurrence(kind: str, steps: int, *, keys: int = 11, values: int = 13) -> MatrixRecurrence:
    rows, heads = 1, 2

    def of(width: int, seed: int) -> Tensor:
        return normal(rows, steps, heads, width, seed=seed, dtype=torch.float32).to(DEVICE)

    q, k, v = of(keys, 1), F.normalize(of(keys, 2), dim=-1), of(values, 3)
    by_head, by_row = F.logsigmoid(of(1, 4)), F.logsigmoid(of(keys, 5))
    if kind == "by head":
        return Decayed(q, k, v, by_head)
    if kind == "by row":
        return Decayed(q, k, v, by_row)
    if kind == "replaced":
        return Replaced(q, k, v, by_head, of(1, 6).sigmoid())
    return Corrected(q, k, v, library.RWKV7_LEAST * of(keys, 7).sigmoid(), -k, k * of(keys, 8).sigmoid())


def gradients(way: object, asked: MatrixRecurrence, state: Tensor) -> list[Tensor]:
    """Both results and the gradients of every term and of the state before."""
    parts = [part.detach().clone().requires_grad_() for part in (*asked, state)]
    outs = way(type(asked)(*parts[:-1]), parts[-1])  # type: ignore[operator]
    total = sum((normal(*o.shape, seed=9, dtype=torch.float32).to(DEVICE) * o).sum() for o in outs)
    return [*outs, *torch.autograd.grad(total, parts)]


def both(asked: MatrixRecurrence, dtype: torch.dtype) -> tuple[list[Tensor], list[Tensor]]:
    state = normal(1, 2, asked.key.shape[-1], asked.value.shape[-1], dtype=torch.float32).to(DEVICE)
    found = gradients(lambda given, s: library.run(given, s, dtype), asked, state)
    return found, gradients(lambda given, s: given.chunks(s), asked, state)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [3, 67])
def test_the_librarys_kernels_are_the_chunks(kind: str, steps: int) -> None:
    found, want = both(recurrence(kind, steps), torch.float32)
    near = 1e-2 if on_gpu else 1e-5  # a GPU multiplies with 10 bits here
    near = max(near, 1e-4) if kind == "corrected" else near  # the library sums numbers up to 2^28 there
    for got, exact in zip(found, want, strict=True):
        assert got.shape == exact.shape
        assert (got - exact).norm() <= near * exact.norm()


@pytest.mark.parametrize("kind", KINDS)
def test_in_half_precision_they_agree_to_its_bits(kind: str) -> None:
    for got, exact in zip(*both(recurrence(kind, 19), HALF), strict=True):
        assert (got.float() - exact).norm() <= 4 * torch.finfo(HALF).eps * exact.norm()


@pytest.mark.parametrize("kind", KINDS[:3])
def test_after_a_step_that_forgets_all_the_sums_are_exact(kind: str) -> None:
    asked = recurrence(kind, 19)
    asked.decay[:, 5] = -1e5
    found, want = both(asked, torch.float32)
    near(found[:2], want[:2], 1e-2 if on_gpu else 1e-5)


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_through_the_library_is_the_cell(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = CELLS[name](7, 10, num_heads=2).to(DEVICE)
    for k, parameter in enumerate(cell.parameters()):
        parameter.data.add_(0.3 * normal(*parameter.shape, seed=k, dtype=torch.float32).to(DEVICE))
    x = normal(3, 11, 7, dtype=torch.float32).to(DEVICE)
    mask = masks.from_lengths(torch.tensor([11, 1, 7]), 11).to(DEVICE)
    before = [
        part if k == 0 else part + 0.1 * normal(*part.shape, seed=k).to(part)
        for k, part in enumerate(cell.start(x[:, 0]))
    ]
    calls, inner = [], library.run

    def counted(*given: object) -> object:
        calls.append(name)
        return inner(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(library, "run", counted)
    found = []
    for devices in (library.DEVICES, ()):
        monkeypatch.setattr(library, "DEVICES", devices)
        with choice.use(cells="fla"), torch.autocast(DEVICE.type, HALF):
            y, after = cell(x, tuple(before), mask)
        grads = torch.autograd.grad((y.float() * x.sum(-1, keepdim=True)).sum(), list(cell.parameters()))
        found.append([y.float(), *after, *grads])
    assert len(calls) == 1
    for got, want in zip(*found, strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        assert (got - want).norm() <= 8 * torch.finfo(HALF).eps * want.norm() + 1e-6


def test_what_the_library_does_not_compute_runs_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = recurrence("replaced", 5)
    state = torch.zeros(1, 2, 11, 13, device=DEVICE)
    assert library.why_not(asked, state, HALF) == ""
    assert "not in torch.float32" in library.why_not(asked, state, torch.float32)
    wide = asked._replace(key=torch.zeros(1, 5, 2, 257))
    assert "at most 256, not 257" in library.why_not(wide, state, HALF)
    monkeypatch.setattr(library, "DEVICES", ())
    assert "on a GPU" in library.why_not(asked, state, HALF)
    with choice.use(cells="fla"):
        close(asked.all(state, HALF), asked.chunks(state), 1e-5)
