"""What beam search promises beyond law 8 (tests/laws/test_search.py): its cost, its borders, its refusals."""

import math
import re
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.search.steps import Calls, as_found, first, gru_step, plain_beam, random_table, same, start
from weft.errors import ConfigError, ShapeError
from weft.search.beam import Stop, beam_search
from weft.search.greedy import greedy_search
from weft.search.hypotheses import Hypotheses, best, norms, to_lists
from weft.search.step import Step

EOS = 3


def search(table: Tensor, calls: Any = None, **settings: Any) -> Hypotheses:
    given = {"eos": EOS, "max_length": table.shape[1], "width": 5} | settings
    return beam_search(calls or Calls(), start(table), first(len(table)), **given)


def ends_at(lengths: list[int], longest: int, vocabulary: int = 7) -> Tensor:
    """A table for `Plain` by which source b ends with token number lengths[b], all but 1e-6 of it."""
    share = torch.full((len(lengths), longest), 1e-6, dtype=torch.float64)
    for source, length in enumerate(lengths):
        share[source, length - 1 :] = 1 - 1e-6
    prob = ((1 - share) / (vocabulary - 1))[:, :, None, None].repeat(1, 1, vocabulary, vocabulary)
    prob[..., EOS] = share[:, :, None]
    return prob.log()


