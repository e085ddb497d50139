"""weft.nn.RNN, LSTM, GRU and their cells have torch.nn's numbers, gradients and state_dicts.

The reference is torch.nn, also with torch's own list of module cases; row by row if torch has no such input.
"""

import copy
import inspect
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import weft
from tests.laws.members import close, normal
from tests.nn.ways import weighed
from tests.slow import leading
from weft import tree
from weft.errors import WeftError
from weft.nn import recurrent

KINDS = {
    "RNN": {},
    "RNN-relu": {"nonlinearity": "relu"},
    "LSTM": {},
    "LSTM-projected": {"proj_size": 3},
    "GRU": {},
}
READ, SIZE, ROWS, STEPS = 3, 5, 7, 11
LENGTHS = [2, 11, 1, 7, 7, 3, 10]

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
every_kind = pytest.mark.parametrize("kind", KINDS)


def pair(kind: str, dtype: torch.dtype = torch.float64, **settings: Any) -> tuple[nn.Module, nn.Module]:
    """torch's module, and weft's with the same weights."""
    name = kind.partition("-")[0]
    theirs = getattr(nn, name)(READ, SIZE, dtype=dtype, **KINDS[kind], **settings)
    ours = getattr(weft.nn, name)(READ, SIZE, dtype=dtype, **KINDS[kind], **settings)
    assert str(ours.load_state_dict(theirs.state_dict(), strict=True)) == "<All keys matched successfully>"
    return theirs, ours


def start(module: nn.RNNBase, *rows: int, dtype: torch.dtype = torch.float64) -> Any:
    count = module.num_layers * (1 + module.bidirectional)
    h = normal(count, *rows, module.proj_size or SIZE, seed=8, dtype=dtype)
    return (h, normal(count, *rows, SIZE, seed=9, dtype=dtype)) if module.mode == "LSTM" else h


def leaves(value: Any) -> list[Tensor]:
    parts = [value] if isinstance(value, Tensor | PackedSequence) else list(value)
    return [
        leaf
        for part in parts
        for leaf in ([part.data] if isinstance(part, PackedSequence) else tree.leaves(part))
    ]


def outcome(module: nn.Module, x: Tensor, given: Any, hx: Any) -> list[Tensor]:
    """Outputs, final states, and the gradients of a random combination of them by x, hx and all weights."""
    x = x.clone().requires_grad_()
    hx = None if hx is None else tree.tree_map(lambda leaf: leaf.clone().requires_grad_(), hx)
    ends = leaves(module(given(x), hx))
    total = weighed(ends)
    wanted = [x, *tree.leaves(hx), *module.parameters()]
    return [*ends, *torch.autograd.grad(total, wanted)]


def packed(first: bool, lengths: list[int], sorted_: bool = False) -> Any:
    return lambda x: pack_padded_sequence(x, torch.tensor(lengths), batch_first=first, enforce_sorted=sorted_)


def same(theirs: list[Tensor], ours: list[Tensor], dtype: torch.dtype = torch.float64) -> None:
    # Through the compiled cells, whose exponential is a polynomial, a gradient was 1.2e-5 off.
    close(tuple(ours), tuple(theirs), 1e-10 if dtype == torch.float64 else 3e-5)


@every_kind
@pytest.mark.parametrize("dtype", leading([torch.float64, torch.float32]))
@pytest.mark.parametrize(("layers", "bidirectional"), leading([(3, True), (1, False), (1, True), (3, False)]))
def test_same_numbers_and_gradients(kind: str, dtype: torch.dtype, bidirectional: bool, layers: int) -> None:
    for bias, first, stated in ((True, True, True), (True, False, False), (False, False, True)):
        settings = {"num_layers": layers, "bidirectional": bidirectional, "bias": bias, "batch_first": first}
        theirs, ours = pair(kind, dtype, **settings)
        x = normal(ROWS, STEPS, READ, dtype=dtype)
        x = x if first else x.transpose(0, 1)
        hx = start(theirs, ROWS, dtype=dtype) if stated else None
        lengths = sorted(LENGTHS, reverse=True)
        for given in (lambda x: x, packed(first, LENGTHS), packed(first, lengths, sorted_=True)):
            same(outcome(theirs, x, given, hx), outcome(ours, x, given, hx), dtype)
            with torch.no_grad():
                same(leaves(theirs(given(x), hx)), leaves(ours(given(x), hx)), dtype)
        alone = normal(STEPS, READ, dtype=dtype)
        hx = start(theirs, dtype=dtype) if stated else None
        same(outcome(theirs, alone, lambda x: x, hx), outcome(ours, alone, lambda x: x, hx), dtype)
        one = x[:, :1] if first else x[:1]
        same(outcome(theirs, one, lambda x: x, None), outcome(ours, one, lambda x: x, None), dtype)


