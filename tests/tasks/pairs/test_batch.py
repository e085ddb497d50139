"""Batches of pairs: special symbols at their places, masks that say what is real."""

import numpy as np
import pytest
import torch

from weft.tasks.seq2seq.batch import collate_pairs, pad


def test_a_batch_has_what_the_model_reads_and_writes() -> None:
    batch = collate_pairs([[7, 8, 9], [5]], [np.array([6]), np.array([4, 5])])
    assert batch.source.tolist() == [[7, 8, 9], [5, 0, 0]]
    assert batch.source_mask.tolist() == [[True] * 3, [True, False, False]]
    assert batch.target_in.tolist() == [[2, 6, 0], [2, 4, 5]]
    assert batch.target_out.tolist() == [[6, 3, 0], [4, 5, 3]]
    assert batch.target_mask.tolist() == [[True, True, False], [True] * 3]
    assert batch.target_tokens == 5
    assert batch.to(torch.device("cpu")).target_tokens == 5


def test_an_empty_row_keeps_one_real_position() -> None:
    tokens, mask = pad([[], [7, 8]])
    assert (tokens.tolist(), mask.tolist()) == ([[0, 0], [7, 8]], [[True, False], [True, True]])
    assert pad([[]])[1].tolist() == [[True]]


@pytest.mark.parametrize("width", [2, 5])
def test_a_wider_batch_has_more_padding_only(width: int) -> None:
    tokens, mask = pad([[7, 8], [9]], width)
    assert tokens.shape == mask.shape == (2, width)
    assert tokens.tolist() == [[7, 8, *[0] * (width - 2)], [9, *[0] * (width - 1)]]
    assert mask.sum(1).tolist() == [2, 1]