class Plain:
    """`Calls` without the rolling: the answer is table[source, time, token]."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def __call__(self, token: Tensor, state: Any) -> tuple[Tensor, Any]:
        table, time = state.shared.table, state.own.time
        self.rows.append(len(token))
        source = torch.arange(len(token)) // (len(token) // len(table))
        return table[source, time, token], state._replace(own=state.own._replace(time=time + 1))


def counted(prob: list[list[float]], calls: list[int]) -> tuple[Step, Tensor]:
    """A step with these probabilities at each time, which notes how many rows it was called with."""

    def step(token: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        calls.append(len(token))
        return torch.tensor(prob, dtype=torch.float64)[state].log(), state + 1

    return step, torch.zeros(1, dtype=torch.int64)


def test_what_belongs_to_a_source_is_never_copied_for_a_hypothesis() -> None:
    calls = Calls()
    table = random_table(5, 7, 11, seed=2)
    search(table, calls, banned=(EOS,))  # nobody leaves before the end
    assert calls.rows == [5] + [25] * 6
    assert all(seen.data_ptr() == table.data_ptr() for seen in calls.tables)


def test_finished_sources_leave_the_batch() -> None:
    """Of 4 sources one leaves at a time; of 16 two at a time, the first waits for the second."""
    table = ends_at([2, 4, 6, 8], longest=9)
    for way in (greedy_search, partial(beam_search, width=1)):
        calls = Plain()
        found = way(calls, start(table), first(4), eos=EOS, max_length=9)
        assert calls.rows == [4, 4, 3, 3, 2, 2, 1, 1]
        assert found.lengths[:, 0].tolist() == [2, 4, 6, 8]
    calls = Plain()
    lengths = [2, 4, *[6] * 14]
    found = search(ends_at(lengths, longest=9), calls, width=1)
    assert calls.rows == [16, 16, 16, 16, 14, 14]
    assert found.lengths[:, 0].tolist() == lengths


def test_a_source_is_done_when_nothing_alive_can_win() -> None:
    """By hand: [x, eos] scores log(1/6) / 2 = -.90. Whoever does not end pays log(1e-6 / 6) = -15.6 a token:
    alive at step 2 is -17.4, which could still become -17.4 / 30 = -.58; at step 3 -33.0 / 30 = -1.10 cannot.
    """
    calls = Plain()
    found = search(ends_at([2], longest=30), calls, width=2, nbest=1, patience=math.inf)
    assert calls.rows == [1, 2, 2]
    assert found.lengths.tolist() == [[2]]


def test_a_longer_hypothesis_wins_by_its_mean_after_the_first_has_ended() -> None:
    """[1]: log .6 = -.511 a token. [0, 0, 0, 1]: log(.4 * .9^3) / 4 = -.308 a token; .29 in all."""
    step, time = counted([[0.4, 0.6], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]], [])
    for alpha, tokens, score in [(1.0, [0, 0, 0], math.log(0.4 * 0.9**3) / 4), (0.0, [], math.log(0.6))]:
        found = beam_search(
            step,
            time,
            first(1),
            eos=1,
            max_length=4,
            width=2,
            length_penalty=alpha,
            patience=math.inf,
        )
        assert to_lists(found, 1) == [[tokens]]
        assert float(found.score[0, 0]) == pytest.approx(score)


def test_what_is_alive_is_compared_by_its_mean_not_by_its_sum() -> None:
    """After W have ended, the search goes on while a mean of what is alive is above the best that ended.

    By hand, tokens a, b, eos = 0, 1, 2: eos ends with log 0.34 = -1.079, a eos with log(0.18) / 2 = -0.857.
    Alive is a a with log(0.6 x 0.65) = -0.942, below -0.857 as a sum and above it as a mean, -0.471; with the
    end that must follow, its mean is -0.314, the best of all.
    """
    step, time = counted([[0.6, 0.06, 0.34], [0.65, 0.05, 0.3], *[[1e-9, 1e-9, 1.0]] * 7], [])
    found = beam_search(step, time, first(1), eos=2, max_length=9, width=2)
    assert to_lists(found, 2) == [[[0, 0]]]
    assert math.isclose(float(found.score[0, 0]), math.log(0.6 * 0.65) / 3, rel_tol=1e-6)


def test_patience_is_how_many_have_to_finish() -> None:
    """[1] and [0, 1] finish first; [0, 0] has sqrt(.32) < .6, so with patience 1 a beam of two stops."""
    calls: list[int] = []
    step, time = counted([[0.4, 0.6], [0.8, 0.2], [0.9, 0.1], [0.1, 0.9]], calls)
    found = beam_search(step, time, first(1), eos=1, max_length=4, width=2, nbest=2)
    assert to_lists(found, 1) == [[[], [0]]]
    assert calls == [1, 2]
    longer = beam_search(step, time, first(1), eos=1, max_length=4, width=2, nbest=2, patience=2.0)
    assert to_lists(longer, 1) == [[[0, 0, 0], []]]


def test_improbable_ends_stop_no_better_hypothesis_but_a_full_beam() -> None:
    """A sure model: eos comes second at every step, so that a beam of two has two ends after two words.

    [1] has log .01, [0, 1] log(.0099) / 2 = -2.3, and [0, 0] is far better than both.
    """
    step, time = counted([[0.99, 0.01]] * 5 + [[0.01, 0.99]], [])
    for width in (1, 2, 3):
        found = beam_search(step, time, first(1), eos=1, max_length=9, width=width)
        assert to_lists(found, 1) == [[[0] * 5]], width
    full = beam_search(step, time, first(1), eos=1, max_length=9, width=2, stop="full")
    assert to_lists(full, 1) == [[[0]]]


def test_cut_hypotheses_come_after_ended_ones_whatever_their_score() -> None:
    """Hand calculation: at limit 2 [0, 0] has probability .81, [0, 1] .09 and [1] .1 (eos is 1)."""
    prob = torch.tensor([0.9, 0.1], dtype=torch.float64)
    found = beam_search(
        lambda token, state: (prob.log().expand(len(token), 2), state),
        None,
        first(1),
        eos=1,
        max_length=2,
        width=3,
        nbest=3,
        length_penalty=0.0,
    )
    assert found.tokens.tolist() == [[[1, 1], [0, 1], [0, 0]]]
    assert found.lengths.tolist() == [[1, 2, 2]]
    assert found.logp.exp()[0].tolist() == pytest.approx([0.1, 0.09, 0.81])
    assert to_lists(found, 1) == [[[], [0], [0, 0]]]


def test_hypotheses_that_do_not_exist_have_length_zero() -> None:
    """Of length 1 there are two sequences where V = 2, and five are asked for."""
    found = search(random_table(2, 1, 2, seed=3), width=5, nbest=5, eos=1)
    assert found.lengths.tolist() == [[1, 1, 0, 0, 0]] * 2
    assert found.score[:, 2:].tolist() == [[-math.inf] * 3] * 2
    assert to_lists(found, 1) == [[[], [0]]] * 2
    assert best(found).tokens.shape == (2, 1, 1)


@pytest.mark.parametrize("banned", [(0,), (0, 5, 66), (EOS,)])
def test_banned_tokens_never_come(banned: tuple[int, ...]) -> None:
    table = random_table(7, 5, 67, seed=8)
    found = search(table, nbest=4, banned=banned)
    for source in range(7):
        want = plain_beam(
            table,
            source,
            eos=EOS,
            limit=5,
            width=5,
            nbest=4,
            alpha=1.0,
            kind="length",
            enough=5,
            banned=banned,
        )
        same(as_found(found, source), want)
    one = greedy_search(Calls(), start(table), first(7), eos=EOS, max_length=5, banned=banned)
    assert torch.equal(one.tokens, search(table, width=1, banned=banned).tokens)
    assert not set(banned) & {token for lists in to_lists(one, EOS) for token in lists[0]}


def test_an_empty_batch_is_no_error() -> None:
    none = random_table(1, 5, 7, seed=1)[:0]
    assert search(none, nbest=2).tokens.shape == (0, 2, 0)
    assert greedy_search(Calls(), start(none), first(0), eos=EOS, max_length=5).tokens.shape == (0, 1, 0)


def test_the_state_is_left_alone_where_every_hypothesis_stays_in_its_place() -> None:
    """After token 0 comes 0, after token 1 comes 1, so that neither hypothesis ever has two children."""
    prob = torch.tensor([[0.98, 0.01, 0.01], [0.01, 0.98, 0.01], [0.5, 0.4, 0.1]], dtype=torch.float64)
    seen: list[Tensor] = []

    def step(token: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        seen.append(state)
        return prob[token].log(), state

    begin = torch.full((1,), 2)
    found = beam_search(step, torch.zeros(1, 4), begin, eos=2, max_length=6, width=2, nbest=2, banned=(2,))
    assert found.tokens[0].tolist() == [[0] * 6, [1] * 6]
    assert len({one.data_ptr() for one in seen[1:]}) == 1


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.5])
def test_what_is_not_a_log_probability_is_refused(bad: float, width: int) -> None:
    table = random_table(6, 4, 11, seed=1)
    table[4, 2] = bad
    words = "NaN; the model's parameters" if math.isnan(bad) else "log_softmax"
    pattern = re.compile(rf"search step 3, row \d: .*log-probabilit.*{words}")
    with pytest.raises(ConfigError, match=pattern):
        search(table, width=width, banned=(EOS,))
    with pytest.raises(ConfigError, match=pattern):
        greedy_search(Calls(), start(table), first(6), eos=EOS, max_length=4, banned=(EOS,))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"width": 0}, "width: .*0"),
        ({"nbest": 6}, "nbest: .*6"),
        ({"nbest": 0}, "nbest: .*0"),
        ({"patience": 0.0}, "patience: .*0.0"),
        ({"length_penalty": -0.5}, "length_penalty: .*-0.5"),
        ({"normalisation": "mean"}, "normalisation: .*'mean'"),
        ({"max_length": 0}, "max_length: .*0"),
        ({"max_length": torch.tensor([3, 4])}, "shape .2."),
        ({"eos": 11}, "eos: .*11"),
        ({"banned": (2, -1)}, "banned token: .*-1"),
        ({"banned": tuple(range(11))}, "search, source 0: every token has probability zero"),
    ],
)
def test_a_setting_out_of_range_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        search(random_table(3, 4, 11, seed=1), **settings)


def test_a_step_that_answers_in_another_shape_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"search step: "):
        beam_search(lambda t, s: (torch.zeros(3, 1, 7), s), None, first(3), eos=EOS, max_length=4, width=2)


def test_norms_by_hand() -> None:
    assert norms(4, 0.0).tolist() == [1.0] * 5
    assert norms(4, 1.0).tolist() == [1.0, 1.0, 2.0, 3.0, 4.0]
    assert norms(4, 0.5)[4].item() == 2.0
    assert norms(7, 1.0, "gnmt").tolist() == pytest.approx(
        [1.0, 1.0, 7 / 6, 8 / 6, 9 / 6, 10 / 6, 11 / 6, 2.0]
    )


def test_half_precision_and_single_precision_work() -> None:
    step, sources = gru_step(4, vocabulary=67)
    for dtype in (torch.float32, torch.bfloat16):

        def cast(token: Tensor, h: Tensor, dtype: torch.dtype = dtype) -> tuple[Tensor, Tensor]:
            logp, h = step(token, h)
            return logp.to(dtype), h

        found = beam_search(cast, sources[:5], first(5), eos=EOS, max_length=9, width=3)
        one = beam_search(cast, sources[:5], first(5), eos=EOS, max_length=9, width=1)
        assert torch.equal(
            one.tokens, greedy_search(cast, sources[:5], first(5), eos=EOS, max_length=9).tokens
        )
        assert found.score.dtype == torch.float64


def test_nothing_is_recorded_for_gradients() -> None:
    weight = torch.zeros(7, 7, requires_grad=True)
    found = beam_search(
        lambda t, s: ((weight[t]).log_softmax(1), s), None, first(2), eos=EOS, max_length=4, width=2
    )
    assert not found.logp.requires_grad


@pytest.mark.parametrize(
    ("stop", "tokens", "steps"),
    [("best", [], 2), ("full", [], 2), ("worst", [0, 0, 0], 4), ("never", [0, 0, 0], 4)],
)
def test_a_stop_says_what_must_score_worse_than_what_has_ended(
    stop: Stop, tokens: list[int], steps: int
) -> None:
    """[1] has log .6 = -.51, [0, 1] log(.08) / 2 = -1.26; [0, 0] has log(.32) / 2 = -.57 in between.

    [0, 0, 0, 1] would be the best, log(.2592) / 4 = -.34.
    """
    calls: list[int] = []
    step, time = counted([[0.4, 0.6], [0.8, 0.2], [0.9, 0.1], [0.1, 0.9]], calls)
    found = beam_search(step, time, torch.tensor([0]), eos=1, max_length=4, width=2, stop=stop)
    assert to_lists(found, 1) == [[tokens]] and len(calls) == steps
    assert found.tokens.shape == (1, 1, len(tokens) + 1)
