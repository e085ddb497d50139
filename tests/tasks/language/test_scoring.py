"""What a model gives a text: equal to reading it token by token, in each context; and the mixture."""

import numpy as np
import pytest
import torch
from torch import Tensor

from weft.models import Generator
from weft.ngram.kneser_ney import kneser_ney
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.tasks.language.data import RandomWindows, Stream, StreamPieces, cut, lines_of
from weft.tasks.language.decoding import MixedModel, StepReader
from weft.tasks.language.scoring import (
    MixtureParts,
    counted,
    halves,
    mixed,
    ngram_logp,
    token_logp,
    tuned,
    with_starts,
)
from weft.tasks.language.task import ProseModel, TokenEmbedding, grows
from weft.tasks.running_text.base import ProseData, line_batches
from weft.text.vocabulary import EOS, PAD, SOS

SIZE = 13


def model(kind: str = "recurrent", limit: int = 11) -> Generator:
    torch.manual_seed(3)
    decoders = {
        "recurrent": lambda size: RecurrentDecoder(size, sizes=(7, 5)),
        "transformer": lambda size: TransformerDecoder(
            size, size=6, num_layers=2, num_heads=2, positions="learned", max_length=limit
        ),
    }
    settings = TokenEmbedding(size=6, dropout=0.0)
    return ProseModel(decoder=decoders[kind], embedding=settings).build(SIZE).double().eval()


def stream(seed: int = 1, count: int = 23) -> Stream:
    chance = np.random.default_rng(seed)
    lines = [chance.integers(4, SIZE, chance.integers(0, 6)).tolist() for _ in range(count)]
    tokens = [EOS, *(token for line in lines for token in (*line, EOS))]
    return Stream(np.array(tokens, np.int32), count, 0, 0)


def one_by_one(model: Generator, before: list[int], after: list[int]) -> list[float]:
    """log p of each token of `after`, a step at a time from the first token of `before` on."""
    state, found = model.start(None, torch.ones(1, 1, dtype=torch.bool)), []
    read = [*before, *after]
    for place, token in enumerate(read[:-1]):
        logp, state = model.step(torch.tensor([token]), state)
        if place + 1 >= len(before):
            found.append(float(logp[0, read[place + 1]].detach()))
    return found


def test_streamed_is_the_whole_text_token_by_token() -> None:
    text = stream()
    tokens = text.tokens.tolist()
    want = one_by_one(model(), tokens[:1], tokens[1:])
    np.testing.assert_allclose(token_logp(model(), text, "stream", length=5), want, atol=1e-10)


