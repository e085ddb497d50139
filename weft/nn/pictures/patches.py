"""Images as sequences of patches (ViT); the encoder adds positions."""

from torch import Tensor

from weft.errors import ShapeError
from weft.nn.embed.patches import Patches
from weft.nn.pictures.front import Front
from weft.setting_types import Size


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
