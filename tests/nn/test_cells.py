"""Properties of cells beyond the laws: scans, orthogonal matrices, initial states, bad input, probes."""

import copy
import math
from collections.abc import Callable
from functools import partial

import pytest
import torch

from tests.laws.members import CELLS, READ, ROWS, SIZE, SOURCE, Make, cases, close, normal, ready, source
from tests.nn.ways import near
from tests.slow import leading
from weft.diagnose.recorded import places
from weft.errors import ConfigError, ShapeError
from weft.nn.cells.cell import Cell
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.cells.jordan import Jordan
from weft.nn.cells.lstm import LSTM
from weft.nn.cells.mingru import MinGRU
from weft.nn.cells.minlstm import MinLSTM
from weft.nn.cells.mlstm import MLSTM
from weft.nn.cells.orthogonal import Orthogonal
from weft.nn.cells.peephole import Peephole
from weft.nn.cells.projected import Projected
from weft.nn.cells.retention import Retention
from weft.nn.cells.rwkv4 import RWKV4
from weft.nn.cells.rwkv7 import RWKV7
from weft.nn.cells.slstm import SLSTM
from weft.nn.cells.sru import SRU
from weft.nn.cells.ssru import SSRU
from weft.nn.cells.variational import Variational
from weft.nn.cells.zoneout import Zoneout
from weft.nn.kernels import choice
from weft.nn.kernels import light as scan
from weft.nn.kernels.matrix import Corrected
from weft.nn.recurrent import Stack
from weft.probe import probe

ELEMENTWISE = [MinGRU, MinLSTM, SRU, SSRU]


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 64, 1009])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_scan_and_sequence_agree(steps: int, dtype: torch.dtype) -> None:
    a = normal(2, steps, 3, dtype=dtype).sigmoid().requires_grad_()
    b, c = normal(2, steps, 3, seed=2, dtype=dtype).requires_grad_(), normal(2, 3, seed=3, dtype=dtype)
    weights = normal(2, steps, 3, seed=4, dtype=dtype)
    found = []
    for run in (scan.scan, scan.sequence):
        cs = run(a, b, c)
        found.append((cs, *torch.autograd.grad((cs * weights).sum(), (a, b))))
    close(found[0], found[1], 1e-10 if dtype == torch.float64 else 1e-5)


