"""G1: the measured reach is the derivative of the last state by an earlier one."""

import inspect
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.diagnose.models import Batch, Linear, Reader, ragged
from tests.slow import leading
from weft import rooms
from weft.diagnose.jacobian import flat, pull_back, unflattened
from weft.diagnose.reach import (
    STEEPEST,
    bound,
    measured_reach,
    reach,
    reach_at,
    scalar_reach,
    seen,
    slopes,
    verdict,
    worst,
)
from weft.diagnose.recorded import places, trace, watch
from weft.errors import ConfigError
from weft.models import Generator
from weft.nn import cells
from weft.nn.cells.block import Block
from weft.nn.cells.cell import Cell
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.cells.lru import LRU
from weft.nn.cells.lstm import LSTM
from weft.nn.cells.retention import Retention
from weft.nn.cells.s4d import S4D
from weft.nn.cells.sru import SRU
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.recurrent import Stack
from weft.tasks.seq2seq.encoding import collate_pairs

STEP = 1e-6


def by_differences(cell: Cell, x: Tensor, t: int) -> float:
    """‖∂h_T/∂h_t‖₂ of one row x [T, D] by central differences of h after step t."""
    with torch.no_grad():
        state = cell.start(x[None, 0])
        for row in x[: t + 1]:
            state = cell.step(row[None], state)[1]

        def last(moved: Tensor) -> np.ndarray:
            inner = (moved, *state[1:])
            for row in x[t + 1 :]:
                inner = cell.step(row[None], inner)[1]
            return cell.shown(inner)[0].numpy()

        columns = []
        for unit in range(state[0].shape[1]):
            move = torch.zeros_like(state[0])
            move[0, unit] = STEP
            columns.append((last(state[0] + move) - last(state[0] - move)) / (2 * STEP))
    return float(np.linalg.svd(np.stack(columns, 1), compute_uv=False)[0])


@pytest.mark.parametrize("kind", [Elman, LSTM, GRU, Linear])
def test_reach_is_the_finite_difference_for_every_step_layer_and_direction(kind: type[Cell]) -> None:
    torch.manual_seed(3)
    model = Reader(Stack(2, (5, 3), cell=kind, bidirectional=True)).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    batch = ragged(3, 7, 2)
    with torch.no_grad(), watch(model) as runs:
        model.loss(batch)
    found = reach(model, batch)
    assert [(one.place.layer, one.place.backward) for one in found] == [
        (0, False),
        (0, True),
        (1, False),
        (1, True),
    ]
    for run, one in zip(runs, found, strict=True):
        for row, length in enumerate(batch.mask.sum(1).tolist()):
            read = run.calls[0].x[row, :length]
            expected = [by_differences(run.place.cell, read, t) for t in range(length)]
            expected = expected[::-1] if one.place.backward else expected
            assert one.norms[row, :length].tolist() == pytest.approx(expected, rel=1e-6, abs=1e-9)
            assert one.norms[row, length:].isnan().all()


def test_the_reach_of_an_sru_is_that_of_c_the_product_of_its_forget_gates() -> None:
    torch.manual_seed(3)
    model = Reader(Stack(2, (5,), cell=SRU)).double()
    torch.nn.init.normal_(model.stack.forwards[0].weight_x, std=0.7)
    batch = ragged(3, 7, 2)
    (run,), (one,) = seen(model, batch), reach(model, batch)
    energies, _ = run.place.cell._energies(run.calls[0].x)
    f = energies[..., 5:10].detach().sigmoid()
    for row, length in enumerate(batch.mask.sum(1).tolist()):
        expected = [float(f[row, t + 1 : length].prod(0).max()) for t in range(length)]
        assert one.norms[row, :length].tolist() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("around", [False, True])
def test_the_reach_of_an_lru_is_the_power_of_its_largest_eigenvalue(around: bool) -> None:
    torch.manual_seed(3)
    cell = partial(Block, cell=LRU) if around else LRU
    model = Reader(Stack(2, (5,), cell=cell)).double()
    (one,) = reach(model, ragged(3, 7, 2))
    (nu,) = (each.detach() for name, each in model.named_parameters() if name.endswith("nu"))
    largest = float(nu.exp().min())
    for row, length in enumerate(one.mask.sum(1).tolist()):
        expected = [np.exp(-largest * (length - 1 - t)) for t in range(length)]
        assert one.norms[row, :length].tolist() == pytest.approx(expected, rel=1e-10)


