"""Law 6 for recurrence: cells, stacks, directions, bridge and recurrent decoders equal the equations."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from tests.laws.members import READ, ROWS, SIZE, SOURCE, SOURCE_LENGTHS, TARGET, WRITE, normal, ready, source
from tests.oracles import attention as formulas
from tests.oracles import recurrent as oracle
from weft.errors import ConfigError
from weft.nn.bridge import Bridge
from weft.nn.cells.cell import Cell
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.recurrent import Stack
from weft.nn.scores import Bilinear

CASES = {
    "elman-tanh": partial(Elman, activation="tanh"),
    "elman-relu": partial(Elman, activation="relu"),
    "lstm": LSTM,
    "gru-before": partial(GRU, reset="before"),
    "gru-after": partial(GRU, reset="after"),
}
every_case = pytest.mark.parametrize("make", CASES.values(), ids=CASES)


def gates(cell: Cell) -> list[oracle.Gate]:
    """Each gate's matrices, in the order in which the cell stacks them."""
    return [
        (w_x.detach().numpy(), w_h.detach().numpy(), b.detach().numpy())
        for w_x, w_h, b in zip(
            *(each.split(cell.size) for each in (cell.weight_x, cell.weight_h, cell.bias)), strict=True
        )
    ]


def equation(cell: Cell) -> oracle.Step:
    """The oracle with this cell's weights."""
    if isinstance(cell, Elman):
        return oracle.elman(*gates(cell), oracle.relu if cell.activation == "relu" else np.tanh)
    if isinstance(cell, LSTM):
        i, f, candidate, o = gates(cell)
        return oracle.lstm(i, f, candidate, o)
    assert isinstance(cell, GRU)
    r, u, candidate = gates(cell)
    if cell.reset == "before":
        return oracle.gru_before(r, u, candidate)
    return oracle.gru_after(r, u, candidate, cell.bias_n.detach().numpy())


def tensors(cell: Cell) -> int:
    return len(cell.start(torch.zeros(1, 1)))


@every_case
def test_a_cell_is_its_equation(make: type[Cell]) -> None:
    cell = ready(lambda: make(READ, SIZE))
    x, mask = source()
    before = tuple(normal(ROWS, SIZE, seed=7 + k) for k in range(tensors(cell)))
    y, after = cell(x, before, mask)
    for row, length in enumerate(SOURCE_LENGTHS):
        hs, last = oracle.unroll(
            equation(cell), x[row, :length].numpy(), tuple(leaf[row].numpy() for leaf in before)
        )
        np.testing.assert_allclose(y[row, :length].detach(), hs, rtol=1e-10, atol=1e-10)
        for got, want in zip(after, last, strict=True):
            np.testing.assert_allclose(got[row].detach(), want, rtol=1e-10, atol=1e-10)


@every_case
@pytest.mark.parametrize("join", ["concatenate", "mean", "sum", "learned"])
def test_directions_are_joined_forward_first(make: type[Cell], join: str) -> None:
    sizes = (5, SIZE)
    stack = ready(lambda: Stack(READ, sizes, cell=make, bidirectional=True, join=join))
    x, mask = source()
    got, _ = stack(x, mask=mask)
    for row, length in enumerate(SOURCE_LENGTHS):
        h = x[row, :length].numpy()
        for layer, size in enumerate(sizes):
            forward, backward = stack.forwards[layer], stack.backwards[layer]
            zeros = (np.zeros(size),) * tensors(forward)
            left, right = oracle.both_directions(equation(forward), equation(backward), h, zeros)
            h = np.hstack([left, right])
            if join == "mean":
                h = (left + right) / 2
            elif join == "sum":
                h = left + right
            elif join == "learned":
                weights = stack.joins[layer]
                h = np.tanh(h @ weights.weight.detach().numpy().T + weights.bias.detach().numpy())
        np.testing.assert_allclose(got[row, :length].detach(), h, rtol=1e-10, atol=1e-10)


def test_the_bridge_is_the_identity_where_sizes_agree() -> None:
    encoder = ready(lambda: RecurrentEncoder(READ, sizes=(5, SIZE), cell=LSTM))
    memory = encoder(*source())
    bridge = Bridge(encoder, ((5, 5), (SIZE, SIZE)))
    assert not list(bridge.parameters())
    for layer, state in enumerate(bridge(memory)):
        for got, want in zip(state, memory.carry[layer][0], strict=True):
            assert torch.equal(got, want)


