"""One step of a beam search: who ends, who goes on, and when a source is done."""

import torch

from weft.search.beams import Beams, done_sources, ends, extend, finish, start_beams
from weft.search.candidates import Candidates
from weft.search.hypotheses import norms

EOS, WIDTH = 2, 2


def tensor(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def candidates(value: torch.Tensor, token: torch.Tensor) -> Candidates:
    return Candidates(value, torch.zeros_like(token), token)


def searched(logp: torch.Tensor, limit: int, finished: torch.Tensor) -> Beams:
    """Sources with these hypotheses alive, and these scores of hypotheses that ended."""
    begun = start_beams(torch.zeros(len(logp), dtype=torch.int64), torch.full((len(logp),), limit), nbest=2)
    count = (finished > -torch.inf).sum(1)
    parent = torch.zeros_like(logp, dtype=torch.int64)
    table = begun.finished._replace(score=finished, logp=finished)
    return begun._replace(logp=logp, parent=parent, token=parent, finished=table, num_finished=count)


def test_an_end_counts_only_among_the_first_candidates_of_the_beam() -> None:
    """Twice the width are looked at, so that the beam stays full; a late end loses against what is kept."""
    token = torch.tensor([[EOS, 0, 1, 0], [0, 1, EOS, EOS], [0, EOS, EOS, 1], [EOS, 0, 1, 3]])
    value = -torch.arange(1.0, 5.0, dtype=torch.float64).repeat(4, 1)
    value[3, 0] = -torch.inf  # an end that is impossible
    ending = ends(candidates(value, token), token == EOS, WIDTH)
    assert ending.tolist() == [
        [True, False, False, False],
        [False, False, False, False],
        [False, True, False, False],
        [False, False, False, False],
    ]


def test_the_beam_goes_on_with_the_best_that_do_not_end() -> None:
    token = torch.tensor([[EOS, 0, EOS, 1], [0, EOS, EOS, EOS]])
    value = tensor([-1, -2, -3, -4], [-1, -2, -3, -4])
    begun = start_beams(torch.tensor([0, 0]), torch.tensor([7, 7]), nbest=1)
    after, order = extend(begun, candidates(value, token), token == EOS, WIDTH)
    assert order.tolist() == [[1, 3], [0, 1]]
    assert after.logp.tolist() == [[-2, -4], [-1, -torch.inf]]  # an end fills a slot, but is dead
    assert after.token[:, 0].tolist() == [0, 0] and after.token[0].tolist() == [0, 1]


def test_an_end_is_scored_by_its_length_with_the_end() -> None:
    token = torch.tensor([[EOS, 0, 1, 1]])
    found = candidates(tensor([-3, -4, -5, -6]), token)
    begun = start_beams(torch.tensor([0]), torch.tensor([7]), nbest=2)
    after = finish(begun, found, ends(found, token == EOS, WIDTH), 3, norms(7, 1.0), None)
    assert after.finished.score.tolist() == [[-1.0, -torch.inf]]  # -3 over 3 tokens
    assert after.finished.written[0, 0].item() == 2 and after.num_finished.tolist() == [1]


def test_a_source_is_done_when_nothing_alive_can_be_among_those_returned() -> None:
    """With 5 tokens at most, -4 may still become -.8: above the second best that ended in the first row,
    below it in the second.
    """
    alive = tensor([-4, -6], [-4, -6])
    beams = searched(alive, 5, tensor([-0.5, -0.9], [-0.5, -0.7]))
    for nbest, done in ((1, [True, True]), (2, [False, True])):
        given = {"enough": 9, "nbest": nbest, "stop": "never"}
        assert done_sources(beams, 2, norms(5, 1.0), **given).tolist() == done


def test_enough_ends_finish_a_source_if_what_is_alive_is_worse() -> None:
    """At time 2 alive is -1.6 / 2 = -.8: below the best that ended, -.5, above the worst, -.9."""
    beams = searched(tensor([-1.6, -6]), 50, tensor([-0.5, -0.9]))
    wants = {"best": True, "worst": False, "full": True}
    for stop, done in wants.items():
        given = {"nbest": 2, "stop": stop}
        assert done_sources(beams, 2, norms(50, 1.0), enough=2, **given).item() == done
        assert not done_sources(beams, 2, norms(50, 1.0), enough=3, **given).item()