def test_the_reach_of_retention_is_the_power_of_its_slowest_decay() -> None:
    model = Reader(Stack(2, (6,), cell=partial(Retention, num_heads=2))).double()
    (one,) = reach(model, ragged(3, 7, 2))
    slowest = 1 - 2.0**-6  # of the second head
    for row, length in enumerate(one.mask.sum(1).tolist()):
        expected = [slowest ** (length - 1 - t) for t in range(length)]
        assert one.norms[row, :length].tolist() == pytest.approx(expected, rel=1e-10)


def test_of_a_large_state_a_sample_is_followed() -> None:
    torch.manual_seed(3)
    model = Reader(Stack(2, (37,), cell=S4D)).double()  # 2,368 numbers
    (one,) = reach(model, ragged(3, 7, 2))
    cell = model.stack.forwards[0]
    slowest = -float((cell.log_step.exp() * cell.log_decay.exp()).detach().min())
    for row, length in enumerate(one.mask.sum(1).tolist()):
        bound = np.exp(slowest * (length - 1 - np.arange(length)))
        norms = one.norms[row, :length].numpy()
        assert (norms <= bound + 1e-12).all() and (norms > 0.5 * bound).all()


def test_a_linear_network_reaches_as_the_powers_of_its_weight() -> None:
    for scale in (0.5, 1.0, 1.25):
        model = Reader(Stack(3, (7,), cell=Linear)).double()
        with torch.no_grad():
            torch.nn.init.orthogonal_(model.stack.forwards[0].weight_h).mul_(scale)
        (one,) = reach(model, ragged(5, 11, 3))
        for row, length in enumerate(one.mask.sum(1).tolist()):
            expected = scale ** np.arange(length - 1, -1, -1.0)
            np.testing.assert_allclose(one.norms[row, :length].numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("every", leading([False, True]))
def test_a_user_s_cell_and_every_cell_of_the_room_have_a_reach(every: bool) -> None:
    for name, kind in rooms.parts(cells, Cell).items():
        if not every and name not in ("lstm", "mlstm", "rwkv7_layers", "stepwise", "zoneout"):
            continue
        torch.manual_seed(1)
        narrow = {"inner": 7} if name == "projected" else {}  # the default 1,024 units take minutes
        narrow |= {"num_heads": 1} if "num_heads" in inspect.signature(kind).parameters else {}
        model = Reader(Stack(3, (5,), cell=partial(kind, **narrow))).double()
        found = reach(model, ragged(2, 5, 3))
        assert len(found) == len(places(model))  # one, or the layers inside
        for one in found:
            assert one.norms[0, 0] == 1 and one.norms[1, -1] == pytest.approx(1, abs=1e-12), name
            assert one.norms[one.mask].isfinite().all(), name


def test_one_step_reaches_itself() -> None:
    model = Reader(Stack(2, (3,), cell=GRU)).double()
    (one,) = reach(model, Batch(torch.ones(2, 1, 2).double(), torch.ones(2, 1) > 0))
    assert one.norms.tolist() == [[1.0], [1.0]]


def test_lags_are_entries_of_the_whole() -> None:
    model = Reader(Stack(2, (3,), cell=LSTM)).double()
    batch = Batch(ragged(3, 13, 2).x, torch.ones(3, 13) > 0)
    (run,) = seen(model, batch)
    whole = measured_reach(trace(run)).norms
    found = reach_at(trace(run, last=6), lags=(1, 2, 5, 10))
    assert list(found) == [1, 2, 5]
    for lag, norm in found.items():
        assert torch.allclose(norm, whole[:, 12 - lag], rtol=1e-12)


@pytest.mark.parametrize("enters", ["late", "input", "both"])
def test_a_decoder_with_input_feeding_is_seen_with_its_rows_of_different_length(enters: str) -> None:
    torch.manual_seed(5)
    embed = Tokens(11, 5)
    encoder = RecurrentEncoder(5, sizes=(3,), bidirectional=True)
    decoder = RecurrentDecoder(5, encoder, sizes=(7,), enters=enters, input_feeding=enters != "late")
    model = Generator(embed, decoder, Categorical(decoder.size, 11), encoder=encoder).double()
    batch = collate_pairs([[5, 6, 7], [8]], [[9, 10, 4, 5], [7]])
    found = {one.place.name: one for one in reach(model, batch)}
    stacks = ("decoder.stack.forwards.0", "encoder.stack.forwards.0", "encoder.stack.backwards.0")
    assert set(found) == set(stacks)
    written = found["decoder.stack.forwards.0"]
    assert written.norms.shape == (2, 5)
    alone = {one.place.name: one for one in reach(model, collate_pairs([[5, 6, 7]], [[9, 10, 4, 5]]))}
    assert torch.allclose(written.norms[0], alone["decoder.stack.forwards.0"].norms[0], rtol=1e-9)


def test_measuring_leaves_the_model_as_it_was() -> None:
    model = Reader(Stack(2, (3,), cell=LSTM, dropout=0.5)).double().train()
    model.stack.dropout.eval()  # parameters frozen by the user stay frozen
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.random.get_rng_state()
    reach(model, ragged(2, 5, 2))
    assert model.training and not model.stack.dropout.training
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert "step" not in vars(model.stack.forwards[0]) and not model.stack.forwards[0]._forward_hooks


def test_pull_back_gives_rows_of_torch_s_own_jacobian() -> None:
    torch.manual_seed(2)
    cell = LSTM(2, 3).double()
    x, state = torch.randn(1, 2).double(), tuple(torch.randn(1, 3).double() for _ in range(2))
    whole = torch.func.jacrev(lambda numbers: flat(cell.step(x, unflattened(numbers, state))[1]))(flat(state))
    found = pull_back(cell, x, state, torch.eye(6).double()[None])
    assert torch.allclose(found[0], whole[0, :, 0], atol=1e-12)


def test_places_know_layer_and_direction() -> None:
    stack = Stack(2, (3, 5), bidirectional=True)
    assert [(one.name, one.layer, one.backward) for one in places(stack)] == [
        ("forwards.0", 0, False),
        ("forwards.1", 1, False),
        ("backwards.0", 0, True),
        ("backwards.1", 1, True),
    ]


ROUNDING = 1 + 1e-10


@pytest.mark.slow
def test_the_bound_is_never_below_the_measured_norm_over_200_random_networks() -> None:
    for seed in range(200):
        torch.manual_seed(seed)
        kind = ("tanh", "relu", "modrelu")[seed % 3]
        stack = Stack(2, (5,), cell=lambda i, o, kind=kind: Elman(i, o, activation=kind))
        model = Reader(stack).double()
        torch.nn.init.normal_(stack.forwards[0].weight_h, std=0.1 + seed / 100)
        steps = trace(seen(model, ragged(3, 7, 2, seed=seed))[0])
        norms, limits = measured_reach(steps).norms, bound(steps)
        real = steps.mask
        assert (norms[real] <= limits.tight[real] * ROUNDING).all()
        assert (limits.tight[real] <= limits.coarse[real] * ROUNDING).all()
        assert limits.tight[~real].isnan().all()


def test_the_coarse_bound_is_a_power_and_the_tight_one_a_product() -> None:
    torch.manual_seed(7)
    model = Reader(Stack(2, (5, 3), cell=Elman, bidirectional=True)).double()
    for run in seen(model, ragged(3, 7, 2)):
        steps = trace(run)
        limits, cell = bound(steps), run.place.cell
        weight = cell.weight_h.detach().numpy()
        longest = np.linalg.svd(weight, compute_uv=False)[0]
        for row, length in enumerate(steps.mask.sum(1).tolist()):
            h, met = np.zeros(len(weight)), []
            for x in run.calls[0].x[row, :length].numpy():
                h = np.tanh(weight @ h + cell.weight_x.detach().numpy() @ x + cell.bias.detach().numpy())
                met.append((1 - h**2).max() * longest)
            tight = np.array([np.prod(met[t + 1 :]) for t in range(length)])
            coarse = longest ** np.arange(length - 1, -1, -1.0)
            way = slice(None, None, -1) if run.place.backward else slice(None)
            np.testing.assert_allclose(limits.tight[row, :length].numpy(), tight[way], rtol=1e-10)
            np.testing.assert_allclose(limits.coarse[row, :length].numpy(), coarse[way], rtol=1e-10)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("tanh", torch.tanh),
        ("sigmoid", torch.sigmoid),
        ("relu", torch.relu),
        ("leaky_relu", lambda z: torch.nn.functional.leaky_relu(z, 0.1)),
        ("elu", torch.nn.functional.elu),
    ],
)
def test_slopes_are_derivatives(name: str, function: object) -> None:
    z = torch.linspace(-2, 2, 12, dtype=torch.float64, requires_grad=True)
    h = function(z)
    (expected,) = torch.autograd.grad(h.sum(), z)
    assert torch.allclose(slopes(name, h.detach()), expected, atol=1e-12)
    assert expected.max() <= STEEPEST[name] + 1e-12