def test_the_bridge_learns_per_layer_from_both_directions() -> None:
    encoder = ready(lambda: RecurrentEncoder(READ, sizes=(5, SIZE), cell=LSTM, bidirectional=True))
    memory = encoder(*source())
    bridge = ready(lambda: Bridge(encoder, ((3, 3), (SIZE, SIZE))))
    for layer, (h, c) in enumerate(bridge(memory)):
        (h_left, c_left), (h_right, c_right) = memory.carry[layer]
        maps = [(m.weight.detach().numpy(), m.bias.detach().numpy()) for m in bridge.maps[layer]]
        for row in range(ROWS):
            from_h = np.concatenate([h_left[row].detach(), h_right[row].detach()])
            from_c = np.concatenate([c_left[row].detach(), c_right[row].detach()])
            np.testing.assert_allclose(h[row].detach(), np.tanh(maps[0][0] @ from_h + maps[0][1]), atol=1e-10)
            np.testing.assert_allclose(c[row].detach(), maps[1][0] @ from_c + maps[1][1], atol=1e-10)


def test_a_joint_bridge_is_one_map_of_the_states_of_all_layers_and_directions() -> None:
    encoder = ready(lambda: RecurrentEncoder(READ, sizes=(5, SIZE), cell=LSTM, bidirectional=True))
    memory = encoder(*source())
    bridge = ready(lambda: Bridge(encoder, ((3, 3), (2, 2)), source="joint"))
    found = bridge(memory)
    for index, one in enumerate(bridge.maps):
        weight, bias = one.weight.detach().numpy(), one.bias.detach().numpy()
        for row in range(ROWS):
            x = np.concatenate([state[index][row].detach() for layer in memory.carry for state in layer])
            y = np.maximum(weight @ x + bias, 0)
            np.testing.assert_allclose(found[0][index][row].detach(), y[:3], atol=1e-10)
            np.testing.assert_allclose(found[1][index][row].detach(), y[3:], atol=1e-10)


def test_a_shared_bridge_starts_every_state_from_one_map_of_the_summary() -> None:
    encoder = ready(lambda: RecurrentEncoder(READ, sizes=(5,), cell=GRU, bidirectional=True))
    memory = encoder(*source())
    bridge = ready(lambda: Bridge(encoder, ((SIZE, SIZE), (SIZE, SIZE)), source="shared"))
    (one,) = bridge.maps
    weight, bias = one.weight.detach().numpy(), one.bias.detach().numpy()
    wanted = np.tanh(memory.summary.detach().numpy() @ weight.T + bias)
    for tensor in (tensor for layer in bridge(memory) for tensor in layer):
        np.testing.assert_allclose(tensor.detach(), wanted, atol=1e-10)
    with pytest.raises(ConfigError, match=r"bridge: shared needs states of one size, got 3, 5"):
        Bridge(encoder, ((3, 3), (5, 5)), source="shared")


def test_a_readout_without_tanh_is_linear() -> None:
    encoder = ready(lambda: RecurrentEncoder(READ, sizes=(5,)))
    decoder = ready(lambda: RecurrentDecoder(READ, encoder, sizes=(SIZE,), readout_activation="none"))
    shown = normal(3, 5 + SIZE)
    expected = shown.numpy() @ decoder.readout[0].weight.detach().numpy().T
    expected += decoder.readout[0].bias.detach().numpy()
    np.testing.assert_allclose(decoder.readout(shown).detach(), expected, atol=1e-10)


def test_the_bridge_reads_the_top_layers_downward_and_an_lstm_reads_a_gru() -> None:
    encoder = ready(lambda: RecurrentEncoder(READ, sizes=(5, 3, SIZE), cell=GRU))
    memory = encoder(*source())
    h, c = Bridge(encoder, ((SIZE, SIZE),))(memory)[0]
    assert torch.equal(h, memory.carry[2][0][0])
    assert torch.equal(c, h)


