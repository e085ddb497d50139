"""The palette: what is cut is put together again, and few groups are the means of k-means."""

import numpy as np
import pytest

from weft.data.shapes import shapes
from weft.errors import DataError
from weft.tasks.draw.predictor import FIRST, Tiles, judged

PICTURES = np.random.default_rng(1).integers(0, 256, (5, 6, 9, 3), np.uint8)


@pytest.mark.parametrize("tile", [1, 3])
def test_a_large_enough_palette_loses_nothing(tile):
    palette = Tiles.learn(PICTURES, tile, 1000)
    numbers = palette.encode(PICTURES)
    assert numbers.shape == (5, 54 // tile**2) and numbers.min() >= FIRST
    np.testing.assert_array_equal(palette.decode(numbers, (6, 9, 3)), PICTURES)


def test_tiles_are_in_the_order_of_reading():
    palette = Tiles.learn(PICTURES, 3, 1000)
    first_row = palette.decode(palette.encode(PICTURES)[:, :3], (3, 9, 3))
    np.testing.assert_array_equal(first_row, PICTURES[:, :3])


def test_a_small_palette_holds_the_means_of_the_nearest():
    palette = Tiles.learn(PICTURES, 1, 7)
    flat = PICTURES.reshape(-1, 3).astype(float)
    known = palette.patterns.reshape(-1, 3).astype(float)
    apart = np.square(flat[:, None] - known[None]).sum(-1)
    numbers = palette.encode(PICTURES).reshape(-1) - FIRST
    np.testing.assert_array_equal(apart[np.arange(len(flat)), numbers], apart.min(1))
    spread = np.square(flat - flat.mean(0)).sum(-1).mean()
    assert apart.min(1).mean() < 0.5 * spread  # seven means explain more than half


def test_pictures_that_tiles_do_not_fill_are_refused():
    with pytest.raises(DataError, match="6 x 9 x 3"):
        Tiles.learn(PICTURES, 2, 9)


def test_true_pictures_are_judged_right_and_white_ones_wrong():
    pixels, seen = shapes([9], range(8), 24)
    texts = [one.caption for one in seen]
    assert judged(pixels, texts) == {"colour": 1.0, "shape": 1.0, "place": 1.0, "all": 1.0}
    assert judged(np.full_like(pixels, 255), texts)["all"] == 0
    assert judged(pixels[:1], ["a photo of a dog"]) == {}