def test_with_one_unit_the_reach_is_the_product_and_the_power_of_the_geometric_mean() -> None:
    met = np.array([0.9, 0.4, 0.7, 0.2, 0.8])
    found = scalar_reach(1.3, torch.from_numpy(met)).numpy()
    for t in range(5):
        assert found[t] == pytest.approx(np.prod(met[t + 1 :] * 1.3), rel=1e-12)
    mean = np.exp(np.log(met[1:]).mean())
    assert found[0] == pytest.approx((mean * 1.3) ** 4, rel=1e-12)


def test_other_cells_have_no_such_bound() -> None:
    (run,) = seen(Reader(Stack(2, (3,), cell=LSTM)).double(), ragged(2, 3, 2))
    with pytest.raises(ConfigError, match=r"stack.forwards.0: "):
        bound(trace(run))
    with pytest.raises(ConfigError, match="swish"):
        slopes("swish", torch.zeros(1))


def test_a_bound_far_beyond_single_precision_is_a_number() -> None:
    model = Reader(Stack(2, (3,), cell=Elman))
    with torch.no_grad():
        model.stack.forwards[0].weight_h.copy_(10 * torch.eye(3))
    batch = ragged(1, 60, 2)
    steps = trace(seen(model, batch._replace(x=batch.x.float()[:, :60]))[0])
    found = bound(steps).coarse[0]
    assert found.isfinite().all() and found[0].item() == pytest.approx(10.0 ** (len(found) - 1), rel=1e-4)