@every_kind
@pytest.mark.parametrize("residual", [False, True])
def test_packed_rows_of_very_different_length_shrink_the_batch(
    kind: str, residual: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurrent, "CALL", 0.5)
    called = []
    monkeypatch.setattr(
        "weft.nn.drop_in.run_pieces",
        lambda *inputs: called.append(inputs[4].pieces) or recurrent.run_pieces(*inputs),
    )
    theirs, ours = pair(kind, num_layers=2, bidirectional=True)
    ours.residual = residual
    x = normal(STEPS, ROWS, READ)
    got = outcome(ours, x, packed(False, LENGTHS), start(theirs, ROWS))
    if residual:  # torch does not support these: row by row
        whole, finals = ours(packed(False, LENGTHS)(x), start(theirs, ROWS))
        whole, _ = nn.utils.rnn.pad_packed_sequence(whole)
        for row, length in enumerate(LENGTHS):
            before = tree.tree_map(lambda leaf, row=row: leaf[:, row], start(theirs, ROWS))
            alone, ends = ours(x[:length, row], before)
            close(whole[:length, row], alone)
            close(tree.tree_map(lambda leaf, row=row: leaf[:, row], finals), ends)
    else:
        same(outcome(theirs, x, packed(False, LENGTHS), start(theirs, ROWS)), got)
    assert bool(called) == (residual or "projected" not in kind)
    assert all(len(pieces) > 1 for pieces in called)


@every_kind
def test_state_dicts_go_both_ways_and_the_class_is_torchs_own(kind: str) -> None:
    theirs, ours = pair(kind, num_layers=2, bidirectional=True)
    name = kind.partition("-")[0]
    assert isinstance(ours, getattr(nn, name)) and type(ours).__module__.startswith("weft.nn")
    fresh = getattr(nn, name)(
        READ, SIZE, num_layers=2, bidirectional=True, dtype=torch.float64, **KINDS[kind]
    )
    fresh.load_state_dict(ours.state_dict(), strict=True)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert "weight_ih_l1_reverse" in ours.state_dict()
    x = normal(STEPS, ROWS, READ)
    same(leaves(fresh(x)), leaves(copy.deepcopy(ours)(x)))
    torch.manual_seed(3)
    one = getattr(nn, name)(READ, SIZE, **KINDS[kind])
    torch.manual_seed(3)
    other = getattr(weft.nn, name)(READ, SIZE, **KINDS[kind])
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("join", ["mean", "sum"])
def test_a_join_is_the_directions_run_alone(name: str, join: str) -> None:
    ours = getattr(weft.nn, name)(READ, SIZE, 2, bidirectional=True, join=join, dtype=torch.float64)
    assert ours.weight_ih_l1.shape[1] == SIZE
    x = normal(STEPS, ROWS, READ)
    want = x
    for layer in range(2):
        ys = []
        for end in ("", "_reverse"):
            alone = getattr(nn, name)(want.shape[2], SIZE, dtype=torch.float64)
            given = {key: getattr(ours, key.replace("l0", f"l{layer}{end}")) for key in alone.state_dict()}
            alone.load_state_dict(given)
            ys.append(alone(want.flip(0))[0].flip(0) if end else alone(want)[0])
        want = ys[0] + ys[1] if join == "sum" else (ys[0] + ys[1]) / 2
    close(ours(x)[0], want)


def test_dropout_acts_between_layers_and_in_training_only() -> None:
    _, ours = pair("LSTM", num_layers=2, dropout=1.0)
    x, other = normal(STEPS, ROWS, READ), normal(STEPS, ROWS, READ, seed=5)
    close(ours(x)[0], ours(other)[0], 0.0)  # the second layer read only zeros
    assert ours(x)[0].abs().max() > 0
    assert not torch.allclose(ours.eval()(x)[0], ours(other)[0])


