"""Self-attention without parameters by the similarity of embeddings."""

from collections.abc import Callable

from torch import Tensor, nn

from weft import masks
from weft.nn.attention import Attention
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.scores import Dot, Score
from weft.setting_types import Count


class SelfAttentionEncoder(Encoder):
    """out_i = sum_j alpha_ij x_j, alpha_i = softmax_j(score(x_i, x_j)): each word averages similar words.

    With dot, scaled or cosine the embeddings are the only parameters. The summary is the mean.

    Args:
        in_size: features of the input, and of the result.
        score: compares two embeddings.
        num_layers: number of applications.
        residual: add the input, to keep the word's own embedding.

    Example:
        >>> import torch
        >>> encoder = SelfAttentionEncoder(5)
        >>> encoder(torch.zeros(2, 7, 5), torch.ones(2, 7) > 0).states.shape  # [B, S, D]
        torch.Size([2, 7, 5])
    """

    def __init__(
        self,
        in_size: int,
        *,
        score: Callable[[int, int], Score] = Dot,
        num_layers: Count = 1,
        residual: bool = False,
    ) -> None:
        super().__init__(in_size)
        self.size = in_size
        self.residual = residual
        self.layers = nn.ModuleList(Attention(score(in_size, in_size), in_size) for _ in range(num_layers))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        """x [B, S, D], mask [B, S] to a Memory; the weights are recorded as `attention`."""
        x, mask = self.check(x, mask)
        for layer in self.layers:
            y = layer(x, layer.prepare(Memory(x, mask, x[:, 0])))
            x = x + y if self.residual else y
        return Memory(x, mask, masks.mean(x, mask))