@pytest.mark.parametrize("enters", ["late", "input", "both", "never"])
@pytest.mark.parametrize("feeding", [False, True], ids=["", "feeding"])
def test_a_decoder_with_attention_is_its_equation(enters: str, feeding: bool) -> None:
    encoder = ready(lambda: RecurrentEncoder(READ, sizes=(5,), bidirectional=True))
    decoder = ready(
        lambda: RecurrentDecoder(
            WRITE, encoder, sizes=(SIZE,), cell=GRU, score=Bilinear, enters=enters, input_feeding=feeding
        )
    )
    memory = encoder(*source())
    state = decoder.start(memory, ROWS)
    x = normal(ROWS, TARGET, WRITE, seed=2)
    got, _ = decoder(x, state)

    def readout(h: np.ndarray) -> np.ndarray:
        if enters not in ("late", "both"):
            return h
        weights = decoder.readout[0]
        return np.tanh(weights.weight.detach().numpy() @ h + weights.bias.detach().numpy())

    for row, length in enumerate(SOURCE_LENGTHS):
        keys = memory.states[row, :length].detach().numpy()

        def look(query: np.ndarray, keys: np.ndarray = keys) -> np.ndarray:
            if enters == "never":
                return np.zeros(0)
            score = formulas.bilinear(decoder.attention.score.weight.weight.detach().numpy())
            return formulas.attention(score, query, keys, keys)[1]

        want = oracle.decode(
            equation(decoder.stack.forwards[0]),
            x[row].numpy(),
            (state.layers[0][0][row].detach().numpy(),),
            look,
            enters=enters,
            readout=readout,
            fed=np.zeros(SIZE) if feeding else None,
        )
        np.testing.assert_allclose(got[row].detach(), want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("make", "peer", "dtype"),
    [
        (Elman, nn.RNN, torch.float64),
        (partial(Elman, activation="relu"), partial(nn.RNN, nonlinearity="relu"), torch.float64),
        (LSTM, nn.LSTM, torch.float64),
        (GRU, nn.GRU, torch.float64),
        (LSTM, nn.LSTM, torch.float32),
        (GRU, nn.GRU, torch.float32),
    ],
    ids=["rnn", "rnn-relu", "lstm", "gru", "lstm-float32", "gru-float32"],
)
@pytest.mark.parametrize("bidirectional", [False, True], ids=["one", "both"])
def test_same_numbers_as_torch_with_the_same_weights(
    make, peer, dtype: torch.dtype, bidirectional: bool
) -> None:
    stack = ready(lambda: Stack(READ, (SIZE, SIZE), cell=make, bidirectional=bidirectional), dtype)
    theirs = peer(READ, SIZE, num_layers=2, batch_first=True, bidirectional=bidirectional, dtype=dtype)
    for layer in range(2):
        for cells, end in ((stack.forwards, ""), (stack.backwards, "_reverse")):
            if len(cells):
                cell, name = cells[layer], f"l{layer}{end}"
                inner = torch.zeros_like(cell.bias)
                if isinstance(cell, GRU):
                    inner[2 * SIZE :] = cell.bias_n.detach()
                for key, value in {
                    "weight_ih": cell.weight_x,
                    "weight_hh": cell.weight_h,
                    "bias_ih": cell.bias,
                    "bias_hh": inner,
                }.items():
                    getattr(theirs, f"{key}_{name}").data.copy_(value.data)
    x, mask = source(dtype)
    packed = nn.utils.rnn.pack_padded_sequence(
        x, torch.tensor(SOURCE_LENGTHS), batch_first=True, enforce_sorted=False
    )
    want, final = theirs(packed)
    want, _ = nn.utils.rnn.pad_packed_sequence(want, batch_first=True, total_length=SOURCE)
    got, states = stack(x, mask=mask)
    tolerance = 1e-10 if dtype == torch.float64 else 1e-5
    torch.testing.assert_close(got[mask], want[mask], rtol=tolerance, atol=tolerance)
    final = final if isinstance(final, tuple) else (final,)
    ours = [torch.stack([state[k] for layer in states for state in layer]) for k in range(len(final))]
    for one, other in zip(ours, final, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_an_lstm_has_four_times_the_parameters_of_an_elman_network() -> None:
    def count(cell: Cell) -> int:
        return sum(parameter.numel() for parameter in cell.parameters())

    assert count(LSTM(READ, SIZE)) == 4 * count(Elman(READ, SIZE)) == 4 * (SIZE * READ + SIZE * SIZE + SIZE)
