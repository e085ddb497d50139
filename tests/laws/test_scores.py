"""The laws of an attention score (weft/testing/scores.py), for every class of weft/nn/scores.py."""

import pytest
import torch

from tests.laws.members import SCORES, SIZE, Make, needs_equal_sizes
from weft.errors import ShapeError
from weft.nn.scores import Score
from weft.testing import check_score
from weft.testing.scores import OTHER

every_score = pytest.mark.parametrize("make", SCORES.values(), ids=SCORES)


@every_score
def test_a_score_keeps_the_laws(make: Make) -> None:
    check_score(make)


@every_score
def test_a_score_either_takes_two_sizes_or_says_what_to_do(make: Make) -> None:
    if needs_equal_sizes(make):
        with pytest.raises(ShapeError, match=r"query has 13 features, the key 11; make them equal"):
            make(SIZE, OTHER)
    else:
        assert make(SIZE, OTHER).prepare(torch.zeros(1, 2, OTHER)).shape[:2] == (1, 2)


@every_score
def test_keys_that_are_not_prepared_are_refused(make: Make) -> None:
    score, x = make(SIZE, SIZE), torch.ones(1, 2, SIZE)
    if type(score).prepare is Score.prepare:
        assert score(x, x).shape == (1, 2, 2)
        return
    with pytest.raises(
        ShapeError, match=r"expected prepared keys; call score\(query, score\.prepare\(keys\)\)"
    ):
        score(x, x)
    assert score(x, score.prepare(x)).shape == (1, 2, 2)
