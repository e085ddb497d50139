"""Law 7 for the Triton kernels, in Triton's interpreter where there is no GPU: they are the plain loop."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from tests.laws.members import close, normal
from tests.nn.test_cells_kernel import OTHERS, call, everything, inputs
from weft import masks
from weft.errors import ConfigError
from weft.nn.cells.cell import Cell
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.cells.peephole import Peephole
from weft.nn.kernels import choice, triton

pytest.importorskip(
    "triton", reason="triton is not installed, no kernel of it is tested: pip install --group triton-tests"
)

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
T = 5
LENGTHS = {"whole": None, "ragged": [5, 3, 1, 0]}
MATRIX = ("lstm", "peephole", "gru", "gru_before", "elman", "relu", *OTHERS)
FORMS: dict[str, Callable[[int, int], Cell]] = {
    "gru normalised": partial(GRU, normalised=True),
    "gru before, normalised": partial(GRU, reset="before", normalised=True),
    "gru before, sigmoid": partial(GRU, reset="before", candidate="sigmoid"),
    "gru sigmoid": partial(GRU, candidate="sigmoid"),
    "lstm normalised": partial(LSTM, normalised=True),
    "lstm sigmoid": partial(LSTM, candidate="sigmoid"),
    "peephole normalised": partial(Peephole, normalised=True, gates=("input", "output")),
}


def mask_of(lengths: list[int] | None) -> Tensor | None:
    return None if lengths is None else masks.from_lengths(torch.tensor(lengths), T).to(DEVICE)


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("cell", MATRIX)
def test_law_7_a_layer_is_the_loop(cell: str, lengths: list[int] | None) -> None:
    for dtype, near in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        given = [t.to(DEVICE) for t in inputs(cell, (4, T, 3, 11), dtype)]
        mask = mask_of(lengths)
        close(everything(cell, given, mask, "triton"), everything(cell, given, mask, "steps"), near)


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
def test_law_7_a_form_that_only_triton_knows_is_the_step_loop(
    make: Callable[[int, int], Cell], lengths: list[int] | None
) -> None:
    found = []
    for way in ("triton", "steps"):
        cell = make(3, 11).double().to(DEVICE)
        for k, parameter in enumerate(cell.parameters()):
            parameter.data.copy_(normal(*parameter.shape, seed=k))
        x = normal(4, T, 3, seed=50).to(DEVICE).requires_grad_()
        before = tuple(
            normal(*s.shape, seed=60 + k).to(DEVICE).requires_grad_() for k, s in enumerate(cell.start(x))
        )
        with choice.use(cells=way):  # type: ignore[arg-type]
            y, after = cell(x, before, mask_of(lengths))
        outs = (y, *after)
        total = sum((normal(*o.shape, seed=k).to(DEVICE) * o).sum() for k, o in enumerate(outs))
        found.append((*outs, *torch.autograd.grad(total, [x, *before, *cell.parameters()])))
    close(*found)


def test_a_second_derivative_is_that_of_the_loop() -> None:
    found = []
    for way in ("triton", "steps"):
        given = [t.to(DEVICE).requires_grad_() for t in inputs("peephole", (3, 4, 2, 5), torch.float64)]
        outs = call("peephole", given, masks.from_lengths(torch.tensor([2, 4, 1]), 4).to(DEVICE), way)
        grads = torch.autograd.grad(sum((out * out).sum() for out in outs), given, create_graph=True)
        found.append(torch.autograd.grad(sum((grad * grad).sum() for grad in grads), given))
    close(*found)


def test_bfloat16_autocast_takes_the_products_alone() -> None:
    given = [t.to(DEVICE) for t in inputs("peephole", (4, T, 3, 11), torch.float32)]
    want = everything("peephole", given, None, "steps")
    with torch.autocast(DEVICE.type, torch.bfloat16):
        got = everything("peephole", given, None, "triton")
    for one, other in zip(got, want, strict=True):
        assert one.dtype == torch.float32
        assert (one - other).norm() < 0.05 * other.norm()  # bfloat16 keeps 8 bits


def test_what_triton_cannot_do_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    given = inputs("coupled", (2, 3, 2, 5), torch.float32)
    with pytest.raises(ConfigError, match="coupled: "):
        call("coupled", given, None, "triton")
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    assert "runs on a GPU" in triton.why_not(torch.device("cpu"))
    with (
        choice.use(cells="triton"),
        pytest.raises(ConfigError, match="cells: "),
    ):
        cell = GRU(2, 5, normalised=True)
        cell(torch.zeros(2, 3, 2), cell.start(torch.zeros(2, 2)))
    with pytest.raises(ConfigError, match="cells: "):
        call("gru_before", inputs("gru_before", (2, 3, 2, 5), torch.float32), None, "triton")
