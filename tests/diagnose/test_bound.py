"""G2: the bound of Pascanu, Mikolov & Bengio is an upper bound."""

import numpy as np
import pytest
import torch

from tests.diagnose.models import Reader, ragged
from weft.diagnose.bound import STEEPEST, bound, scalar_reach, slopes
from weft.diagnose.reach import measured_reach, seen
from weft.diagnose.recorded import trace
from weft.errors import ConfigError
from weft.nn.cells.elman import Elman
from weft.nn.cells.lstm import LSTM
from weft.nn.recurrent import Stack

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
