"""Laws of every front end for images: a new file in the folder is tested automatically."""

import numpy as np
import pytest
import torch

from tests.laws.members import normal, ready
from weft.errors import ConfigError, ShapeError
from weft.nn import pictures
from weft.nn.pictures.convolution import ConvolutionFront
from weft.nn.pictures.front import Front
from weft.nn.pictures.patches import Patches, PatchFront
from weft.rooms import parts
from weft.testing.values import more_than_noise

SHAPES = {"picture": (12, 8, 3), "clip": (5, 8, 12, 3), "regions": (7, 11)}
SETTINGS = {"convolution": {"sizes": (5, 7)}, "patches": {"size": 11, "patch": 4}, "regions": {"size": 13}}
CASES = [
    (name, shape)
    for name in sorted(parts(pictures, Front))
    for shape in SHAPES
    if (shape == "regions") == (name == "regions")
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_places_are_as_many_as_the_grid_has_and_rows_are_apart(name, kind):
    shape = SHAPES[kind]
    front = parts(pictures, Front)[name](shape, **SETTINGS[name]).double()
    x = torch.randn(3, *shape, dtype=torch.float64, requires_grad=True)
    y = front(x)
    assert y.shape == (3, front.places, front.size)
    torch.testing.assert_close(front(x[1:2]), y[1:2], rtol=1e-10, atol=1e-10)
    (slope,) = torch.autograd.grad(y[1].sum(), x)
    assert slope[1].abs().max() > 1e-9 and slope[[0, 2]].abs().sum() == 0


def test_a_convolution_of_one_stage_is_the_sum_over_neighbours():
    front = ConvolutionFront((6, 4, 2), sizes=(3,), coordinates=False).double()
    x = torch.randn(1, 6, 4, 2, dtype=torch.float64)
    weight, bias = front.stages[0].weight, front.stages[0].bias
    padded = torch.zeros(8, 6, 2, dtype=torch.float64)
    padded[1:7, 1:5] = x[0]
    rows = []
    for row in range(0, 6, 2):
        for column in range(0, 4, 2):
            near = padded[row : row + 3, column : column + 3]
            rows.append(torch.einsum("ijc,ocij->o", near, weight) + bias)
    plain = torch.stack(rows)
    normal = (plain - plain.mean()) / (plain.var(unbiased=False) + 1e-5).sqrt()
    torch.testing.assert_close(front(x)[0], normal.relu(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["picture", "clip"])
def test_a_new_non_local_block_changes_nothing_and_then_sees_all(kind):
    shape = SHAPES[kind]
    torch.manual_seed(3)
    front = ConvolutionFront(shape, sizes=(5, 7), non_local=(2,), coordinates=False).double()
    x = torch.randn(2, *shape, dtype=torch.float64, requires_grad=True)
    block = front.blocks["2"]
    del front.blocks["2"]
    plain = front(x)
    front.blocks["2"] = block
    torch.testing.assert_close(front(x), plain, rtol=0, atol=0)
    torch.nn.init.normal_(block.out.weight)
    (slope,) = torch.autograd.grad(front(x)[0, 0].sum(), x)
    assert more_than_noise(slope[0][..., -1, -1, :], slope.abs().max()).any()  # the far corner


def test_a_stage_of_stride_one_keeps_the_grid_and_lets_a_place_see_more():
    def seen(strides: tuple[int, ...]) -> int:
        front = ConvolutionFront((24, 24, 1), sizes=(3,) * len(strides), strides=strides, coordinates=False)
        for number in range(len(strides)):
            front.norms[number] = torch.nn.Identity()  # whose receptive field is the whole image
            torch.nn.init.ones_(front.stages[number].weight)
        x = torch.ones(1, 24, 24, 1, requires_grad=True)
        assert front.grid == (6, 6)
        (slope,) = torch.autograd.grad(front(x)[0, 14].sum(), x)  # position (2, 2)
        return int(slope[0, :, 9, 0].count_nonzero())

    assert (seen((2, 2)), seen((2, 1, 2)), seen((2, 2, 1))) == (7, 11, 15)
    clip = ConvolutionFront((5, 24, 24, 3), sizes=(3, 4, 5), strides=(2, 1, 2))
    assert clip.grid == (5, 6, 6) and clip(torch.zeros(1, 5, 24, 24, 3)).shape == (1, 180, 5)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="8 x 6 pixels cannot be cut into patches of 4"):
        PatchFront((8, 6, 3), patch=4)
    with pytest.raises(ConfigError, match="stages from 1 to 2"):
        ConvolutionFront((8, 8, 3), non_local=(3,))
    with pytest.raises(ConfigError, match=r"strides: "):
        ConvolutionFront((8, 8, 3), strides=(2, 3))
    with pytest.raises(ConfigError, match=r"strides: "):
        ConvolutionFront((8, 8, 3), strides=(2,))
    with pytest.raises(ShapeError, match="cannot be halved 2 times"):
        ConvolutionFront((8, 3, 3))
    with pytest.raises(ShapeError, match="use regions"):
        ConvolutionFront((7, 11))


def test_the_gradient_of_a_short_clip_in_bfloat16_reads_no_memory_that_nobody_wrote():
    front = ConvolutionFront((2, 16, 16, 3), sizes=(16, 5))
    x = torch.randn(16, 2, 16, 16, 3)
    front(x).sum().backward()
    exact = [parameter.grad.clone() for parameter in front.parameters()]
    for _ in range(20):
        front.zero_grad()
        for size in (64, 300, 1000, 5000, 20_000, 100_000):
            torch.full((size,), 3e38)  # simulates the old content of freed memory
        with torch.autocast("cpu", torch.bfloat16):
            front(x).float().sum().backward()
        for parameter, gradient in zip(front.parameters(), exact, strict=True):
            assert (parameter.grad - gradient).norm() <= 0.1 * gradient.norm() + 1e-3


@pytest.mark.parametrize("first", [False, True])
def test_patches_are_their_equation(first: bool) -> None:
    module = ready(lambda: Patches(3, 7, patch=2, first=first))
    pictures = normal(5, 4, 6, 3)
    got = module(pictures).detach().numpy()
    w, b = module.project.weight.detach().numpy(), module.project.bias.detach().numpy()
    for row, picture in enumerate(pictures.numpy()):
        want = [picture[y : y + 2, x : x + 2].ravel() @ w.T + b for y in (0, 2) for x in (0, 2, 4)]
        want = ([module.first.detach().numpy()] if first else []) + want
        np.testing.assert_allclose(got[row], np.stack(want), rtol=1e-10, atol=1e-10)


def test_a_picture_that_patches_do_not_tile_is_refused() -> None:
    sentence = r"multiples of 4, got 6 x 9 pixels"
    with pytest.raises(ShapeError, match=sentence):
        Patches(3, 7, patch=4)(torch.zeros(1, 6, 9, 3))
