"""Law 6 for recurrence: cells, stacks, directions, bridge and recurrent decoders equal the equations."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from tests.laws.members import READ, ROWS, SIZE, SOURCE, SOURCE_LENGTHS, TARGET, WRITE, normal, ready, source
from tests.oracles import attention as formulas
from tests.oracles import recurrent as oracle
from weft.errors import ConfigError
from weft.nn.cells.cell import Cell
from weft.nn.cells.coupled import Coupled
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.cells.jordan import Jordan
from weft.nn.cells.lstm import LSTM
from weft.nn.cells.mingru import MinGRU
from weft.nn.cells.minlstm import MinLSTM
from weft.nn.cells.orthogonal import Orthogonal
from weft.nn.cells.peephole import Peephole
from weft.nn.cells.projected import Projected
from weft.nn.cells.sru import SRU
from weft.nn.cells.ssru import SSRU
from weft.nn.cells.stepwise import Stepwise
from weft.nn.cells.unitary import Unitary
from weft.nn.cells.zoneout import Zoneout
from weft.nn.decoders.recurrent import Bridge, RecurrentDecoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.recurrent import Stack
from weft.nn.scores import Bilinear

ACTIVATIONS = ("tanh", "sigmoid", "relu", "leaky_relu", "elu", "maxout")
OUTPUTS = (*ACTIVATIONS, "identity", "softmax")


def split(tensor: torch.Tensor, size: int) -> list[np.ndarray]:
    return [part.detach().numpy() for part in tensor.split(size)]


def gates(cell: Cell, names: str) -> dict[str, oracle.Gate]:
    parts = (split(tensor, cell.size) for tensor in (cell.weight_x, cell.weight_h, cell.bias))
    return dict(zip(names, zip(*parts, strict=True), strict=True))


def gains(cell: Cell, names: str, *norms: torch.nn.Module) -> dict[str, tuple[np.ndarray, np.ndarray]] | None:
    if not cell.normalised:
        return None
    kept = torch.cat([norm.gain for norm in norms])
    return dict(
        zip(names, zip(split(cell.norm_x.gain, cell.size), split(kept, cell.size), strict=True), strict=True)
    )


def of_stepwise(cell: Stepwise) -> oracle.Step:
    hidden = cell.weight_o.shape[1]
    u = list(zip(split(cell.weight_x, hidden), split(cell.bias, hidden), strict=True))
    v = list(zip(split(cell.weight_o, cell.size), split(cell.bias_o, cell.size), strict=True))
    return oracle.stepwise(u, v, cell.activation, cell.output)


def of_jordan(cell: Jordan) -> oracle.Step:
    hidden = cell.weight_o.shape[1]
    parts = (split(tensor, hidden) for tensor in (cell.weight_x, cell.weight_h, cell.bias))
    v = list(zip(split(cell.weight_o, cell.size), split(cell.bias_o, cell.size), strict=True))
    return oracle.jordan(list(zip(*parts, strict=True)), v, cell.activation, cell.output)


def of_elman(cell: Elman) -> oracle.Step:
    return oracle.elman(list(gates(cell, "gh"[: len(cell.bias) // cell.size]).values()), cell.activation)


def of_lstm(cell: LSTM) -> oracle.Step:
    names = "i" * cell.input_gate + "f" * cell.forget_gate + "co"
    gain_c = cell.norm_c.gain.detach().numpy() if cell.normalised else None
    norms = gains(cell, names, *([cell.norm_h] if cell.normalised else []))
    return oracle.lstm(gates(cell, names), candidate=cell.candidate, gains=norms, gain_c=gain_c)


def of_peephole(cell: Peephole) -> oracle.Step:
    looking = {"input": "i", "forget": "f", "output": "o"}
    rows = cell.weight_c.detach().numpy().reshape(len(cell.gates), -1, cell.size)
    seen = {looking[name]: row for name, row in zip(cell.gates, rows, strict=True)}
    seen = seen if cell.form == "full" else {name: row[0] for name, row in seen.items()}
    return oracle.lstm(
        gates(cell, "ifco"),
        candidate=cell.candidate,
        gains=gains(cell, "ifco", *([cell.norm_h] if cell.normalised else [])),
        gain_c=cell.norm_c.gain.detach().numpy() if cell.normalised else None,
        **{cell.form: seen},
    )


def of_coupled(cell: Coupled) -> oracle.Step:
    return oracle.lstm(
        {**gates(cell, "fco"), "coupled": None},
        candidate=cell.candidate,
        gains=gains(cell, "fco", *([cell.norm_h] if cell.normalised else [])),
        gain_c=cell.norm_c.gain.detach().numpy() if cell.normalised else None,
    )


def of_gru(cell: GRU) -> oracle.Step:
    norms = gains(cell, "run", *([cell.norm_h, cell.norm_n] if cell.normalised else []))
    inner = cell.bias_n.detach().numpy() if cell.reset == "after" else None
    return oracle.gru(gates(cell, "run"), inner, candidate=cell.candidate, gains=norms)


def plain(cell: Cell) -> list[oracle.Plain]:
    return list(zip(split(cell.weight_x, cell.size), split(cell.bias, cell.size), strict=True))


def of_ssru(cell: SSRU) -> oracle.Step:
    f, w = split(cell.weight_x, cell.size)
    return oracle.ssru((f, cell.bias.detach().numpy()), w)


def of_sru(cell: SRU) -> oracle.Step:
    w, f, r, *highway = split(cell.weight_x, cell.size)
    b_f, b_r = split(cell.bias, cell.size)
    v = cell.weight_c.detach().numpy() if cell.peephole else np.zeros((2, cell.size))
    return oracle.sru(w, (f, b_f), (r, b_r), highway[0] if highway else np.eye(cell.size), v)


def of_unitary(cell: Unitary) -> oracle.Step:
    u_real, u_imaginary = split(cell.weight_x, cell.size)
    b, v, d = (tensor.detach().numpy() for tensor in (cell.bias, cell.weight_o, cell.bias_o))
    return oracle.unitary(matrix(cell), u_real + 1j * u_imaginary, b, v, d)


def matrix(cell: Unitary) -> np.ndarray:
    return oracle.unitary_matrix(
        *(tensor.detach().numpy() for tensor in (cell.angles, cell.mirrors, cell.permutation))
    )


def of_orthogonal(cell: Orthogonal) -> oracle.Step:
    return of_elman(cell.cell)


Case = tuple[Callable[[int, int], Cell], Callable[..., oracle.Step]]
CASES: dict[str, Case] = {
    **{
        f"stepwise-{one}-{two}": (partial(Stepwise, hidden=5, activation=one, output=two), of_stepwise)
        for one, two in zip(ACTIVATIONS + ACTIVATIONS[:2], OUTPUTS, strict=True)
    },
    **{f"elman-{name}": (partial(Elman, activation=name), of_elman) for name in (*ACTIVATIONS, "modrelu")},
    **{
        f"jordan-{one}-{two}": (partial(Jordan, hidden=7, activation=one, output=two), of_jordan)
        for one, two in zip(ACTIVATIONS + ACTIVATIONS[:2], reversed(OUTPUTS), strict=True)
    },
    "lstm": (LSTM, of_lstm),
    "lstm-sigmoid": (partial(LSTM, candidate="sigmoid"), of_lstm),
    "lstm-without-forget": (partial(LSTM, forget_gate=False), of_lstm),
    "lstm-without-input": (partial(LSTM, input_gate=False), of_lstm),
    "lstm-without-both": (partial(LSTM, forget_gate=False, input_gate=False), of_lstm),
    "lstm-normalised": (partial(LSTM, normalised=True), of_lstm),
    "lstm-normalised-without": (partial(LSTM, normalised=True, forget_gate=False), of_lstm),
    "peephole-diagonal": (Peephole, of_peephole),
    "peephole-full": (partial(Peephole, form="full"), of_peephole),
    "peephole-full-two": (partial(Peephole, form="full", gates=("output", "input")), of_peephole),
    "peephole-diagonal-one": (partial(Peephole, gates=("output",), candidate="sigmoid"), of_peephole),
    "peephole-normalised": (partial(Peephole, gates=("forget",), normalised=True), of_peephole),
    "coupled": (Coupled, of_coupled),
    "coupled-sigmoid": (partial(Coupled, candidate="sigmoid"), of_coupled),
    "coupled-normalised": (partial(Coupled, normalised=True), of_coupled),
    "gru-before": (partial(GRU, reset="before"), of_gru),
    "gru-after": (GRU, of_gru),
    "gru-before-sigmoid": (partial(GRU, reset="before", candidate="sigmoid"), of_gru),
    "gru-after-sigmoid": (partial(GRU, candidate="sigmoid"), of_gru),
    "gru-before-normalised": (partial(GRU, reset="before", normalised=True), of_gru),
    "gru-after-normalised": (partial(GRU, normalised=True), of_gru),
    "mingru": (MinGRU, lambda cell: oracle.mingru(*plain(cell))),
    "minlstm": (MinLSTM, lambda cell: oracle.minlstm(*plain(cell))),
    "ssru": (SSRU, of_ssru),
    "sru": (SRU, of_sru),
    "sru-peephole": (partial(SRU, peephole=True), of_sru),
    "orthogonal": (Orthogonal, of_orthogonal),
    "orthogonal-modrelu": (partial(Orthogonal, activation="modrelu", weights="rotations"), of_orthogonal),
    "unitary": (Unitary, of_unitary),
}


@pytest.mark.parametrize(("make", "equation"), CASES.values(), ids=CASES)
def test_a_cell_is_its_equation(
    make: Callable[[int, int], Cell], equation: Callable[..., oracle.Step]
) -> None:
    cell = ready(lambda: make(READ, SIZE))
    x, mask = source()
    before = tuple(normal(ROWS, SIZE, seed=7 + k) for k in range(len(cell.start(x))))
    y, after = cell(x, before, mask)
    for row, length in enumerate(SOURCE_LENGTHS):
        begin = tuple(leaf[row].numpy() for leaf in before)
        hs, last = oracle.unroll(equation(cell), x[row, :length].numpy(), begin)
        np.testing.assert_allclose(y[row, :length].detach(), hs, rtol=1e-10, atol=1e-10)
        for got, want in zip(after, last, strict=True):
            np.testing.assert_allclose(got[row].detach(), want, rtol=1e-10, atol=1e-10)


def test_a_jordan_network_with_true_outputs_is_its_equation_at_every_step_alone() -> None:
    cell = ready(lambda: Jordan(READ, SIZE, hidden=7))
    x, mask = source()
    true = normal(ROWS, SOURCE, SIZE, seed=5)
    fed = torch.cat([torch.zeros(ROWS, 1, SIZE, dtype=x.dtype), true[:, :-1]], 1)
    y, (last,) = cell(x, cell.start(x), mask, fed)
    step = of_jordan(cell)
    for row, length in enumerate(SOURCE_LENGTHS):
        for t in range(length):
            want, _ = step(x[row, t].numpy(), (fed[row, t].numpy(),))
            np.testing.assert_allclose(y[row, t].detach(), want, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(last[row].detach(), want, rtol=1e-10, atol=1e-10)
    free, _ = cell(x[1:2], cell.start(x[1:2]))
    own = torch.cat([torch.zeros_like(free[:, :1]), free[:, :-1]], 1)
    again, _ = cell(x[1:2], cell.start(x[1:2]), fed=own)
    np.testing.assert_allclose(free.detach(), again.detach(), atol=1e-10)


def test_the_projected_lstm_is_sak_2014() -> None:
    cell = ready(lambda: Projected(READ, SIZE, inner=17))
    lstm, narrow = cell.cell, cell.projection.detach().numpy()  # R [P, H]
    w_r = split(lstm.parametrizations.weight_h.original, 17)
    w_x, b = split(lstm.weight_x, 17), split(lstm.bias, 17)
    x, _ = source()
    y, _ = cell(x[:1], cell.start(x[:1]))
    r, c = np.zeros(SIZE), np.zeros(17)
    for t in range(SOURCE):
        i, f, n, o = (w_x[k] @ x[0, t].numpy() + w_r[k] @ r + b[k] for k in range(4))
        c = oracle.sigmoid(f) * c + oracle.sigmoid(i) * np.tanh(n)
        r = narrow @ (oracle.sigmoid(o) * np.tanh(c))
        np.testing.assert_allclose(y[0, t].detach(), r, rtol=1e-10, atol=1e-10)


def test_zoneout_in_evaluation_takes_the_mean_of_old_and_new() -> None:
    cell = ready(lambda: Zoneout(READ, SIZE, rate=0.3))
    x, _ = source()
    h, c = np.zeros(SIZE), np.zeros(SIZE)
    y, _ = cell(x[:1], cell.start(x[:1]))
    step = of_lstm(cell.cell)
    for t in range(SOURCE):
        _, (new_h, new_c) = step(x[0, t].numpy(), (h, c))
        h, c = 0.3 * h + 0.7 * new_h, 0.3 * c + 0.7 * new_c
        np.testing.assert_allclose(y[0, t].detach(), h, rtol=1e-10, atol=1e-10)


def test_the_unitary_matrix_keeps_every_length() -> None:
    w = matrix(ready(lambda: Unitary(READ, SIZE)))
    np.testing.assert_allclose(w @ w.conj().T, np.eye(SIZE), atol=1e-12)


def test_peepholes_at_zero_are_the_lstm() -> None:
    x, mask = source()
    for form in ("diagonal", "full"):
        cell, lstm = ready(lambda form=form: Peephole(READ, SIZE, form=form)), ready(lambda: LSTM(READ, SIZE))
        cell.weight_c.data.zero_()
        lstm.load_state_dict({name: value for name, value in cell.state_dict().items() if name != "weight_c"})
        torch.testing.assert_close(
            cell(x, cell.start(x), mask), lstm(x, lstm.start(x), mask), rtol=1e-10, atol=1e-10
        )


def test_coupled_gates_save_a_quarter_and_a_switched_off_gate_its_weights() -> None:
    def count(cell: Cell) -> int:
        return sum(parameter.numel() for parameter in cell.parameters())

    whole = count(LSTM(READ, SIZE))
    assert 4 * count(Coupled(READ, SIZE)) == 3 * whole
    assert 4 * count(LSTM(READ, SIZE, forget_gate=False)) == 3 * whole
    assert 2 * count(LSTM(READ, SIZE, forget_gate=False, input_gate=False)) == whole


def of(cell: Cell) -> oracle.Step:
    return {Elman: of_elman, LSTM: of_lstm, GRU: of_gru}[type(cell)](cell)  # type: ignore[operator]


every_plain_cell = pytest.mark.parametrize(
    "make",
    [Elman, partial(Elman, activation="relu"), LSTM, partial(GRU, reset="before"), GRU],
    ids=["elman-tanh", "elman-relu", "lstm", "gru-before", "gru-after"],
)


@every_plain_cell
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
            zeros = (np.zeros(size),) * len(forward.start(torch.zeros(1, 1)))
            left, right = oracle.both_directions(of(forward), of(backward), h, zeros)
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
            of(decoder.stack.forwards[0]),
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
