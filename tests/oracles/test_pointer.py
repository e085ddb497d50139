"""The pointer-generator against the equations of See et al. 2017 in NumPy, step by step, in float64."""

from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
import torch

from tests.laws.members import ready
from tests.oracles.attention import softmax
from weft import masks, tree
from weft.diagnose.attention import copied
from weft.models import Generator
from weft.nn.decoders.pointer import PointerDecoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.pointer import Pointer
from weft.nn.scores import Dot, Score
from weft.testing.values import gradients_reach_every_parameter

V, WIDTH, READ, WRITE, T = 13, 3, 5, 7, 6
UNK, SOS, EOS = 1, 2, 3
SOURCES = ([5, 13, 6, 13, 14], [8], [13, 9, 5, 9])  # 13 and 14 are words missing from the vocabulary
TARGETS = ([13, 5, 1, 14, EOS], [4, EOS], [9, 9, 13, 5, 12, EOS])


class Batch(NamedTuple):
    source: torch.Tensor
    source_mask: torch.Tensor
    target_in: torch.Tensor
    target_out: torch.Tensor
    target_mask: torch.Tensor


def padded(rows: tuple[list[int], ...], fill: int) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])


def batch() -> Batch:
    lengths = torch.tensor([len(row) for row in SOURCES]), torch.tensor([len(row) for row in TARGETS])
    written = padded(TARGETS, 0)
    return Batch(
        padded(SOURCES, 999),  # large values as padding
        masks.from_lengths(lengths[0], 5),
        torch.cat([torch.full((3, 1), SOS), written[:, :-1]], 1),
        written,
        masks.from_lengths(lengths[1], T),
    )


def model(coverage: float | None, score: type[Score] | None = None) -> Generator:
    settings = {} if score is None else {"score": score, "key_size": WRITE}
    embed = Tokens(V, WIDTH, unknown=UNK)
    encoder = RecurrentEncoder(WIDTH, sizes=(READ,))
    inner = partial(RecurrentDecoder, sizes=(WRITE,), enters="never")
    decoder = PointerDecoder(WIDTH, encoder, decoder=inner, coverage=coverage, **settings)
    return ready(lambda: Generator(embed, decoder, Pointer(WRITE, V), encoder=encoder))


def equation(it: Generator, given: Batch, row: int) -> tuple[np.ndarray, float, np.ndarray]:
    """p [T, V + S] of a row, its coverage loss, and the copied part of p.

    s_t and h_i are the LSTMs' own (tested by other files).
    """
    size, steps = len(SOURCES[row]), len(TARGETS[row])
    one = Batch(*(part[row : row + 1, : size if n < 2 else steps] for n, part in enumerate(given)))
    with torch.no_grad():
        memory = it.encoder(it.embed(one.source), one.source_mask)
        x = it.embed(one.target_in)
        s, _ = it.decoder.decoder(x, it.decoder.decoder.start(memory, 1))
    h, x, s = memory.states[0].numpy(), x[0].numpy(), s[0].numpy()
    p = {name: value.detach().numpy() for name, value in it.named_parameters()}

    def linear(name: str, y: np.ndarray) -> np.ndarray:
        return y @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0)

    covered, lost, every, copies = np.zeros(size), 0.0, [], []
    for t in range(steps):
        w_c = p.get("decoder.cover", np.zeros(1))
        if isinstance(it.decoder.attention.score, Dot):
            keys = linear("decoder.attention.key", h) + covered[:, None] * w_c
            energy = keys @ s[t]
        else:
            name = "decoder.attention.score"
            hidden = np.tanh(
                linear(f"{name}.key", h) + linear(f"{name}.query", s[t]) + covered[:, None] * w_c
            )
            energy = hidden @ p[f"{name}.weight.weight"][0]
        a = softmax(energy)
        context = a @ h
        y = linear("decoder.readout", np.concatenate([s[t], context]))
        gate = linear("decoder.gate", np.concatenate([context, s[t], x[t]]))[0]
        p_gen = 1 / (1 + np.exp(-gate))
        said, again = np.zeros(V + size), np.zeros(V + size)
        said[:V] = p_gen * softmax(y @ p["head.words.weight"].T + p["head.words.bias"])
        for place, token in enumerate(SOURCES[row]):
            again[token] += (1 - p_gen) * a[place]
        every.append(said + again)
        copies.append(again)
        lost += np.minimum(a, covered).sum()
        covered = covered + a
    return np.stack(every), lost, np.stack(copies)


@pytest.mark.parametrize("score", [None, Dot], ids=["additive", "dot"])
@pytest.mark.parametrize("coverage", [None, 0.7])
def test_a_pointer_generator_is_its_equation(coverage: float | None, score: type[Score] | None) -> None:
    it, given = model(coverage, score), batch()
    with torch.no_grad():
        logp = it.head(it.features(given)).numpy()
        plain = it.loss(given).total.item()
        trained = it.train().loss(given).total.item()
    wanted = lost = 0.0
    shares = copied(it.eval(), given)
    assert shares is not None
    for row, target in enumerate(TARGETS):
        p, again, copies = equation(it, given, row)
        places = np.arange(len(target)), target
        np.testing.assert_allclose(shares[row, : len(target)].numpy(), copies[places] / p[places], atol=1e-10)
        np.testing.assert_allclose(np.exp(logp[row, : len(target), : p.shape[1]]), p, atol=1e-10)
        assert np.isneginf(logp[row, : len(target), p.shape[1] :]).all()  # words of other sources
        np.testing.assert_allclose(p.sum(1), 1, atol=1e-12)
        wanted -= np.log(p[places]).sum()
        lost += again
    assert plain == pytest.approx(wanted, abs=1e-9)
    assert trained == pytest.approx(wanted + (coverage or 0) * lost, abs=1e-9)


def test_steps_of_a_beam_say_what_the_whole_says() -> None:
    it, given = model(0.7), batch()
    with torch.no_grad():
        whole = it.head(it.features(given))
        state = tree.fan(it.start(given.source, given.source_mask), 2)
        for t in range(T):
            logp, state = it.step(given.target_in[:, t].repeat_interleave(2), state)
            torch.testing.assert_close(logp, whole[:, t].repeat_interleave(2, 0), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("coverage", [None, 0.7])
def test_a_row_costs_alone_what_it_costs_among_others(coverage: float | None) -> None:
    it, given = model(coverage).train(), batch()
    total = it.loss(given).total
    alone = 0.0
    for row in range(3):
        sizes = len(SOURCES[row]), len(TARGETS[row])
        one = Batch(*(part[row : row + 1, : sizes[n > 1]] for n, part in enumerate(given)))
        alone += it.loss(one).total.item()
    assert total.item() == pytest.approx(alone, rel=1e-12)
    total.backward()
    gradients_reach_every_parameter(it)


def test_what_comes_later_changes_nothing_before() -> None:
    it, given = model(0.7), batch()
    other = given._replace(target_in=given.target_in.clone())
    other.target_in[:, 3:] = 4
    with torch.no_grad():
        one, two = it.head(it.features(given)), it.head(it.features(other))
    assert torch.equal(one[:, :3], two[:, :3])
    assert not torch.equal(one[:, 3:], two[:, 3:])


def test_smoothing_spreads_over_what_the_vocabulary_says() -> None:
    it, given = model(None), batch()
    plain = it.loss(given).total
    said = it.head.words(it.features(given).h)[given.target_mask]
    it.head.smoothing = 0.1
    got = it.train().loss(given).total
    torch.testing.assert_close(got, 0.9 * plain - 0.1 * said.mean(1).sum(), rtol=1e-12, atol=1e-12)
