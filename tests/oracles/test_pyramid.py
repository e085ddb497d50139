"""Law 6 for encoders that shorten a sequence: position by position, in NumPy."""

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.laws.members import READ, SIZE, SOURCE_LENGTHS, ready, source
from tests.oracles import recurrent as oracle
from tests.oracles.test_recurrent import of_lstm
from weft.errors import ConfigError
from weft.nn.encoders.pyramid import Pyramid
from weft.nn.encoders.strided import StridedTransformer


def over(step: oracle.Step, xs: np.ndarray, size: int) -> np.ndarray:
    state, hs = (np.zeros(size), np.zeros(size)), []
    for x in xs:
        h, state = step(x, state)
        hs.append(h)
    return np.stack(hs)


def pairs(xs: np.ndarray, factor: int) -> np.ndarray:
    """[h_{ki}; ..; h_{ki+k-1}], zeros after the end."""
    count = -(-len(xs) // factor)
    filled = np.concatenate([xs, np.zeros((count * factor - len(xs), xs.shape[1]))])
    return np.stack([np.concatenate(list(filled[factor * i : factor * (i + 1)])) for i in range(count)])


def test_a_pyramid_is_its_equation() -> None:
    encoder = ready(lambda: Pyramid(READ, sizes=(5, 3, SIZE), factors=(1, 2, 3)))
    x, mask = source()
    memory = encoder(x, mask)
    for row, length in enumerate(SOURCE_LENGTHS):
        want = x[row, :length].numpy()
        for stack, factor in zip(encoder.layers, encoder.factors, strict=True):
            read = pairs(want, factor)
            ahead, back = stack.forwards[0], stack.backwards[0]
            forward = over(of_lstm(ahead), read, ahead.size)
            backward = over(of_lstm(back), read[::-1], back.size)[::-1]
            want = np.concatenate([forward, backward], 1)
        got: Tensor = memory.states[row, : len(want)]
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-10, atol=1e-10)
        assert memory.mask[row].sum() == len(want) == -(-length // encoder.stride)


def test_strided_convolutions_are_their_equation_before_the_transformer() -> None:
    encoder = ready(lambda: StridedTransformer(READ, size=6, num_convolutions=2, num_layers=1, num_heads=2))
    x, mask = source()
    memory = encoder(x, mask)
    for row, length in enumerate(SOURCE_LENGTHS):
        h = x[row, :length].numpy() @ encoder.project.weight.detach().numpy().T
        h = h + encoder.project.bias.detach().numpy()
        for layer in encoder.convolutions:
            weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()  # [out, in, 3]
            filled = np.pad(h, ((1, 2), (0, 0)))
            h = np.stack(
                [
                    np.maximum(np.einsum("oik,ki->o", weight, filled[2 * i : 2 * i + 3]) + bias, 0)
                    for i in range(-(-len(h) // 2))
                ]
            )
        want = encoder.encoder(torch.from_numpy(h)[None], torch.ones(1, len(h), dtype=torch.bool))
        torch.testing.assert_close(memory.states[row, : len(h)], want.states[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("factors", [(2, 2), (1, 0, 2), ()])
def test_factors_that_do_not_fit_are_refused(factors: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="factors"):
        Pyramid(READ, sizes=(5, 3, SIZE), factors=factors)
