"""One step of a few rows through a drop-in: torch.nn's numbers, and the calls that are left to `forward`."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import weft.nn
from tests.nn.ways import needs_native
from weft.errors import ConfigError, ShapeError
from weft.nn import drop_in
from weft.nn.kernels import choice

pytestmark = [needs_native, pytest.mark.usefixtures("unforced")]
KINDS: dict[str, dict[str, Any]] = {"LSTM": {}, "GRU": {}, "RNN": {}, "RNN relu": {"nonlinearity": "relu"}}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cell of every layer that was computed by itself."""
    served: list[str] = []
    real = drop_in.step_compiled

    def single(cell: str, *given: Any) -> tuple[Tensor, ...]:
        served.append(cell)
        return real(cell, *given)

    monkeypatch.setattr(drop_in, "step_compiled", single)
    return served


def pair(kind: str, inputs: int = 13, size: int = 19, **how: Any) -> tuple[nn.RNNBase, nn.RNNBase]:
    torch.manual_seed(11)
    name = kind.split()[0]
    theirs = getattr(nn, name)(inputs, size, **KINDS[kind], **how)
    ours = getattr(weft.nn, name)(inputs, size, **KINDS[kind], **how)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def parts(state: Any) -> tuple[Tensor, ...]:
    return state if isinstance(state, tuple) else (state,)


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [{}, {"num_layers": 3}, {"bias": False}, {"batch_first": True}], ids=str)
@pytest.mark.parametrize("rows", [1, 3])
def test_steps_are_those_of_torch(kind: str, how: dict[str, Any], rows: int, counted: list[str]) -> None:
    theirs, ours = pair(kind, **how)
    before = None
    for _ in range(3):  # from no state, then from the last one
        x = torch.randn((rows, 1, 13) if how.get("batch_first") else (1, rows, 13))
        true, mine = theirs(x, before), ours(x, before)
        for found, wanted in zip((mine[0], *parts(mine[1])), (true[0], *parts(true[1])), strict=True):
            torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
        assert isinstance(mine[1], tuple) == isinstance(true[1], tuple)
        before = true[1]
    assert len(counted) == 3 * ours.num_layers


@torch.no_grad()
def test_columns_of_a_wider_input_and_state_are_read_in_place() -> None:
    theirs, ours = pair("GRU")
    x, h = torch.randn(13, 3, 1).transpose(0, 2), torch.randn(1, 3, 38)[:, :, ::2]
    torch.testing.assert_close(ours(x, h), theirs(x, h.contiguous()), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_outputs_and_states_share_no_memory(counted: list[str]) -> None:
    for kind in KINDS:
        theirs, ours = pair(kind)
        x, before = torch.randn(1, 2, 13), theirs(torch.randn(1, 2, 13))[1]
        old = [part.clone() for part in parts(before)]
        y, after = ours(x, before)
        y.zero_()
        torch.testing.assert_close(after, theirs(x, before)[1], atol=1e-5, rtol=1e-5)
        for part in parts(after):
            part.zero_()
        for part, was in zip(parts(before), old, strict=True):
            assert torch.equal(part, was)
    assert counted == ["lstm", "gru", "elman", "relu"]


@torch.no_grad()
def test_weights_that_were_changed_without_torch_s_count_are_read() -> None:
    theirs, ours = pair("GRU")
    x = torch.randn(1, 1, 13)
    ours(x)
    for module in (theirs, ours):
        for parameter in module.parameters():
            parameter.data.mul_(0.5)
    torch.testing.assert_close(ours(x)[0], theirs(x)[0], atol=1e-5, rtol=1e-5)


def test_other_calls_are_left_to_forward(counted: list[str]) -> None:
    x, (theirs, ours) = torch.randn(1, 1, 13), pair("GRU")
    ours(x)[0].sum().backward()
    with torch.no_grad():
        ours(torch.randn(2, 1, 13)), ours(torch.randn(1, 5, 13)), ours(x[0])
        pair("GRU", bidirectional=True)[1](x)
        weft.nn.GRU(13, 19, num_layers=2, residual=True)(x)
        with torch.autocast("cpu", torch.bfloat16):
            ours(x)
        for way in ("torch", "steps"):
            with choice.use(cells=way):  # type: ignore[arg-type]
                ours(x)
        ours.double()(x.double())
        ours.float()
        other = {name: torch.zeros_like(weight) for name, weight in ours.named_parameters()}
        assert torch.equal(torch.func.functional_call(ours, other, (x,))[0], torch.zeros(1, 1, 19))
        counted.clear()
        nn.utils.parametrizations.weight_norm(ours, "weight_hh_l0")
        nn.utils.parametrizations.weight_norm(theirs, "weight_hh_l0")
        torch.testing.assert_close(ours(x)[0], theirs(x)[0], atol=1e-5, rtol=1e-5)
    assert counted == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [{}, {"num_layers": 3}, {"bias": False}, {"batch_first": True}], ids=str)
