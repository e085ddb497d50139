"""Heads of real numbers, and Jordan's network as a forecaster, are their formulas."""

import math
from functools import partial
from statistics import NormalDist

import numpy as np
import pytest
import torch

from tests.laws.members import close, normal, ready
from weft import masks
from weft.errors import ConfigError
from weft.nn.cells.jordan import Jordan
from weft.nn.cells.stepwise import Stepwise
from weft.nn.forecasters.forecaster import Past, RecurrentForecaster
from weft.nn.heads.head import Normal, Point, Quantile, Student

H, TARGET = normal(3, 7, 5), normal(3, 7, seed=2)
MASK = masks.from_lengths(torch.tensor([7, 1, 4]), 7)
LEVELS = torch.tensor([0.1, 0.5, 0.83], dtype=torch.float64)


def test_a_gaussian_is_torchs() -> None:
    head = ready(lambda: Normal(5))
    mean, std = head(H)
    want = -torch.distributions.Normal(mean, std).log_prob(TARGET)[MASK].sum()
    torch.testing.assert_close(head.loss(H, TARGET, MASK).total, want, rtol=1e-10, atol=1e-10)
    below = torch.distributions.Normal(mean[..., None], std[..., None]).cdf(head.quantiles(H, LEVELS))
    torch.testing.assert_close(below, LEVELS.expand_as(below), rtol=1e-9, atol=1e-9)


def test_a_student_is_torchs_and_its_quantiles_are_those_of_many_draws() -> None:
    head = ready(lambda: Student(5))
    freedom, mean, scale = head(H)
    likeness = torch.distributions.StudentT(freedom, mean, scale)
    want = -likeness.log_prob(TARGET)[MASK].sum()
    torch.testing.assert_close(head.loss(H, TARGET, MASK).total, want, rtol=1e-10, atol=1e-10)
    # With two degrees of freedom the distribution function has a closed form; softplus(-inf) is 0.
    with torch.no_grad():
        head.weight.bias[2] = -1e3
        freedom, mean, scale = head(H)
    q = (head.quantiles(H, LEVELS) - mean[..., None]) / scale[..., None]
    torch.testing.assert_close(0.5 + q / (2 * (2 + q**2).sqrt()), LEVELS.expand_as(q), rtol=1e-7, atol=1e-7)


def test_quantiles_never_cross_and_the_pinball_loss_is_its_formula() -> None:
    head = ready(lambda: Quantile(5, levels=(0.1, 0.5, 0.9)))
    q = head(H).detach()
    assert bool((q.diff(dim=-1) > 0).all())
    total = 0.0
    for row, column in zip(*np.nonzero(MASK.numpy()), strict=True):
        for k, level in enumerate((0.1, 0.5, 0.9)):
            error = float(TARGET[row, column] - q[row, column, k])
            total += 2 / 3 * max(level * error, (level - 1) * error)
    assert float(head.loss(H, TARGET, MASK).total.detach()) == pytest.approx(total, abs=1e-10)
    levels = [0.1, 0.17, 0.5, 0.83, 0.9]
    between = head.quantiles(H, torch.tensor(levels, dtype=torch.float64)).detach().numpy()
    for place in np.ndindex(*between.shape[:2]):
        wanted = np.interp(levels, [0.1, 0.5, 0.9], q[place].numpy())
        np.testing.assert_allclose(between[place], wanted, rtol=1e-10, atol=1e-10)
    with pytest.raises(ConfigError, match=r"expected 0\.1 to 0\.9, which this model learnt, got"):
        head.quantiles(H, torch.tensor([0.5, 0.95], dtype=torch.float64))


