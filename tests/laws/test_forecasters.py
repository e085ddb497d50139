"""The laws of a forecaster, for every file of weft/nn/forecasters."""

import pytest
import torch

from tests.laws.members import close, found, gradcheck, normal, ready
from weft.nn import forecasters
from weft.nn.cells.gru import GRU
from weft.nn.cells.jordan import Jordan
from weft.nn.cells.lstm import LSTM
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.forecasters.forecaster import Forecaster, Past
from weft.testing.values import more_than_noise

LOOKBACK, HORIZON, KNOWN, ROWS, SERIES, SEEN = 15, 6, 2, 5, 3, 4


def read(size: int) -> RecurrentEncoder:
    return RecurrentEncoder(size, sizes=(5,))


VARIANTS = {
    "linear": [{}, {"trend": 5}],
    "segments": [{"segment": 3, "hidden": 7, "cell": cell, "dropout": 0.0} for cell in (GRU, LSTM)],
    "recurrent": [{"sizes": (7,), "cell": cell} for cell in (LSTM, Jordan)],
    "pair": [{}],
    "patches": [{"patch": 4, "stride": 2, "encoder": read, "dropout": 0.0}],
}
MAKES = {
    f"{name.split('(')[0]}-{n}": (make, variant)
    for name, make in found(forecasters, Forecaster).items()
    for n, variant in enumerate(VARIANTS[name.split("(")[0]])
}
every = pytest.mark.parametrize("name", MAKES)


def test_every_forecaster_is_tried() -> None:
    assert {name.split("-")[0] for name in MAKES} == set(VARIANTS)


def made(name: str) -> Forecaster:
    make, variant = MAKES[name]
    return ready(lambda: make(LOOKBACK, HORIZON, KNOWN, SERIES, SEEN, **variant))


def past() -> Past:
    known = normal(ROWS, LOOKBACK + HORIZON, KNOWN, seed=4)
    seen = normal(ROWS, LOOKBACK, SEEN, seed=6)
    return Past(normal(ROWS, LOOKBACK), known, torch.tensor([0, 2, 1, 1, 0]), seen)


def say(h: torch.Tensor) -> torch.Tensor:
    return h.mean(-1)


@every
def test_a_row_alone_equals_the_row_in_a_batch(name: str) -> None:
    model, all_ = made(name), past()
    h = model(all_, say)
    assert h.shape == (ROWS, HORIZON, model.size)
    for row in range(ROWS):
        close(model(Past(*(part[row : row + 1] for part in all_)), say), h[row : row + 1])


@every
def test_fed_with_its_own_values_it_is_what_it_is_alone(name: str) -> None:
    """Teacher forcing with the model's own predictions changes nothing, in one call or step by step."""
    model, all_ = made(name), past()
    h = model(all_, say)
    own = say(h).detach()
    close(model(all_, say, own), h)
    close(model(all_, say, own, torch.ones_like(own, dtype=torch.bool)), h)


@every
def test_the_future_is_not_seen_before_its_time(name: str) -> None:
    """True values of step t and later do not affect the features of steps up to t."""
    model, all_ = made(name), past()
    future = normal(ROWS, HORIZON, seed=9)
    h = model(all_, say, future)
    later = future.clone()
    later[:, 3:] += 50
    torch.testing.assert_close(model(all_, say, later)[:, :4], h[:, :4], rtol=0, atol=0)


@every
def test_every_channel_is_seen_at_some_time_of_its_past(name: str) -> None:
    model, all_ = made(name), past()
    seen = all_.seen.clone().requires_grad_()
    (slope,) = torch.autograd.grad(model(all_._replace(seen=seen), say).square().sum(), seen)
    assert more_than_noise(slope.abs().sum(1), slope.abs().max()).all()


@every
def test_gradients_reach_every_parameter(name: str) -> None:
    model, all_ = made(name), past()
    gradcheck(model, lambda x: model(all_._replace(values=x), say, normal(ROWS, HORIZON)), all_.values)
    model(all_, say).sum().backward()
    unreached = [key for key, one in model.named_parameters() if one.grad is None]
    assert unreached == []
