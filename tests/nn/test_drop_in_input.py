"""A drop-in rejects invalid input with one message; whole models that torch.save wrote find its module."""

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import weft.nn as wn
from tests.laws.members import normal
from weft.errors import ConfigError, ShapeError, WeftError
from weft.nn import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell, drop_in_cells, drop_in_torch

READ, SIZE, ROWS, STEPS = 3, 5, 7, 11
X = normal(STEPS, ROWS, READ, dtype=torch.float32)


def h(*shape: int) -> Tensor:
    return torch.zeros(shape)


def pack(lengths: list[int], x: Tensor = X) -> PackedSequence:
    return pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: RNN(READ, 0), ConfigError, r"RNN\(3, 0\): .*greater than zero"),
        (
            lambda: LSTM(READ, SIZE, proj_size=SIZE),
            ConfigError,
            "proj_size has to be smaller than hidden_size",
        ),
        (lambda: RNN(READ, SIZE, nonlinearity="gelu"), ConfigError, "Unknown nonlinearity 'gelu'"),
        (lambda: LSTM(READ, SIZE, 2, dropout=1.5), ConfigError, r"range \[0, 1\]"),
        (lambda: GRU(READ, SIZE, join="product"), ConfigError, "one of concatenate, mean, sum"),
        (lambda: GRU(READ, SIZE, nan="zero"), ConfigError, "one of refuse, pass"),
        (lambda: RNN(4, SIZE)(X), ShapeError, r"\[steps, rows, 4\].*got an input \[11, 7, 3\]"),
        (
            lambda: GRU(4, SIZE)(pack([1] * 7)),
            ShapeError,
            r"rows, 4\].*got 7 rows of up to 1 step, packed as \[7, 3\]",
        ),
        (
            lambda: GRU(READ, SIZE)(X[None]),
            ShapeError,
            r"got 4D instead: expected .*\[steps, rows, 3\].*got an input \[1, 11, 7, 3\]",
        ),
        (lambda: LSTM(READ, SIZE)(X[:0]), ShapeError, r"leave empty sequences out: .*\[0, 7, 3\]"),
        (lambda: LSTM(READ, SIZE)(X, h(1, 7, 5)), ShapeError, r"state .*got 1"),
        (lambda: GRU(READ, SIZE)(X, (h(1, 7, 5),) * 2), ShapeError, "2 tensors"),
        (lambda: GRU(READ, SIZE)(X, [1]), ShapeError, "state h, got an int: .*input"),
        (lambda: LSTM(READ, SIZE)(X, (None, None)), ShapeError, r"state \(h, c\), got None, None: .*input"),
        (
            lambda: GRU(READ, SIZE, 2)(X, h(3, 7, 5)),  # layers
            ShapeError,
            r"hidden size \(2, 7, 5\), got \[3, 7, 5\]: .*2 \(layers x directions\).*input \[11, 7, 3\]",
        ),
        (
            lambda: LSTM(READ, SIZE)(X, (h(1, 7, 5), h(1, 2, 5))),  # rows
            ShapeError,
            r"hidden\[1\] size \(1, 7, 5\), got \[1, 2, 5\].*of the same rows",
        ),
        (
            lambda: RNN(READ, SIZE)(pack([1, 3, 2, 1, 1, 1, 1]), h(1, 2, 5)),
            ShapeError,
            r"\(1, 7, 5\), got \[1, 2, 5\].*got 7 rows of up to 3 steps, packed as \[10, 3\]",
        ),
        (lambda: GRU(READ, SIZE)(X[:, 0], h(1, 1, 5)), ShapeError, r"size \(1, 5\), got \[1, 1, 5\]"),
        (
            lambda: RNN(READ, SIZE)(PackedSequence(h(3, READ), torch.tensor([1, 2]))),  # not sorted
            ShapeError,
            r"growing batch sizes \[1, 2\]",
        ),
        (
            lambda: RNN(READ, SIZE)(PackedSequence(h(4, READ), torch.tensor([2, 1]))),
            ShapeError,
            r"batch sizes sum to 3; make it.*packed as \[4, 3\]",
        ),
        (
            lambda: GRU(READ, SIZE)(X.double()),
            ConfigError,
            r"torch.float64.*weight dtype.*input.to\(torch.float32\)",
        ),
        (lambda: LSTMCell(READ, SIZE)(X[0].double()), ConfigError, "does not match weight dtype"),
        (lambda: RNNCell(READ, SIZE)(X), ShapeError, r"got 3D instead: .*got an input \[11, 7, 3\]"),
        (lambda: GRUCell(4, SIZE)(X[0]), ShapeError, r"got 3 expected 4: .*got an input \[7, 3\]"),
        (lambda: GRUCell(READ, SIZE)(X[0], h(2, 5)), ShapeError, r"state \[2, 5\]"),
        (lambda: LSTMCell(READ, SIZE)(X[0], (h(7, 5),)), ShapeError, "state .*got 1"),
        (lambda: RNNCell(READ, SIZE)(X[0], (h(7, 5), h(7, 5))), ShapeError, "1 tensors, got 2"),
        (lambda: LSTMCell(READ, SIZE)(X[0], h(7, 5)), ShapeError, "2 tensors, got 1"),
        (lambda: GRUCell(READ, SIZE)(h(5, READ), h(5)), ShapeError, r"input \[5, 3\] and a state \[5\]"),
    ],
)
def test_what_does_not_fit_is_refused(call: Callable[[], object], error: type, sentence: str) -> None:
    with pytest.raises(error, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_an_unsorted_batch_that_claims_to_be_sorted_is_refused_by_torch_before_us() -> None:
    with pytest.raises(
        RuntimeError, match=r"must be sorted in decreasing order.*pass `enforce_sorted=False`"
    ):
        pack_padded_sequence(X, torch.tensor([1, 2, 3, 4, 5, 6, 7]), enforce_sorted=True)
    with pytest.raises(RuntimeError, match="Length of all samples has to be greater than 0"):
        pack([0, 1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize("module", [RNN, LSTM, GRU])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_an_input_that_is_no_number_is_named_by_row_and_step(module: Any, bidirectional: bool) -> None:
    x = X.clone()
    x[4, 2, 1] = float("nan")
    lengths = [3, 1, 6, 11, 2, 7, 5]
    for ours in (module(READ, SIZE, 2, bidirectional=bidirectional), module(READ, SIZE, residual=True)):
        for given in (x, pack(lengths, x)):
            for train in (True, False):
                with (
                    torch.set_grad_enabled(train),
                    pytest.raises(ConfigError, match="not a number in row 2 at step 4; fill or drop"),
                ):
                    ours(given)
    ours(pack([3, 1, 4, 11, 2, 7, 5], x))  # the row ends before it
    state = torch.full((1, 7, SIZE), float("nan"))
    hx = (state, state) if module is LSTM else state
    passing = module(READ, SIZE, nan="pass")
    assert passing(x)[0].isnan().any()
    assert passing(X, hx)[0].isnan().any()
    for given in (X, X[:1], pack(lengths)):
        with pytest.raises(
            ConfigError, match=f"^{module.__name__}: expected a state without NaN, got one with"
        ):
            module(READ, SIZE)(given, hx)
    with torch.no_grad():  # non-finite weights are left to the training guard
        ours.weight_hh_l0.fill_(float("nan"))
    assert ours(X)[0].isnan().any()


def test_float16_on_a_processor_that_cannot_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = LSTM(READ, SIZE, dtype=torch.float16)
    if drop_in_torch.computes(torch.float16):
        assert ours(X.half())[0].dtype == torch.float16
    drop_in_torch.computes.cache_clear()

    def cannot(*_: object) -> None:
        raise RuntimeError("\"addmm_impl_cpu_\" not implemented for 'Half'")

    with monkeypatch.context() as patch:
        patch.setattr(torch, "lstm", cannot)
        with pytest.raises(ConfigError, match=r"torch.float16"):
            ours(X.half())
    drop_in_torch.computes.cache_clear()


def test_an_error_is_caught_by_code_written_for_torch() -> None:
    with pytest.raises(RuntimeError) as caught:
        GRU(4, SIZE)(X)
    assert isinstance(caught.value, WeftError | ValueError)


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_a_whole_model_that_names_the_former_module_of_the_cells_loads(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, saved = getattr(wn, name), io.BytesIO()
    torch.manual_seed(1)
    model = torch.nn.Sequential(kind(3, 5))
    monkeypatch.setattr(kind, "__module__", "weft.nn.drop_in_cells")
    torch.save(model, saved)
    monkeypatch.undo()
    assert b"drop_in_cells" in saved.getvalue()
    saved.seek(0)
    loaded = torch.load(saved, weights_only=False)
    assert type(loaded[0]) is kind is getattr(drop_in_cells, name)
    x = torch.randn(2, 3)
    assert all(map(torch.equal, loaded(x), model(x)))