@pytest.mark.parametrize(
    ("measures", "kind"),
    [
        ([{1: 0.5, 10: 0.5**10}], "vanishes"),
        ([{1: 2.0, 10: 2.0**10}], "explodes"),
        ([{1: 1.0, 50: 0.2}], "stable"),
        ([{1: 1.0, 10: 1e-9}, {1: 1.0, 10: 0.9}, {1: 1.0, 10: 0.8}], "stable"),  # vanished only at first
        ([{1: 1.0, 10: 0.9}, {1: float("inf"), 10: float("nan")}], "explodes"),
        ([{1: 1e3, 20: 1e-8}], "explodes"),
        ([{1: 0.001}], "vanishes"),
    ],
)
def test_the_later_measures_decide(measures: list[dict[int, float]], kind: str) -> None:
    assert verdict(measures).kind == kind


def test_the_sentence_says_where_and_what_to_do() -> None:
    found = verdict([{1: 0.7, 5: 0.2, 10: 0.004, 20: 1e-6}], name="layer 1")
    assert found.sentence.startswith(
        "layer 1: the gradient vanishes (reach 0.7 at lag 1, 0.004 at lag 10); if the task"
    )
    assert "there is no verdict" in verdict([]).sentence


def test_of_several_layers_the_exploding_one_comes_first() -> None:
    found = {
        "a": verdict([{1: 1.0}], name="a"),
        "b": verdict([{1: 1e-9}], name="b"),
        "c": verdict([{1: 1e9}], name="c"),
    }
    assert worst(found).sentence.startswith("c: the gradient explodes")
