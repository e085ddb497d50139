"""The trace: what it says of every candidate, counted by hand, and what it refuses."""

from collections import Counter

import pytest
import torch

from tests.search.steps import Calls, first, random_table, start
from weft.errors import ConfigError
from weft.search.beam import beam_search
from weft.search.trace import Candidate, Trace


def by_hand() -> Trace:
    """Tokens 0, 1 and eos = 2 with probabilities .5, .3, .2 always; width 2, at most 2 tokens."""
    prob = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    trace = Trace()
    beam_search(
        lambda token, state: (prob.log().expand(len(token), 3), state),
        None,
        first(1),
        eos=2,
        max_length=2,
        width=2,
        nbest=2,
        length_penalty=0.0,
        trace=trace,
    )
    return trace


def test_every_candidate_and_its_fate_by_hand() -> None:
    """Step 1: .5, .3, eos .2 at rank 2, too low to finish. Step 2: .25; then .15 by 0 1 and by 1 0, of
    which the earlier parent's goes first; then .1, eos, at rank 3. The limit cuts what is left.
    """
    rows = [(one.time, one.parent, one.token, one.rank, one.slot, one.fate) for one in by_hand().candidates]
    assert rows == [
        (1, 0, 0, 0, 0, "kept"),
        (1, 0, 1, 1, 1, "kept"),
        (1, 0, 2, 2, -1, "pruned"),
        (2, 0, 0, 0, 0, "cut"),
        (2, 0, 1, 1, 1, "cut"),
        (2, 1, 0, 2, -1, "pruned"),
        (2, 0, 2, 3, -1, "pruned"),
    ]
    exp = torch.tensor([(one.logp, one.cumulative, one.score) for one in by_hand().candidates]).exp()
    assert exp[:, 0].tolist() == pytest.approx([0.5, 0.3, 0.2, 0.5, 0.3, 0.5, 0.2])
    assert exp[:, 1].tolist() == pytest.approx([0.5, 0.3, 0.2, 0.25, 0.15, 0.15, 0.1])
    assert torch.equal(exp[:, 1], exp[:, 2])


def traced(**settings: object) -> Trace:
    table = random_table(17, 7, 11, seed=6)
    trace = Trace()
    given = {"eos": 3, "max_length": 7, "width": 4, "nbest": 2} | settings
    beam_search(Calls(), start(table), first(17), trace=trace, **given)
    return trace


def test_numbers_of_fates_fit_together() -> None:
    trace = traced()
    assert {one.fate for one in trace.candidates} == {"kept", "pruned", "finished", "stopped", "cut"}
    last: dict[int, int] = {}
    for one in trace.candidates:
        last[one.source] = max(last.get(one.source, 0), one.time)
    assert set(last) == set(range(17))
    groups: dict[tuple[int, int], list[Candidate]] = {}
    for one in trace.candidates:
        groups.setdefault((one.source, one.time), []).append(one)
    for (source, time), group in groups.items():
        fates = Counter(one.fate for one in group)
        assert len(group) == 8 and [one.rank for one in group] == list(range(8))
        assert fates["kept"] == (4 if time < last[source] else 0)
        assert fates["stopped"] + fates["cut"] == (4 if time == last[source] else 0)
        assert sorted(one.slot for one in group if one.slot >= 0) == [0, 1, 2, 3]
        assert all(one.token == 3 and one.rank < 4 for one in group if one.fate == "finished")
        assert [one.cumulative for one in group] == sorted((one.cumulative for one in group), reverse=True)


def test_a_trace_holds_one_search() -> None:
    trace = by_hand()
    with pytest.raises(ConfigError, match="already holds a search; give each search a new Trace"):
        beam_search(
            Calls(), start(random_table(1, 2, 5, 1)), first(1), eos=2, max_length=2, width=2, trace=trace
        )
    with pytest.raises(ConfigError, match="holds no search yet"):
        Trace().replay()