@pytest.mark.filterwarnings("ignore::FutureWarning")  # torch.export's own
@pytest.mark.filterwarnings("ignore:The tensor attributes self._flat_weights")  # as torch.nn's
@pytest.mark.parametrize(("name", "operation"), [("RNN", "rnn_tanh.input"), ("LSTM", "lstm.input")])
def test_a_graph_holds_torchs_own_operation(name: str, operation: str) -> None:
    _, ours = pair(name, torch.float32)
    x = normal(STEPS, ROWS, READ, dtype=torch.float32)
    graph = torch.export.export(ours, (x,))
    assert f"aten.{operation}" in str(graph.graph)
    close(graph.module()(x)[0], ours(x)[0], 1e-5)


MODULES = ["RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"]
every_module = pytest.mark.parametrize("name", MODULES)
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


def module_cases(name: str, dtype: torch.dtype, error: bool) -> list[Any]:
    """torch's own cases, from the list of its test suite."""
    pytest.importorskip("expecttest", reason="torch's list of module cases needs expecttest")
    from torch.testing._internal import common_modules

    (info,) = (info for info in common_modules.module_db if info.name == f"nn.{name}")
    more = {} if error or name not in ("RNN", "GRU") else {"with_packed_sequence": True}
    make = info.module_error_inputs_func if error else info.module_inputs_func
    return make(info, device="cpu", dtype=dtype, requires_grad=not error, training=True, **more)


@pytest.mark.slow  # torch's test suite takes long to import
@every_module
@every_dtype
def test_torchs_own_module_cases(name: str, dtype: torch.dtype) -> None:
    cases = module_cases(name, dtype, error=False)
    assert len(cases) >= 2
    for case in cases:
        made, given = case.constructor_input, case.forward_input
        theirs = getattr(nn, name)(*made.args, **made.kwargs).to(dtype)
        ours = getattr(weft.nn, name)(*made.args, **made.kwargs).to(dtype)
        ours.load_state_dict(theirs.state_dict(), strict=True)
        inputs = [leaf for leaf in leaves(given.args) if leaf.requires_grad]
        results = []
        for module in (theirs, ours):
            ends = leaves(module(*given.args, **given.kwargs))
            total = sum(end.square().sum() for end in ends)
            wanted = [*inputs, *module.parameters()]
            results.append([*ends, *torch.autograd.grad(total, wanted, materialize_grads=True)])
        same(*results, dtype)
        if not isinstance(given.args[0], PackedSequence):  # not in torch's reference
            want = case.reference_fn(ours, *given.args, **given.kwargs)
            same(leaves(want), leaves(ours(*given.args, **given.kwargs)), dtype)


@pytest.mark.slow  # torch's test suite takes long to import
@every_module
@every_dtype
def test_torchs_own_error_cases(name: str, dtype: torch.dtype) -> None:
    for case in module_cases(name, dtype, error=True):
        made, given = case.module_error_input.constructor_input, case.module_error_input.forward_input
        with pytest.raises(case.error_type, match=case.error_regex) as caught:
            getattr(weft.nn, name)(*made.args, **made.kwargs)(*given.args, **given.kwargs)
        if case.error_type is not TypeError:  # a wrong Python type is torch's own error
            assert isinstance(caught.value, WeftError)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_help_explains_every_argument_itself_on_two_screens(kind: str) -> None:
    text = inspect.getdoc(getattr(weft.nn, kind)) or ""
    assert len(text.splitlines()) <= 48
    assert "Returns:" in text and "Raises:" in text
    assert "see `" not in text


TORCHS = (
    "input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype"
)


@pytest.mark.parametrize(
    ("name", "torchs"),
    [
        ("LSTM", TORCHS),
        ("GRU", TORCHS),
        ("RNN", TORCHS.replace("bias,", "nonlinearity, bias,")),
        (
            "MultiheadAttention",
            "embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, "
            "batch_first, device, dtype",
        ),
    ],
)
def test_help_shows_every_argument_in_torchs_order(name: str, torchs: str) -> None:
    kind = getattr(weft.nn, name)
    shown = inspect.signature(kind).parameters
    own = ["join", "residual", "nan"] if name != "MultiheadAttention" else []
    assert list(shown) == [*torchs.split(", "), *own]
    assert all(shown[one].kind is inspect.Parameter.KEYWORD_ONLY for one in own)
    assert all(re.search(rf"\b{one}\b", kind.__doc__) for one in shown)
