"""C2 in a task: a forecaster of stepwise cells, which read the previous value, is Jordan's network."""

from functools import partial

import torch

from tests.laws.members import close, normal
from weft.nn.cells.jordan import Jordan
from weft.nn.cells.stepwise import Stepwise
from weft.nn.forecasters.forecaster import Past, RecurrentForecaster

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