@pytest.mark.parametrize("make", ELEMENTWISE)
@pytest.mark.parametrize("masked", [False, True])
def test_a_cell_by_scan_is_the_cell_step_by_step(
    make: type[Cell], masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = ready(lambda: make(READ, SIZE), torch.float32)
    x, mask = source(torch.float32)
    begin = cell.step(normal(ROWS, READ, dtype=torch.float32), cell.start(x))[1]
    want = Cell.run(cell, x, begin, mask if masked else None)
    monkeypatch.setattr(scan, "recurrence", scan.scan)
    with choice.use(cells="torch"):
        close(cell(x, begin, mask if masked else None), want, 1e-5)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_an_orthogonal_matrix_stays_so_through_training(activation: str) -> None:
    torch.manual_seed(1)
    cell = Orthogonal(READ, 61, activation=activation)
    optimiser = torch.optim.AdamW(cell.parameters(), 3e-2)
    before = cell.cell.weight_h.detach().clone()
    for update in range(60):
        x = normal(ROWS, SOURCE, READ, seed=update, dtype=torch.float32)
        loss = (cell(x, cell.start(x))[0] - normal(ROWS, SOURCE, 61, dtype=torch.float32)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    after = cell.cell.weight_h.detach()
    assert (after - before).norm() > 1
    singular = torch.linalg.svdvals(after)
    torch.testing.assert_close(singular, torch.ones(61), rtol=0, atol=1e-5)


def test_each_gate_starts_orthogonal() -> None:
    for cell in (Elman(READ, SIZE), LSTM(READ, SIZE), GRU(READ, SIZE), Peephole(READ, SIZE)):
        for gate in cell.weight_h.detach().split(SIZE):
            torch.testing.assert_close(torch.linalg.svdvals(gate), torch.ones(SIZE), rtol=0, atol=1e-5)


def test_rotations_turn_pairs_and_modrelu_without_bias_keeps_every_length() -> None:
    cell = Orthogonal(READ, SIZE, activation="modrelu", weights="rotations").double()
    weight = cell.weight_h.detach()
    torch.testing.assert_close(weight @ weight.T, torch.eye(SIZE, dtype=weight.dtype), rtol=0, atol=1e-6)
    apart = torch.arange(SIZE)[:, None] // 2 != torch.arange(SIZE) // 2
    assert not weight[apart].any() and weight[~apart].abs().min() > 0
    h = normal(ROWS, SIZE)
    y, _ = cell(torch.zeros(ROWS, 40, READ, dtype=h.dtype), (h,))
    torch.testing.assert_close(y[:, -1].norm(dim=1), h.norm(dim=1), rtol=1e-5, atol=0)


def test_the_identity_start_adds_up_what_it_reads() -> None:
    cell = Elman(READ, SIZE, activation="relu", weights="identity")
    cell.weight_x.data.abs_()
    x = normal(ROWS, SOURCE, READ, dtype=torch.float32).abs()
    y, _ = cell(x, cell.start(x))
    torch.testing.assert_close(y, (x @ cell.weight_x.T).cumsum(1), rtol=1e-5, atol=1e-5)


def test_a_sigmoid_candidate_keeps_a_gru_between_zero_and_one() -> None:
    cell = ready(lambda: GRU(READ, SIZE, candidate="sigmoid"))
    y, _ = cell(50 * normal(ROWS, SOURCE, READ), (torch.full((ROWS, SIZE), 0.5, dtype=torch.float64),))
    assert y.min() >= 0 and y.max() <= 1


def test_without_gates_the_slope_of_c_is_one() -> None:
    cell = ready(lambda: LSTM(READ, SIZE, forget_gate=False, input_gate=False))
    h, c = normal(1, SIZE), normal(1, SIZE, seed=2)
    slope = torch.autograd.functional.jacobian(lambda c: cell.step(normal(1, READ), (h, c))[1][1], c)
    assert torch.equal(slope[0, :, 0], torch.eye(SIZE, dtype=torch.float64))


def test_a_forget_bias_stands_where_the_past_is_kept() -> None:
    for cell in (MinGRU(2, 3, forget_bias=7), GRU(2, 3, forget_bias=7), LSTM(2, 3, forget_bias=7)):
        cell.weight_x.data.zero_()
        if hasattr(cell, "weight_h"):
            cell.weight_h.data.zero_()
        state = tuple(torch.ones_like(leaf) for leaf in cell.start(torch.zeros(1, 2)))
        after = cell.step(torch.zeros(1, 2), state)[1][-1]
        assert (after > 0.99).all()


@cases(CELLS)
def test_what_a_probe_sees(make: Make) -> None:
    cell = ready(lambda: make(READ, SIZE))
    x = normal(ROWS, SOURCE, READ)
    with probe() as seen:
        cell(x, cell.start(x))
    gates = {f"{name}_gate" for name in ("input", "forget", "output", "update", "reset")}
    assert (
        set(seen) <= gates | {"candidate", "cell", "hidden", "state", "transition", "written"}
        and "hidden" in seen
    )
    for name in set(seen) & gates:
        assert len(seen[name]) == SOURCE * len(places(cell))
        assert all(gate.min() >= 0 and gate.max() <= 1 for gate in seen[name])


@pytest.mark.parametrize("why", ["features", "one", "mask", "rows", "width", "none", "list"])
@pytest.mark.parametrize("make", [LSTM, Jordan])  # all others inherit Cell.forward, whose check refuses
def test_inputs_that_do_not_fit_are_refused(make: type[Cell], why: str) -> None:
    cell = make(READ, SIZE)
    x, mask = source(torch.float32)
    state = cell.start(x)
    cases: dict[str, tuple[Callable[[], object], str]] = {
        "features": (
            lambda: cell(x[..., :2], state),
            r"expected x of shape \[rows, steps, 3\], got \[5, 7, 2\]",
        ),
        "one": (lambda: cell(x[0], state), r"got \[7, 3\]; one sequence is a batch of one"),
        "mask": (lambda: cell(x, state, mask[:, :3]), r"expected a mask of shape \[5, 7\], got \[5, 3\]"),
        "rows": (
            lambda: cell(x[:3], state),
            r"expected a state of shapes \[\[3, \d+.*, got \[\[5, \d+.*; cell.start\(x\)",
        ),
        "width": (lambda: cell(x, tuple(leaf[:, 1:] for leaf in state)), "expected a state of shapes"),
        "none": (lambda: cell(x[:, :0], state), r"at least one step, got \[5, 0, 3\]"),
        "list": (lambda: cell(x, list(state)), "a tuple of tensors, got list"),
    }
    call, sentence = cases[why]
    with pytest.raises(ShapeError, match=sentence):
        call()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Elman(2, 0), "got 2 and 0"),
        (lambda: Elman(2, 3, activation="tahn"), "activation: .*'tahn'"),
        (lambda: Elman(2, 3, weights="zeros"), "weights: .*'zeros'"),
        (lambda: Jordan(2, 3, output="relux"), "output: .*'relux'"),
        (lambda: Jordan(2, 3, hidden=0), "hidden: .*0"),
        (lambda: LSTM(2, 3, candidate="relu"), "candidate: .*'relu'"),
        (lambda: GRU(2, 3, candidate="relu"), "candidate: .*'relu'"),
        (lambda: Peephole(2, 3, form="half"), "form: .*'half'"),
        (lambda: Peephole(2, 3, gates=("cell",)), "gates: .*'cell'"),
        (lambda: Peephole(2, 3, gates=("input", "input")), "names one of them twice"),
        (lambda: Orthogonal(2, 3, activation="maxout"), "activation: .*'maxout'"),
        (lambda: Zoneout(2, 3, rate=1.5), "rate: .*1.5"),
        (lambda: Variational(2, 3, input_rate=-1.0), "input_rate: .*-1.0"),
        (lambda: Variational(2, 3, cell=MinGRU), "MinGRU does not multiply its h, .* use zoneout"),
        (lambda: Variational(2, 3, cell=partial(Zoneout, cell=SRU)), "Zoneout does not multiply"),
        (lambda: Projected(2, 3, inner=3), "inner: .*3"),
        (lambda: Projected(2, 3, inner=5, cell=SRU), "SRU has no matrix W_h of its own"),
    ],
)
def test_settings_that_do_not_fit_are_refused(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make()


def test_true_outputs_of_another_shape_are_refused() -> None:
    cell, x = Jordan(2, 3), torch.zeros(5, 7, 2)
    with pytest.raises(ShapeError, match=r"fed: "):
        cell(x, cell.start(x), fed=torch.zeros(5, 6, 3))


def test_a_stack_of_any_cell_reads_a_sequence_of_one_step() -> None:
    x = normal(1, 1, READ, dtype=torch.float32)
    for make in CELLS.values():
        assert Stack(READ, (SIZE, 5), cell=make)(x)[0].shape == (1, 1, 5)


@pytest.mark.parametrize(
    "make",
    leading(
        [
            partial(RWKV4, 3, 8),
            partial(Retention, 3, 8),
            partial(MLSTM, 3, 8),
            partial(SLSTM, 3, 8, forget_bias=8.0),
        ]
    ),
    ids=["rwkv4", "retention", "mlstm", "slstm"],
)
def test_cells_of_bfloat16_count_beyond_256(make: Make) -> None:
    torch.manual_seed(1)
    cell = make().bfloat16()
    x = torch.zeros(2, 1, 3, dtype=torch.bfloat16)
    counts = []
    for each in (cell, copy.deepcopy(cell).float()):
        x = x.to(next(each.parameters()).dtype)
        state = each.start(x[:, 0])
        with torch.no_grad():
            for _ in range(400):
                y, state = each(x, state)
        assert y.dtype == x.dtype
        counts.append(state[2:])
    near(*counts, 3e-3)  # energies are of bfloat16


def test_rwkv7_starts_with_features_that_forget_after_761_to_6_steps_whatever_it_reads() -> None:
    x = normal(2, 5, READ)
    cell = RWKV7(READ, 8).double()
    asked, _, _ = cell.read(x, cell.extra(x), None)
    assert isinstance(asked, Corrected)
    half_lives = math.log(2) / -asked.decay.flatten(2)
    for feature, energy in ((0, -6.5), (-1, -1.5)):  # the decay is exp(-e^(-1/2) sigmoid(energy))
        expected = math.log(2) * math.exp(0.5) * (1 + math.exp(-energy))
        close(half_lives[..., feature], torch.full((2, 5), expected, dtype=torch.float64))