def test_rows_side_by_side_are_their_parts() -> None:
    text = stream()
    part = -(-text.size // 3)
    tokens = text.tokens.tolist()
    want = [
        logp
        for at in range(0, text.size, part)
        for logp in one_by_one(model(), [tokens[at]], tokens[at + 1 : at + 1 + part])
    ]
    np.testing.assert_allclose(token_logp(model(), text, "stream", length=5, rows=3), want, atol=1e-10)


@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
@pytest.mark.parametrize("stride", [0, 1, 4])
@pytest.mark.parametrize("count", [1, 3, pytest.param(23, marks=pytest.mark.slow)])
def test_windowed_is_each_window_token_by_token(kind: str, stride: int, count: int) -> None:
    text, length = stream(count=count), 11
    tokens = text.tokens.tolist()
    length_, step = min(length, text.size), stride or length
    want = one_by_one(model(kind), tokens[:1], tokens[1 : 1 + length_])
    while len(want) < text.size:
        end = min(len(want) + step, text.size)
        seen = tokens[end - length_ : len(want) + 1]
        want += one_by_one(model(kind), seen, tokens[len(want) + 1 : end + 1])
    got = token_logp(model(kind), text, "windows", length=length, stride=stride)
    np.testing.assert_allclose(got, want, atol=1e-10)


@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
def test_by_lines_is_each_line_token_by_token(kind: str) -> None:
    text = stream()
    want = [logp for line in lines_of(text) for logp in one_by_one(model(kind), [EOS], [*line.tolist(), EOS])]
    np.testing.assert_allclose(token_logp(model(kind), text, "lines", length=5), want, atol=1e-10)


def test_pieces_cover_the_text_and_say_where_they_begin_anew() -> None:
    text = stream()
    plan, read = StreamPieces(text.size, rows=3, length=7), [[], [], []]
    for starts in plan.epoch(0):
        batch = cut(text.tokens, starts, min(7, plan.part - int(starts[0])))
        for row, out in zip(read, batch.target_out.tolist(), strict=True):
            row += out
    assert [token for row in read for token in row] == text.tokens[1 : 1 + 3 * plan.part].tolist()
    assert text.size - 3 * plan.part < 3


def test_windows_are_drawn_anew_each_epoch_and_line_batches_hold_each_line_once() -> None:
    text = stream()
    plan = RandomWindows(text.size, rows=2, length=5, seed=1)
    first, again, second = plan.epoch(0), plan.epoch(0), plan.epoch(1)
    assert all((one == other).all() for one, other in zip(first, again, strict=True))
    assert any((one != other).any() for one, other in zip(first, second, strict=True))
    assert max(int(one.max()) for one in first) <= text.size - 5
    data = ProseData(train="x", valid_share=0.1, batch_rows=3, length=5)
    lines = line_batches(data, list(lines_of(text)), 1).epoch(0)
    assert sorted(int(n) for batch in lines for n in batch) == list(range(text.lines))


def test_a_state_that_holds_all_it_read_is_known() -> None:
    assert grows(model("transformer").float()) and not grows(model("recurrent").float())


@pytest.mark.parametrize("bound", [True, False])
def test_starts_stand_where_contexts_begin(bound: bool) -> None:
    tokens = np.array([EOS, 7, 8, EOS, EOS, 9, EOS])
    want = [SOS, 7, 8, EOS, SOS, EOS, SOS, 9, EOS] if bound else [SOS, *tokens]
    assert with_starts(tokens, bound=bound).tolist() == want


@pytest.mark.parametrize("kind", ["space", "character"])
def test_the_floor_is_kneser_ney_of_the_training_text(kind: str) -> None:
    made = counted(stream(2), size=SIZE, kind=kind, batching="stream", order=3)
    text = stream()
    want = []
    for line in lines_of(text) if kind == "space" else [text.tokens[1:]]:
        start = [SOS] if kind == "space" else [SOS, EOS]
        end = [EOS] if kind == "space" else []
        tokens = np.array([*start, *line, *end])
        reference = kneser_ney(
            with_starts(stream(2).tokens, bound=kind == "space"), size=SIZE, order=3, start=SOS, never=(PAD,)
        )
        want += reference.score(tokens)[len(start) :].tolist()
    np.testing.assert_allclose(ngram_logp(made, text), want, atol=1e-10)


def test_the_mixture_is_its_formula_and_the_tuned_weight_the_best_of_all() -> None:
    chance = np.random.default_rng(3)
    one, other = -chance.exponential(1, 97), -chance.exponential(1.2, 97)
    np.testing.assert_allclose(
        mixed(one, other, 0.3), np.log(0.7 * np.exp(one) + 0.3 * np.exp(other)), atol=1e-12
    )
    np.testing.assert_allclose(mixed(one, other, 0.0), one)
    np.testing.assert_allclose(mixed(one, other, 1.0), other)
    grid = np.linspace(0, 1, 2001)
    best = grid[np.argmax([mixed(one, other, weight).sum() for weight in grid])]
    assert abs(tuned(one, other) - best) <= 1 / 2000
    logp, (first, second) = halves(MixtureParts(one, other))
    assert first.ngram == tuned(one[48:], other[48:]) and second.ngram == tuned(one[:48], other[:48])
    np.testing.assert_allclose(logp[:48], mixed(one[:48], other[:48], first.ngram))
    np.testing.assert_allclose(logp[48:], mixed(one[48:], other[48:], second.ngram))


def walked(reader: StepReader, rows: list[list[int]], more: list[int]) -> list[Tensor]:
    """The distributions that a search sees while it writes `more` after each row."""
    state, token = reader.start(rows)
    found = []
    for after in [*more, None]:
        logp, state = reader.step(token, state)
        found.append(logp.detach())
        token = torch.full_like(token, after or 0)
    return found


@pytest.mark.parametrize("bound", [True, False])
@pytest.mark.parametrize("order", [1, 3])
def test_a_step_mixes_what_scoring_mixes(bound: bool, order: int) -> None:
    made = counted(stream(2), size=SIZE, kind="x", batching="lines" if bound else "stream", order=order)
    more, row = [5, EOS, 6, 7, EOS], [8, 9]
    text = Stream(np.array([EOS, *row, *more], np.int32), 2, 0, 0)
    want = mixed(token_logp(model(), text, "stream", length=5), ngram_logp(made, text), 0.3)
    seen = walked(StepReader(model(), None, MixedModel(made, 0.3)), [[EOS, *row]], more)
    got = [float(logp[0, token]) for logp, token in zip(seen, more, strict=False)]
    np.testing.assert_allclose(got, want[len(row) :], atol=1e-10)
    np.testing.assert_allclose(np.exp(seen[2].numpy()).sum(1), 1.0, atol=1e-10)


def test_a_full_window_forgets_its_older_half() -> None:
    net, limit = model("transformer", limit=6), 6
    more = [4, 5, 6, 7, 8, 9, 10, 11]
    seen = walked(StepReader(net, limit), [[EOS, 12], [EOS, 4]], more)
    read = [EOS, 12, *more]
    kept = 0
    for place, logp in enumerate(seen):
        end = place + 2  # tokens read so far
        if end - kept > limit:
            kept = end - 1 - limit // 2
        want = one_by_one(net, read[kept:end], [7])
        np.testing.assert_allclose(float(logp[0, 7]), want[0], atol=1e-10)
