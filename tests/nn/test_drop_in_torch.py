"""torch's own tools with the drop-ins: compile, script, quantisation, fake tensors, migration."""

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

import weft.nn
from tests.laws.members import close, normal
from weft.errors import ConfigError
from weft.nn import GRU, LSTM, RNN, as_torch
from weft.nn.cells.orthogonal import Orthogonal
from weft.nn.cells.unitary import Unitary

every_kind = pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
READ, SIZE, STEPS, ROWS = 3, 5, 7, 2


class Net(nn.Module):
    """A drop-in between two linear layers, as in typical models."""

    def __init__(self, recurrent: nn.Module) -> None:
        super().__init__()
        self.before = nn.Linear(READ, READ)
        self.recurrent = recurrent
        self.after = nn.Linear(SIZE, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.recurrent(self.before(x))[0])


def leaves(output: Any) -> list[Tensor]:
    y, state = output
    return [y, *(state if isinstance(state, tuple) else (state,))]


def compiled(net: Net, x: Tensor, training: bool) -> tuple[tuple[Tensor, ...], list[str]]:
    """Outputs and gradients of a compiled model, and the operations of its graphs."""
    operations: list[str] = []

    def keep(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        operations.extend(str(node.target) for node in graph.graph.nodes if node.op.startswith("call"))
        return graph

    torch._dynamo.reset()
    net.train(training).zero_grad()
    with torch.set_grad_enabled(training):
        y = torch.compile(net, backend=keep)(x)
        if training:
            y.square().sum().backward()
    return (y, *(p.grad for p in net.parameters() if p.grad is not None)), operations


@every_kind
@pytest.mark.parametrize("training", [False, True])
def test_compile_leaves_a_drop_in_eager_as_it_leaves_torchs(kind: str, training: bool) -> None:
    torch.manual_seed(1)
    ours = Net(getattr(weft.nn, kind)(READ, SIZE))
    x = normal(STEPS, ROWS, READ, dtype=torch.float32)
    theirs = as_torch(ours)
    (got, operations), (want, expected) = compiled(ours, x, training), compiled(theirs, x, training)
    close(got, want, 1e-5)
    assert operations == expected and len(operations) <= 2  # at most the linear layers; none of the 7 steps


@every_kind
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_script_takes_torchs_own_module(kind: str) -> None:
    module = getattr(weft.nn, kind)(READ, SIZE, num_layers=2, bidirectional=True)
    net = Net(module)
    net.after = nn.Linear(2 * SIZE, 1)
    x = normal(STEPS, ROWS, READ, dtype=torch.float32)
    want = net(x)
    close(torch.jit.script(copy.deepcopy(net))(x), want, 1e-5)
    with pytest.raises(ConfigError, match="expected residual=False and join='concatenate'"):
        torch.jit.script(Net(getattr(weft.nn, kind)(READ, READ, num_layers=2, residual=True)))


@pytest.mark.parametrize("kind", ["RNNCell", "LSTMCell", "GRUCell"])
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_a_single_step_scripts_too(kind: str) -> None:
    cell, x = getattr(weft.nn, kind)(READ, SIZE), normal(ROWS, READ, dtype=torch.float32)
    close(torch.jit.script(cell)(x), cell(x), 1e-6)
    assert type(as_torch(cell)) is getattr(nn, kind)
    assert all(part.shape == (0, SIZE) for part in _tuple(cell(x[:0])))


def _tuple(state: Any) -> tuple[Tensor, ...]:
    return state if isinstance(state, tuple) else (state,)


@pytest.mark.filterwarnings("ignore:.*deprecated.*")
def test_quantisation_says_that_it_leaves_a_drop_in_and_as_torch_is_quantised() -> None:
    net = Net(weft.nn.LSTM(READ, SIZE))
    quantised = torch.ao.quantization.quantize_dynamic
    with pytest.warns(UserWarning, match=r"weft.nn.LSTM stays in floating point: .* weft.nn.as_torch"):
        left = quantised(net, {nn.LSTM, nn.Linear})
    assert type(left.recurrent) is weft.nn.LSTM
    served = quantised(as_torch(net), {nn.LSTM, nn.Linear})
    assert type(served.recurrent) is torch.ao.nn.quantized.dynamic.LSTM
    x = normal(STEPS, ROWS, READ, dtype=torch.float32)
    close(served(x), net(x), 0.05)  # int8 weights


@every_kind
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("settings", [{}, {"residual": True}, {"join": "sum"}], ids=str)
def test_a_batch_without_rows(kind: str, first: bool, settings: dict[str, Any]) -> None:
    module = getattr(weft.nn, kind)(
        SIZE, SIZE, num_layers=2, batch_first=first, bidirectional="join" in settings, **settings
    )
    x = torch.zeros((0, STEPS, SIZE) if first else (STEPS, 0, SIZE), requires_grad=True)
    y, *finals = leaves(module(x))
    assert y.shape == x.shape and all(final.shape[1] == 0 for final in finals)
    y.sum().backward()
    assert all(not parameter.grad.any() for parameter in module.parameters())


@every_kind
@pytest.mark.parametrize(
    "settings", [{}, {"bidirectional": True}, {"num_layers": 2, "residual": True}], ids=str
)
def test_fake_tensors_go_through(kind: str, settings: dict[str, Any]) -> None:
    size = READ if "residual" in settings else SIZE
    with FakeTensorMode():
        module = getattr(weft.nn, kind)(READ, size, **settings)
        y, *_ = leaves(module(torch.zeros(STEPS, ROWS, READ)))
        assert y.shape == (STEPS, ROWS, size * (1 + module.bidirectional))
        y.sum().backward()


@pytest.mark.parametrize(
    ("rows", "settings"), [(1, {}), (16, {"num_layers": 2}), (64, {"bidirectional": True})]
)
def test_small_lstms_are_trained_by_the_operation_of_torch(rows: int, settings: dict[str, Any]) -> None:
    x = normal(STEPS, rows, READ, dtype=torch.float32)
    theirs, ours = (room.LSTM(READ, 64, **settings)(x)[0] for room in (nn, weft.nn))
    assert ours.grad_fn is not None and ours.grad_fn.name() == theirs.grad_fn.name()
    large = weft.nn.LSTM(READ, 200, **settings)(normal(STEPS, 256, READ, dtype=torch.float32))[0]
    assert large.grad_fn is not None and large.grad_fn.name() != theirs.grad_fn.name()


@every_kind
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_outputs_may_be_changed_in_place_as_those_of_torch(
    kind: str, bidirectional: bool, first: bool
) -> None:
    settings = {"bidirectional": bidirectional, "batch_first": first}
    module = getattr(weft.nn, kind)(READ, SIZE, **settings)
    x = normal(STEPS, ROWS, READ, dtype=torch.float32)

    def gradients(module: nn.Module, *, in_place: bool) -> tuple[Tensor, ...]:
        given = x.clone().requires_grad_()
        y, h, *_ = leaves(module(given))
        y, h = (y.mul_(2.0).add_(1.0), h.mul_(3.0)) if in_place else (2.0 * y + 1.0, 3.0 * h)
        return torch.autograd.grad(y.square().sum() + h.sum(), (given, *module.parameters()))

    if kind == "LSTM" and not bidirectional:  # torch's refuses, and so does ours, whatever its size
        for theirs in (
            getattr(nn, kind)(READ, SIZE, **settings),
            module,
            weft.nn.LSTM(READ, 200, **settings),
        ):
            with pytest.raises(RuntimeError, match="inplace"):
                gradients(theirs, in_place=True)
    else:
        for found, expected in zip(
            gradients(module, in_place=True), gradients(module, in_place=False), strict=True
        ):
            close(found, expected, 1e-5)
    with torch.no_grad():
        y, h, *_ = leaves(module(x))
        before = h.clone()
        y.zero_()
        assert torch.equal(h, before)


@every_kind
def test_a_module_of_torch_becomes_a_drop_in(kind: str) -> None:
    theirs, ours = getattr(nn, kind), getattr(weft.nn, kind)
    x = normal(STEPS, ROWS, READ, dtype=torch.float32)
    module = theirs(READ, SIZE, bidirectional=True)
    want = leaves(module(x))
    other = ours.__new__(ours)
    other.__setstate__(copy.copy(module.__getstate__()))
    module.__class__ = ours
    for one in (module, other, pickle.loads(pickle.dumps(module))):
        close(tuple(leaves(one(x))), tuple(want), 1e-5)
        assert repr(one) == f"{kind}(3, 5, bidirectional=True)"


@pytest.mark.parametrize("kind", [Orthogonal, Unitary])
def test_weights_in_bfloat16_are_served(kind: Any) -> None:
    cell, low = kind(READ, 31), None
    low = copy.deepcopy(cell).bfloat16()
    x = normal(ROWS, STEPS, READ, dtype=torch.float32)
    want, _ = cell(x, cell.start(x))
    y, state = low(x.bfloat16(), low.start(x.bfloat16()))
    assert y.dtype == state[0].dtype == torch.bfloat16
    assert (y.float() - want).norm() < 0.1 * want.norm()  # 8 bits
    y.float().sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.any() for p in low.parameters())
    if kind is Orthogonal:
        turned = low.weight_h.float()
        assert (turned @ turned.T - torch.eye(31)).abs().max() < 0.02


