"""Filters equal their defining sum."""

import torch

from tests.laws.members import close, normal, ready
from weft.nn.encoders.filters import FilterEncoder


def test_a_filter_is_its_equation() -> None:
    encoder = ready(lambda: FilterEncoder(3, widths=(2, 3), features=5))
    x, mask = normal(1, 7, 3), torch.ones(1, 7, dtype=torch.bool)
    states = encoder(x, mask).states[0].detach()
    padded = torch.cat([torch.zeros(1, 3), x[0], torch.zeros(1, 3)]).double()  # one more at each end
    for number, (width, start) in enumerate([(2, 1), (3, 0)]):  # an even width reads one more to the right
        weight, bias = encoder.layers[0][number].weight.detach(), encoder.layers[0][number].bias.detach()
        for j in range(7):
            seen = padded[j + start : j + start + width]  # [width, 3]
            want = (torch.einsum("fdk,kd->f", weight, seen) + bias).relu()
            close(states[j, 5 * number : 5 * number + 5], want)
