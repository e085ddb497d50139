"""Images as sequences of patches (ViT); the encoder adds positions."""

import torch
from torch import Tensor, nn

from weft.errors import ShapeError
from weft.nn.ops import Linear
from weft.nn.pictures.front import Front
from weft.setting_types import Size


class Patches(nn.Module):
    """W p + b for each patch p of P x P pixels, row by row from the top left.

    Args:
        channels: features of a pixel.
        size: D.
        patch: P.
        first: prepend a learned vector for classification (BERT's CLS).

    Source: Dosovitskiy et al. 2021, eq. 1; positions are the encoder's.

    Example:
        >>> Patches(3, 16, patch=4)(torch.zeros(2, 8, 12, 3)).shape
        torch.Size([2, 6, 16])
    """

    def __init__(self, channels: int, size: int, *, patch: int = 4, first: bool = False) -> None:
        super().__init__()
        self.patch = patch
        self.project = Linear(patch * patch * channels, size)
        self.first = nn.Parameter(0.02 * torch.randn(size)) if first else None

    def forward(self, picture: Tensor) -> Tensor:
        """[B, height, width, channels] to [B, S, D], S = height width / P^2, plus one with `first`.

        Raises:
            ShapeError: a side of the picture is not a multiple of P.
        """
        height, width = picture.shape[1:3]
        if height % self.patch or width % self.patch:
            raise ShapeError(
                f"expected a picture whose sides are multiples of {self.patch}, "
                f"got {height} x {width} pixels; crop or scale it"
            )
        tiles = picture.unflatten(2, (-1, self.patch)).unflatten(1, (-1, self.patch))
        x = self.project(tiles.transpose(2, 3).flatten(3).flatten(1, 2))  # [B, S, D]
        if self.first is None:
            return x
        return torch.cat([self.first.to(x.dtype).expand(x.shape[0], 1, -1), x], 1)


class PatchFront(Front):
    """W p + b for each patch of an image, or of each frame of a clip.

    Args:
        shape: see Front.
        size: D.
        patch: side length in pixels.

    Raises:
        ShapeError: the input is not an image or a clip, or the patch size does not divide its size.

    Source: Dosovitskiy et al. 2021, eq. 1.

    Example:
        >>> import torch
        >>> PatchFront((8, 12, 3), size=5, patch=4)(torch.zeros(2, 8, 12, 3)).shape
        torch.Size([2, 6, 5])
    """

    def __init__(self, shape: tuple[int, ...], *, size: Size = 128, patch: int = 4) -> None:
        super().__init__()
        if len(shape) not in (3, 4):
            raise ShapeError(
                f"patches: expected the shape of a picture or a clip, got {list(shape)}; "
                "for precomputed features use regions"
            )
        height, width, channels = shape[-3:]
        if height % patch or width % patch:
            raise ShapeError(
                f"patches: {height} x {width} pixels cannot be cut into patches of {patch}; "
                "change the size of the patches or of the pictures"
            )
        self.size = size
        self.grid = (*shape[:-3], height // patch, width // patch)
        self.patches = Patches(channels, size, patch=patch)

    def forward(self, picture: Tensor) -> Tensor:
        frames = picture.flatten(0, -4)
        return self.patches(frames).reshape(picture.shape[0], self.places, self.size)  # type: ignore[no-any-return]
