"""The laws of an attention score, for every class of weft/nn/scores.py."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.laws.gradients import every_parameter_reached
from tests.laws.members import (
    ROWS,
    SCORES,
    SIZE,
    SOURCE,
    TARGET,
    Make,
    close,
    gradcheck,
    needs_equal_sizes,
    normal,
    ready,
)
from weft.errors import ShapeError
from weft.nn.scores import Score

OTHER = 11  # size of keys for scores that take two different sizes

every_score = pytest.mark.parametrize("make", SCORES.values(), ids=SCORES)


def score_of(make: Make, seed: int = 3) -> tuple[Score, int]:
    """A score and its key size, different from the query's if the score allows it."""
    key_size = SIZE if needs_equal_sizes(make) else OTHER
    return ready(lambda: make(SIZE, key_size), seed=seed), key_size


@every_score
def test_law_2_a_row_alone_and_each_pair_on_its_own(make: Make) -> None:
    score, width = score_of(make)
    q, k = normal(ROWS, TARGET, SIZE), normal(ROWS, SOURCE, width, seed=2)
    energy = score(q, score.prepare(k))
    assert energy.shape == (ROWS, TARGET, SOURCE)
    for row, t, s in [(0, 0, 0), (4, 10, 6), (2, 7, 1)]:
        pair = score(q[row : row + 1, t : t + 1], score.prepare(k[row : row + 1, s : s + 1]))
        close(energy[row, t, s], pair[0, 0, 0])


@every_score
def test_law_1_all_queries_equal_one_at_a_time(make: Make) -> None:
    score, width = score_of(make)
    q, keys = normal(ROWS, TARGET, SIZE), score.prepare(normal(ROWS, SOURCE, width, seed=2))
    close(torch.cat([score(q[:, t : t + 1], keys) for t in range(TARGET)], 1), score(q, keys))


@every_score
def test_law_5_gradcheck_and_gradients_reach_every_parameter(make: Make) -> None:
    score, width = score_of(make)
    q = normal(2, 3, SIZE).requires_grad_()
    k = normal(2, 5, width, seed=2).requires_grad_()

    def energies(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return score(q, score.prepare(k))

    if energies(q, k).requires_grad:  # uniform does not depend on its input
        gradcheck(score, energies, q, k)
        every_parameter_reached(score, energies(q, k))
    assert any(True for _ in score.parameters()) <= energies(q, k).requires_grad


@every_score
def test_law_10_saved_and_loaded_gives_the_same(make: Make, tmp_path: Path) -> None:
    (score, width), (other, _) = score_of(make), score_of(make, seed=4)
    save_file(score.state_dict(), tmp_path / "score.safetensors")
    other.load_state_dict(load_file(tmp_path / "score.safetensors"))
    q, k = normal(ROWS, TARGET, SIZE), normal(ROWS, SOURCE, width, seed=2)
    close(other(q, other.prepare(k)), score(q, score.prepare(k)), 0.0)


@every_score
def test_a_score_either_takes_two_sizes_or_says_what_to_do(make: Make) -> None:
    if needs_equal_sizes(make):
        with pytest.raises(ShapeError, match=r"query has 13 features, the key 11; make them equal"):
            make(SIZE, OTHER)
    else:
        assert make(SIZE, OTHER).prepare(torch.zeros(1, 2, OTHER)).shape[:2] == (1, 2)