@pytest.mark.parametrize("error", ["squared", "absolute", "huber"])
def test_point_errors_are_their_formulas(error: str) -> None:
    head = ready(lambda: Point(5, error=error))
    e = (head(H) - TARGET)[MASK].detach().numpy()
    small = np.abs(e) < 1
    wants = {
        "squared": (e**2).sum(),
        "absolute": np.abs(e).sum(),
        "huber": np.where(small, e**2 / 2, np.abs(e) - 0.5).sum(),
    }
    assert float(head.loss(H, TARGET, MASK).total.detach()) == pytest.approx(wants[error], abs=1e-10)
    with pytest.raises(ConfigError, match="a point forecast has no quantiles"):
        head.quantiles(H, LEVELS)


def test_levels_that_cannot_be_are_refused() -> None:
    for levels in ((0.5, 0.1), (0.0, 0.5), (0.1, 0.9)):
        with pytest.raises(ConfigError, match="levels"):
            Quantile(5, levels=levels)


def test_a_new_head_begins_with_the_quantiles_of_the_standard_normal() -> None:
    head = Quantile(3)
    wanted = [NormalDist().inv_cdf(level) for level in head.levels]
    assert head(torch.zeros(1, 3))[0].tolist() == pytest.approx(wanted, abs=1e-6)


def test_a_mean_of_its_own_has_the_squared_error_beside_the_pinball_loss() -> None:
    """Skewed values: the point prediction moves to their mean, the quantiles stay."""
    torch.manual_seed(3)
    values = torch.distributions.Exponential(1.0).sample((4000,))[:, None]
    h, mask = torch.ones(4000, 1, 2), torch.ones(4000, 1, dtype=torch.bool)
    both, median = Quantile(2, levels=(0.1, 0.5, 0.9), best="mean"), Quantile(2, levels=(0.1, 0.5, 0.9))
    for head in (both, median):
        optimiser = torch.optim.Adam(head.parameters(), 0.05)
        for _ in range(300):
            optimiser.zero_grad()
            loss = head.loss(h, values, mask)
            (loss.total / loss.count).backward()
            optimiser.step()
    assert both.best(h, mask)[0].item() == pytest.approx(1.0, abs=0.05)
    assert median.best(h, mask)[0].item() == pytest.approx(math.log(2), abs=0.05)
    torch.testing.assert_close(both(h)[0], median(h)[0], atol=0.05, rtol=0)


ROWS, LOOKBACK, HORIZON, KNOWN, SIZE, HIDDEN = 3, 4, 5, 2, 7, 11


def test_a_stepwise_forecaster_is_jordans_network_with_true_outputs_in_training_and_its_own_in_use() -> None:
    forecaster = RecurrentForecaster(
        LOOKBACK, HORIZON, KNOWN, sizes=(SIZE,), cell=partial(Stepwise, hidden=HIDDEN, output="identity")
    ).double()
    (stepwise,) = forecaster.stack.forwards
    head = normal(SIZE)
    values, known = normal(ROWS, LOOKBACK, seed=2), normal(ROWS, LOOKBACK + HORIZON, KNOWN, seed=3)
    past = Past(values, known, torch.zeros(ROWS, dtype=torch.long), values.new_zeros(ROWS, LOOKBACK, 0))
    future = normal(ROWS, HORIZON, seed=4)

    jordan = Jordan(KNOWN, 1, hidden=HIDDEN, output="identity").double()
    with torch.no_grad():
        jordan.weight_h.copy_(stepwise.weight_x[:, :1])  # reads o, the previous value
        jordan.weight_x.copy_(stepwise.weight_x[:, 1:])
        jordan.bias.copy_(stepwise.bias)
        jordan.weight_o.copy_(head[None] @ stepwise.weight_o)
        jordan.bias_o.copy_(head[None] @ stepwise.bias_o)
    x, before = known[:, LOOKBACK:], values[:, -1:]
    fed = torch.cat([before, future[:, :-1]], 1)[..., None]

    trained = forecaster(past, lambda h: h @ head, future) @ head
    close(trained[..., None], jordan(x, (before,), fed=fed)[0])
    used = forecaster(past, lambda h: h @ head) @ head
    close(used[..., None], jordan(x, (before,))[0])
