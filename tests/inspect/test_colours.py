"""The scale is even to the eye and survives a grey printer."""

import numpy as np

from weft.figures.colours import to_oklab, weight_colours


def test_oklab_of_known_colours():
    # published by Ottosson: white is (1, 0, 0), red (0.628, 0.225, 0.126)
    np.testing.assert_allclose(to_oklab(np.array([1.0, 1, 1])), [1, 0, 0], atol=1e-3)
    np.testing.assert_allclose(to_oklab(np.array([1.0, 0, 0])), [0.628, 0.225, 0.126], atol=1e-3)


def test_steps_are_equal_and_lightness_always_falls():
    colours = weight_colours()
    lab = to_oklab(np.array([colours(number)[:3] for number in range(256)]))
    steps = np.linalg.norm(np.diff(lab, axis=0), axis=1)
    assert steps.max() / steps.min() < 1.05
    assert (np.diff(lab[:, 0]) < 0).all()


def test_nothing_is_white():
    np.testing.assert_allclose(weight_colours()(0.0)[:3], 1, atol=1e-10)