def test_gradients_of_a_step_are_those_of_torch(kind: str, how: dict[str, Any]) -> None:
    theirs, ours = pair(kind, **how)
    states = [torch.randn(how.get("num_layers", 1), 1, 19) for _ in range(2 if kind == "LSTM" else 1)]
    found: list[list[Tensor]] = []
    for module in (theirs, ours):
        x = torch.linspace(-1, 1, 13).view(1, 1, 13).requires_grad_()
        before = [state.clone().requires_grad_() for state in states]
        y, after = module(x, tuple(before) if kind == "LSTM" else before[0])
        ends = [y, *parts(after)]
        total = sum((end * torch.linspace(1, 2, end.numel()).view_as(end)).sum() for end in ends)
        found.append([*ends, *torch.autograd.grad(total, [x, *before, *module.parameters()])])
    for mine, true in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(mine, true, atol=1e-5, rtol=1e-5)


def test_a_trained_step_reads_changed_weights_and_may_be_changed_in_place() -> None:
    for kind in KINDS:
        theirs, ours = pair(kind)
        x = torch.randn(1, 1, 13)
        ours(x)[0].sum().backward()
        for module in (theirs, ours):
            for parameter in module.parameters():
                parameter.data.mul_(0.5)
        y, after = ours(x)
        torch.testing.assert_close(y, theirs(x)[0], atol=1e-5, rtol=1e-5)
        y.mul_(0)  # neither the state nor the backward pass may read it
        true = theirs(x)[1]
        for mine, wanted in zip(parts(after), parts(true), strict=True):
            torch.testing.assert_close(mine, wanted, atol=1e-5, rtol=1e-5)
        sum(part.sum() for part in parts(after)).backward()


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_one_missing_number_of_the_input_is_refused(kind: str, grad: bool) -> None:
    _, ours = pair(kind, num_layers=1 if kind == "LSTM" else 2)
    x = torch.randn(1, 1, 13).index_fill(2, torch.tensor([5]), torch.nan)
    with torch.set_grad_enabled(grad), pytest.raises(ConfigError, match="row 0 at step 0"):
        ours(x)
    ours.nan = "pass"  # type: ignore[assignment]
    assert ours(x)[0].isnan().all()


@pytest.mark.parametrize("grad", [False, True])
def test_wrong_calls_are_refused_as_by_forward(grad: bool) -> None:
    with torch.set_grad_enabled(grad):
        refuse_wrong_calls()


def refuse_wrong_calls() -> None:
    _, ours = pair("LSTM")
    x, h = torch.randn(1, 2, 13), torch.zeros(1, 2, 19)
    with pytest.raises(ShapeError, match="Expected 13, got 12"):
        ours(x[..., 1:])
    with pytest.raises(ShapeError, match="hidden"):
        ours(x, (h, h[:, :1]))
    with pytest.raises(ShapeError, match="state"):
        ours(x, h)
    with pytest.raises(ConfigError, match="dtype"):
        ours(x.double())
    with pytest.raises(ConfigError, match="row 1 at step 0"):
        ours(x.index_fill(1, torch.tensor([1]), torch.nan))
    ours.nan = "pass"  # type: ignore[assignment]
    y, _ = ours(x.index_fill(1, torch.tensor([1]), torch.nan))
    assert y[0].isnan().all(1).tolist() == [False, True]
