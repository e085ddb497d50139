"""A bag of words, which ignores word order."""

from typing import Literal

from torch import Tensor, nn

from weft import masks
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.ops import Linear
from weft.setting_types import Size
from weft.shapes import check_choice

Reduce = Literal["mean", "sum"]


class BagEncoder(Encoder):
    """States x_j and the order-independent summary (1/S) sum_j x_j or sum_j x_j.

    With embed/weighted.py the words have weights, for example idf.

    Args:
        in_size: features of the input.
        size: project to this width, W x_j; None uses the embeddings unchanged.
        reduce: "mean" or "sum".

    Raises:
        ConfigError: an unknown `reduce`.

    Source: Iyyer et al. 2015, eq. 1 (mean, a deep averaging network's first layer).

    Example:
        >>> import torch
        >>> x, mask = torch.tensor([[[1.0], [3.0], [50.0]]]), torch.tensor([[True, True, False]])
        >>> BagEncoder(1, reduce="sum")(x, mask).summary.tolist()
        [[4.0]]
    """

    def __init__(self, in_size: int, *, size: Size | None = None, reduce: Reduce = "mean") -> None:
        super().__init__(in_size)
        check_choice("reduce", reduce, Reduce)
        self.size = size or in_size
        self.reduce = reduce
        self.project = Linear(in_size, size, bias=False) if size else nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        x, mask = self.check(x, mask)
        x = self.project(x)
        if self.reduce == "mean":
            return Memory(x, mask, masks.mean(x, mask))
        return Memory(x, mask, (x * mask[..., None].to(x.dtype)).sum(1))
