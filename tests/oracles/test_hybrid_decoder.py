"""A hybrid decoder is its equation: SSRU, cross-attention and network, with norms before or after."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import READ, ROWS, SOURCE_LENGTHS, TARGET, WRITE, normal, ready, source
from tests.oracles import attention as formulas
from tests.oracles import recurrent as cells
from tests.oracles import transformer as oracle
from weft.errors import ConfigError
from weft.nn.cells.cell import Cell
from weft.nn.decoders.hybrid import HybridBlock, HybridDecoder
from weft.nn.encoders.transformer import TransformerEncoder

WIDTH, HEADS, INNER = 6, 2, 19


def numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()


def normalised(norm: nn.Module):
    if isinstance(norm, nn.Identity):
        return lambda x: x
    return lambda x: oracle.layer_norm(x, numpy(norm.weight), numpy(norm.bias))


def recurrence(cell: Cell):
    """x [T, D] to the cell's outputs, by its equation."""
    forget, candidate = numpy(cell.weight_x).reshape(2, WIDTH, WIDTH)
    step = cells.ssru((forget, numpy(cell.bias)), candidate)

    def run(x: np.ndarray) -> np.ndarray:
        state, rows = (np.zeros(WIDTH),), []
        for row in x:
            y, state = step(row, state)
            rows.append(y)
        return np.stack(rows)

    return run


def block(module: HybridBlock, x: np.ndarray, memory: np.ndarray, norm: str) -> np.ndarray:
    look, network = module.look, module.network
    linear = [(look.query.weight, look.query.bias)]
    linear += list(zip(look.key_value.weight.chunk(2), look.key_value.bias.chunk(2), strict=True))
    matrices = [
        np.vstack([numpy(weight).T, numpy(bias)])
        for weight, bias in [*linear, (look.out.weight, look.out.bias)]
    ]
    parts = (
        (module.cell_norm, recurrence(module.cell)),
        (module.look_norm, lambda y: formulas.multi_head(y, memory, HEADS, *matrices, 0.0)),
        (
            module.network_norm,
            lambda y: oracle.feed_forward(
                y,
                numpy(network.first.weight),
                numpy(network.first.bias),
                numpy(network.second.weight),
                numpy(network.second.bias),
                oracle.relu,
            ),
        ),
    )
    for norms, part in parts:
        x = oracle.residual(x, normalised(norms), part, norm)
    return x


@pytest.mark.parametrize("norm", ["before", "after"])
@pytest.mark.parametrize("positions", ["sinusoidal", "none"])
def test_a_hybrid_decoder_is_its_equation(norm: str, positions: str) -> None:
    encoder = ready(lambda: TransformerEncoder(READ, size=10, num_heads=2))
    decoder = ready(
        lambda: HybridDecoder(
            WRITE,
            encoder,
            size=WIDTH,
            num_layers=2,
            num_heads=HEADS,
            inner=INNER,
            norm=norm,
            positions=positions,
        )
    )
    memory = encoder(*source())
    x = normal(ROWS, TARGET, WRITE, seed=2)
    got, _ = decoder(x, decoder.start(memory, ROWS))
    for row, length in enumerate(SOURCE_LENGTHS):
        h = x[row].numpy() @ numpy(decoder.project.weight).T + numpy(decoder.project.bias)
        h = h + (formulas.sinusoid(len(h), WIDTH) if positions == "sinusoidal" else 0.0)
        for layer in decoder.blocks:
            h = block(layer, h, numpy(memory.states[row, :length]), norm)
        np.testing.assert_allclose(numpy(got[row]), normalised(decoder.last_norm)(h), rtol=1e-10, atol=1e-10)


def test_learned_positions_are_counted_from_the_first_real_one() -> None:
    decoder = ready(
        lambda: HybridDecoder(WRITE, size=WIDTH, num_heads=HEADS, positions="learned", max_length=5)
    )
    x = normal(1, 3, WRITE)
    pieces, state = [], decoder.start(None, 1)
    for t in range(3):
        y, state = decoder(x[:, t : t + 1], state)
        pieces.append(y)
    torch.testing.assert_close(torch.cat(pieces, 1), decoder(x, decoder.start(None, 1))[0])


def test_parallel_norms_are_refused() -> None:
    with pytest.raises(ConfigError, match="norm"):
        HybridDecoder(WRITE, norm="parallel")  # type: ignore[arg-type]
