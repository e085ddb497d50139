"""Small functions of tasks answer as their one-line docstrings say."""

import math

import pytest
import torch

from weft.models import Labeller
from weft.nn import BagEncoder, Categorical, Tokens
from weft.tasks.caption.predictor import exact
from weft.tasks.evaluation import mean_loss
from weft.tasks.forecast.data import without_meaning
from weft.tasks.forecast.predictor import file_name
from weft.tasks.labels.base import LabelBatch
from weft.tasks.reused import framed


def test_the_mean_loss_of_equally_likely_classes_is_ln_2() -> None:
    model = Labeller(Tokens(7, 3), BagEncoder(3), Categorical(3, 2)).eval()
    torch.nn.init.zeros_(model.head.weight)
    source = torch.tensor([[4, 5], [6, 0]])  # [B, S]
    batches = [LabelBatch(source, source > 0, source % 2, 3)] * 3
    assert mean_loss(model, batches) == pytest.approx(math.log(2), abs=1e-6)


def test_times_without_a_value_are_named_with_their_columns() -> None:
    (said,) = without_meaning({"visitors": "23:00 to 05:00", "sales": "Sunday"})
    assert said.startswith("no value in training at 23:00 to 05:00 (visitors), Sunday (sales), so")


def test_the_name_of_a_series_is_a_file_name() -> None:
    assert file_name("shop 7/Zagreb") == "shop-7-Zagreb"


def test_a_caption_is_exact_in_other_case_and_signs() -> None:
    assert exact(["A dog."], [["a cat", "a dog"]]).value == 1.0


def test_a_frame_takes_room_of_the_longest_row() -> None:
    assert framed([[5, 6, 7]], 2, "both") == [[2, 5, 6, 3]]
