"""What torch's recurrent operations get on a GPU: cuDNN trains only if told to, from one piece of memory."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import normal
from weft.nn.kernels.cells.layer import one_step, recurrent


class OnGpu(Tensor):
    """A tensor of the CPU that says it is on a GPU."""

    is_cuda = True  # type: ignore[assignment]


def given(*arguments: Any) -> tuple[Any, ...]:
    return arguments


def weights(*, learns: bool) -> list[Tensor]:
    """Two matrices, two biases and a projection: 3 units, 2 inputs, 1 output."""
    shapes = (12, 2), (12, 1), (12,), (12,), (1, 3)
    return [nn.Parameter(normal(*shape).float(), requires_grad=learns) for shape in shapes]


def test_a_gpu_is_told_to_train_only_where_gradients_are_wanted() -> None:
    x, state = normal(4, 5, 2).float(), (torch.zeros(1, 4, 1), torch.zeros(1, 4, 3))
    on_gpu = x.as_subclass(OnGpu)
    assert recurrent(given, on_gpu, state, weights(learns=True))[6] is True
    assert recurrent(given, on_gpu, state, weights(learns=False))[6] is False
    assert recurrent(given, on_gpu.clone().requires_grad_(), state, weights(learns=False))[6] is True
    with torch.no_grad():
        assert recurrent(given, on_gpu, state, weights(learns=True))[6] is False
    assert recurrent(given, x, state, weights(learns=True))[6] is False  # a CPU needs no telling


def test_a_gpu_gets_its_weights_in_one_piece_matrices_first() -> None:
    whole = weights(learns=True)
    x = normal(4, 5, 2).float().as_subclass(OnGpu)
    _, _, parts, biased, *_ = recurrent(given, x, (torch.zeros(1, 4, 1), torch.zeros(1, 4, 3)), whole)
    assert biased is True
    assert all(torch.equal(part, one) for part, one in zip(parts, whole, strict=True))
    assert len({part.untyped_storage().data_ptr() for part in parts}) == 1
    assert [part.storage_offset() for part in parts] == [0, 24, 39, 51, 36]
    torch.stack([part.sum() for part in parts]).sum().backward()
    assert all(one.grad is not None and bool((one.grad == 1).all()) for one in whole)


def test_states_of_a_gpu_lie_in_one_piece() -> None:
    state = torch.zeros(1, 3, 4).transpose(1, 2)
    assert not state.is_contiguous()
    x = normal(4, 5, 2).float().as_subclass(OnGpu)
    assert recurrent(given, x, (state,), weights(learns=False)[:2])[1].is_contiguous()


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("name", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_one_step_by_a_cell_is_that_of_the_layer(name: str, biased: bool) -> None:
    gates = {"lstm": 4, "gru": 3}.get(name, 1)
    shapes = [(gates * 3, 2), (gates * 3, 3), *([(gates * 3,)] * 2 if biased else [])]
    parts = [normal(*shape, seed=seed).requires_grad_() for seed, shape in enumerate(shapes)]
    x = normal(5, 1, 2, seed=7).requires_grad_()
    state = [normal(1, 5, 3, seed=8 + k) for k in range(1 + (name == "lstm"))]
    function, found = getattr(torch, name), []
    for run in (recurrent, one_step):
        results = run(function, x, state, parts)
        total = sum(result.sin().sum() for result in results)
        found.append([*results, *torch.autograd.grad(total, [x, *parts])])
    torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-12)


def test_a_gpu_takes_one_step_by_a_cell() -> None:
    x, state = normal(4, 1, 2).float().as_subclass(OnGpu), (torch.zeros(1, 4, 3),) * 2
    whole = [normal(12, 2).float(), normal(12, 3).float(), normal(12).float(), normal(12).float()]
    y, h, c = recurrent(torch.lstm, x, state, whole)
    assert (y.shape, h.shape, c.shape) == ((4, 1, 3), (1, 4, 3), (1, 4, 3))
    assert recurrent(given, x, (state[0], state[1]), weights(learns=False))[2]  # with a projection by cuDNN