@pytest.fixture
def in_torchs_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"):
        monkeypatch.setattr(torch.nn, name, getattr(weft.nn, name))


@pytest.mark.usefixtures("in_torchs_place")
@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"])
def test_a_drop_in_may_take_the_name_of_torchs_class(name: str) -> None:
    ours, x = getattr(torch.nn, name)(3, 4), torch.randn(5, 2, 3)
    x = x[0] if "Cell" in name else x
    theirs = getattr(torch.nn.modules.rnn, name)(3, 4)
    assert type(theirs) is not type(ours)
    theirs.load_state_dict(ours.state_dict())
    close(ours(x), theirs(x), 1e-6)
    assert type(as_torch(ours)) is type(theirs)


@pytest.mark.parametrize("kind", [RNN, GRU])
def test_a_projection_where_there_is_none_is_refused_in_torchs_words(kind: Any) -> None:
    with pytest.raises(ConfigError, match="proj_size argument is only supported for LSTM, not RNN or GRU"):
        kind(3, 4, proj_size=2)
    assert kind(3, 4, proj_size=0).hidden_size == 4


@pytest.mark.parametrize("kind", [RNN, GRU, LSTM])
@pytest.mark.filterwarnings(
    "ignore:There is a performance drop because we have not yet implemented the batching"
)
def test_gradients_of_each_row_by_vmap_add_up(kind: Any) -> None:
    module = kind(3, 4, num_layers=2, bidirectional=True).double()
    parameters, x = dict(module.named_parameters()), torch.randn(5, 2, 3, dtype=torch.float64)

    def loss(parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(module, parameters, (x,))[0].square().sum()

    each = torch.func.vmap(torch.func.grad(lambda p, x: loss(p, x[:, None])), (None, 1))(parameters, x)
    loss(parameters, x).backward()
    for name, parameter in module.named_parameters():
        torch.testing.assert_close(each[name].sum(0), parameter.grad)
