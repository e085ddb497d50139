"""A small convolutional network for images and clips, optionally with non-local blocks."""

import math
from functools import partial

import torch
from torch import Tensor, nn

from weft.errors import ConfigError, ShapeError
from weft.nn.encoders.non_local import NonLocal, Pairwise
from weft.nn.pictures.front import Front
from weft.setting_types import Sizes


class ConvolutionFront(Front):
    """Stages relu(norm(W * x + b)), most of which halve height and width, with optional non-local blocks.

    W is 3 x 3 pixels, or 3 x 3 x 3 for clips. The norm is over each image's features and places (one group),
    so the result for an image does not depend on its batch.

    Args:
        shape: see Front.
        sizes: features of each stage; the last is D.
        strides: of each stage, 2 to halve height and width or 1 to keep them; null halves in all stages.
            After 1, 2, 3, .. halving stages a place sees 3, 7, 15, .. pixels; larger objects need more
            stages.
        coordinates: add two channels with the pixel's coordinates from -1 to 1 (Liu et al. 2018), because
            convolutions do not know positions.
        non_local: stages, counted from 1, followed by a non-local block.
        pairwise: f of the blocks; see `NonLocal`.

    Raises:
        ConfigError: there is no such stage; or strides are not 1 or 2, or not one per stage.
        ShapeError: the input is not an image or a clip, or too small for so many halvings.

    Source: Wang et al. 2018 for the blocks, whose W_z starts at zero, so that they do not change a new
    network.

    Example:
        >>> import torch
        >>> ConvolutionFront((12, 8, 3), sizes=(5, 7))(torch.zeros(2, 12, 8, 3)).shape
        torch.Size([2, 6, 7])
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        sizes: Sizes = (32, 64),
        strides: tuple[int, ...] | None = None,
        coordinates: bool = True,
        non_local: tuple[int, ...] = (),
        pairwise: Pairwise = "embedded",
    ) -> None:
        super().__init__()
        if len(shape) not in (3, 4):
            raise ShapeError(
                "convolution: expected a picture [height, width, channels] or a clip [time, height, width, "
                f"channels], got {list(shape)}; for precomputed features use regions"
            )
        wrong = [stage for stage in non_local if not 1 <= stage <= len(sizes)]
        if wrong or not sizes:
            raise ConfigError(f"non_local: expected stages from 1 to {len(sizes)}, got {wrong}")
        strides = (2,) * len(sizes) if strides is None else strides
        if len(strides) != len(sizes) or not set(strides) <= {1, 2}:
            raise ConfigError(f"strides: expected {len(sizes)} numbers, each 1 or 2, got {list(strides)}")
        height, width = shape[-3:-1]
        if min(height, width) < math.prod(strides):
            raise ShapeError(
                f"convolution: {height} x {width} pixels cannot be halved {strides.count(2)} times; "
                "give larger pictures or fewer sizes"
            )
        clip = len(shape) == 4
        made = partial(nn.Conv3d if clip else nn.Conv2d, kernel_size=3, padding=1)
        self.coordinates = coordinates
        ins = (shape[-1] + 2 * coordinates, *sizes[:-1])
        self.stages = nn.ModuleList(
            made(before, after, stride=(1, step, step) if clip else step)
            for before, after, step in zip(ins, sizes, strides, strict=True)
        )
        self.norms = nn.ModuleList(nn.GroupNorm(1, after) for after in sizes)
        self.blocks = nn.ModuleDict(
            {str(stage): NonLocal(sizes[stage - 1], pairwise=pairwise) for stage in non_local}
        )
        self.size = sizes[-1]
        for step in strides:
            height, width = (height + step - 1) // step, (width + step - 1) // step
        self.grid = (*shape[:-3], height, width)

    def forward(self, picture: Tensor) -> Tensor:
        if self.coordinates:
            picture = torch.cat([picture, _coordinates(picture)], -1)
        x = picture.movedim(-1, 1)
        for number, (stage, norm) in enumerate(zip(self.stages, self.norms, strict=True), 1):
            x = torch.relu(norm(_convolved(stage, x)))
            if str(number) in self.blocks:
                x = self.blocks[str(number)](x.movedim(1, -1)).movedim(-1, 1)
        return x.movedim(1, -1).flatten(1, -2)


def _convolved(stage: nn.Module, x: Tensor) -> Tensor:
    """Run a stage, in float32 for clips under autocast on a CPU.

    oneDNN's bfloat16 gradient of a 3D convolution's weights reads uninitialised memory if a clip has few
    frames (seen with torch 2.13 on AVX512_BF16: 2 frames, 5 to 16 channels, values up to 1e30).
    """
    if x.dim() == 5 and x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            return stage(x.float())  # type: ignore[no-any-return]
    return stage(x)  # type: ignore[no-any-return]


def _coordinates(picture: Tensor) -> Tensor:
    """[.., height, width, 2]: row and column of each pixel, -1 to 1."""
    sides = [
        torch.linspace(-1, 1, side, dtype=picture.dtype, device=picture.device)
        for side in picture.shape[-3:-1]
    ]
    return torch.stack(torch.meshgrid(*sides, indexing="ij"), -1).expand(*picture.shape[:-1], 2)
