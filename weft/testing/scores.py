"""The laws of an attention score; `check_score` runs them over a score of your own."""

from collections.abc import Callable

import torch
from safetensors.torch import load, save

from weft.errors import ShapeError
from weft.nn.scores import Score
from weft.testing.values import (
    READ,
    ROWS,
    SIZE,
    SOURCE,
    TARGET,
    close,
    every_parameter_reached,
    gradcheck,
    keeps,
    normal,
    ready,
)

Make = Callable[..., Score]
OTHER = 11  # size of keys for scores that take two different sizes


def check_score(make: Make) -> None:
    """Check that an attention score keeps the laws that every score of Weft keeps.

    Rows and pairs of query and key are independent; all queries at once equal one at a time; gradients are
    right and reach every parameter; saved and loaded it gives the same.

    Args:
        make: the class, or a function of query_size and key_size that builds the score with its settings.

    Raises:
        AssertionError: names the laws that are broken, and where the first one is.

    Example:
        >>> from weft.nn import Additive
        >>> check_score(Additive)
    """
    keeps(LAWS, make)


def needs_equal_sizes(score: Make) -> bool:
    """Whether this score requires queries and keys of the same size."""
    try:
        score(SIZE, READ)
    except ShapeError:
        return True
    return False


def score_of(make: Make, seed: int = 3) -> tuple[Score, int]:
    """A score and its key size, different from the query's if the score allows it."""
    key_size = SIZE if needs_equal_sizes(make) else OTHER
    return ready(lambda: make(SIZE, key_size), seed=seed), key_size


def law_2_a_row_alone_and_each_pair_on_its_own(make: Make) -> None:
    """Law 2: a row alone and each pair on its own."""
    score, width = score_of(make)
    q, k = normal(ROWS, TARGET, SIZE), normal(ROWS, SOURCE, width, seed=2)
    energy = score(q, score.prepare(k))
    assert energy.shape == (ROWS, TARGET, SOURCE)
    for row, t, s in [(0, 0, 0), (4, 10, 6), (2, 7, 1)]:
        pair = score(q[row : row + 1, t : t + 1], score.prepare(k[row : row + 1, s : s + 1]))
        close(energy[row, t, s], pair[0, 0, 0])


def law_1_all_queries_equal_one_at_a_time(make: Make) -> None:
    """Law 1: all queries equal one at a time."""
    score, width = score_of(make)
    q, keys = normal(ROWS, TARGET, SIZE), score.prepare(normal(ROWS, SOURCE, width, seed=2))
    close(torch.cat([score(q[:, t : t + 1], keys) for t in range(TARGET)], 1), score(q, keys))


def law_5_gradcheck_and_gradients_reach_every_parameter(make: Make) -> None:
    """Law 5: gradcheck and gradients reach every parameter."""
    score, width = score_of(make)
    q = normal(2, 3, SIZE).requires_grad_()
    k = normal(2, 5, width, seed=2).requires_grad_()

    def energies(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return score(q, score.prepare(k))

    if energies(q, k).requires_grad:  # uniform does not depend on its input
        gradcheck(score, energies, q, k)
        every_parameter_reached(score, energies(q, k))
    assert any(True for _ in score.parameters()) <= energies(q, k).requires_grad


def law_10_saved_and_loaded_gives_the_same(make: Make) -> None:
    """Law 10: saved and loaded gives the same."""
    (score, width), (other, _) = score_of(make), score_of(make, seed=4)
    other.load_state_dict(load(save(score.state_dict())))
    q, k = normal(ROWS, TARGET, SIZE), normal(ROWS, SOURCE, width, seed=2)
    close(other(q, other.prepare(k)), score(q, score.prepare(k)), 0.0)


LAWS = [
    law_1_all_queries_equal_one_at_a_time,
    law_2_a_row_alone_and_each_pair_on_its_own,
    law_5_gradcheck_and_gradients_reach_every_parameter,
    law_10_saved_and_loaded_gives_the_same,
]
