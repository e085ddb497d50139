"""A drop-in replacement for torch.nn's MultiheadAttention: same arguments, masks, state_dict and numbers.

    from weft.nn import MultiheadAttention          # instead of: from torch.nn import MultiheadAttention

torch's operation computes it. It adds errors that say what to do, and probes see its weights. Its masks are
torch's: True = ignored, unlike everywhere else in Weft. Read next: attention.py, whose MultiHead computes
keys and values once for all steps of a search.
"""

from typing import Any

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.masks import inspectable
from weft.nn.border import called, check_device, check_tensor
from weft.nn.drop_in_torch import InputShapeError
from weft.probe import record, traced, watching


class MultiheadAttention(nn.MultiheadAttention):
    """torch.nn.MultiheadAttention: attention from a query to keys and values, in several heads.

    Args:
        embed_dim: D, features of the query and of the result.
        num_heads: H, which divides D.
        dropout: dropout rate of the weights, in training.
        bias: whether the four linear maps have biases.
        add_bias_kv, add_zero_attn: a learned, or a zero, key and value after the others.
        kdim, vdim: features of keys and of values; None for D.
        batch_first: whether inputs are [B, T, D]; otherwise [T, B, D], as everywhere in torch.
        device, dtype: of the weights.

    Raises:
        ConfigError: the heads do not divide D.

    Source: Vaswani et al. 2017, section 3.2.2.

    Example:
        >>> x = torch.randn(2, 7, 6)
        >>> padding = torch.tensor([[False] * 7, [False] * 4 + [True] * 3])  # True = ignored, as in torch
        >>> y, weights = MultiheadAttention(6, 2, batch_first=True)(x, x, x, padding)
        >>> y.shape, weights.shape, float(weights[1, :, 4:].max().detach())
        (torch.Size([2, 7, 6]), torch.Size([2, 7, 7]), 0.0)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if num_heads < 1 or embed_dim % num_heads:
            raise ConfigError(
                f"MultiheadAttention: {num_heads} heads do not divide the width {embed_dim}; take a divisor "
                f"of {embed_dim}"
            )
        super().__init__(
            embed_dim,
            num_heads,
            dropout,
            bias,
            add_bias_kv,
            add_zero_attn,
            kdim,
            vdim,
            batch_first,
            device,  # type: ignore[arg-type]  # torch's own annotation leaves None out
            dtype,  # type: ignore[arg-type]
        )

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Like torch.nn's.

        Args:
            query: [B, T, D] with batch_first, [T, B, D] without, or [T, D] for one sequence.
            key, value: [B, S, ..] likewise.
            key_padding_mask: [B, S], True = padding; or numbers that are added to the energies.
            need_weights: whether the weights are returned too.
            attn_mask: [T, S] or [B * H, T, S], True = not allowed; or numbers that are added.
            average_attn_weights: the mean over heads, [B, T, S]; otherwise [B, H, T, S].
            is_causal: a hint that attn_mask is the causal mask, which must be given too.

        Returns:
            The result, like the query, and the weights or None.

        Raises:
            ShapeError: wrong shapes, dtypes or devices; or masks that leave a query no key, which gives
                NaN in torch.
        """
        if not traced():
            self._check(query, key, value)
            self._check_masks(query, key, key_padding_mask, attn_mask)
        seen = watching()
        y, weights = super().forward(
            query, key, value, key_padding_mask, need_weights or seen, attn_mask,
            average_attn_weights and not seen, is_causal,
        )  # fmt: skip
        if not seen or weights is None:
            return y, weights
        record("self_attention" if query is key else "cross_attention", weights.view(-1, *weights.shape[-3:]))
        mean = weights.mean(-3) if average_attn_weights else weights
        return y, mean if need_weights else None

    def _check(self, query: Any, key: Any, value: Any) -> None:
        axes: tuple[str, ...] = ("rows", "steps") if self.batch_first else ("steps", "rows")
        if isinstance(query, Tensor) and query.dim() == 2:
            axes = ("steps",)
        sizes = (("query", query, self.embed_dim), ("key", key, self.kdim), ("value", value, self.vdim))
        for what, x, size in sizes:
            check_tensor("MultiheadAttention", what, x, (*axes, size), self.out_proj.weight)
        rows = {one.shape[axes.index("rows")] if "rows" in axes else 1 for one in (query, key, value)}
        steps = {one.shape[axes.index("steps")] for one in (key, value)}
        if len(rows) > 1 or len(steps) > 1:
            shapes = " and ".join(str(list(one.shape)) for one in (query, key, value))
            raise InputShapeError(
                f"MultiheadAttention: expected query, key and value [{', '.join(axes)}, features] of the "
                f"same rows, and key and value of the same steps, got {shapes}"
            )

    def _check_masks(
        self, query: Tensor, key: Tensor, padding: Tensor | None, allowed: Tensor | None
    ) -> None:
        steps = 1 if self.batch_first and query.dim() == 3 else 0
        queries, keys = query.shape[steps], key.shape[steps]
        rows = (key.shape[1 - steps],) if key.dim() == 3 else ()
        heads = self.num_heads * (rows[0] if rows else 1)
        given = (
            ("key_padding_mask", padding, [(*rows, keys)]),
            ("attn_mask", allowed, [(queries, keys), (heads, queries, keys)]),
        )
        for what, mask, shapes in given:
            if mask is None:
                continue
            known = isinstance(mask, Tensor) and (mask.dtype == torch.bool or mask.is_floating_point())
            if not known or tuple(mask.shape) not in shapes:
                form = " or ".join(str(list(shape)) for shape in shapes)
                found = f"{list(mask.shape)} of {mask.dtype}" if isinstance(mask, Tensor) else called(mask)
                raise InputShapeError(
                    f"MultiheadAttention: expected {what} of shape {form}, of bool (True = ignored, as in "
                    f"torch) or floating point, got {found}"
                )
            check_device("MultiheadAttention", what, mask, query.device)
        masks = [mask for mask in (padding, allowed) if mask is not None]
        if not all(mask.is_cpu and inspectable(mask) for mask in masks):
            return
        hidden = torch.zeros(1, 1, 1, 1, dtype=torch.bool)  # [B, H, T, S]
        if padding is not None:
            hidden = _hidden(padding).reshape(-1, 1, 1, keys)
        if allowed is not None:
            each = (-1, self.num_heads) if allowed.dim() == 3 else (1, 1)
            hidden = hidden | _hidden(allowed).reshape(*each, queries, keys)
        empty = hidden.all(-1)
        if masks and bool(empty.any()):
            row, _, step = empty.nonzero()[0].tolist()
            whole = padding is not None and bool(_hidden(padding).reshape(-1, keys)[row].all())
            found = f"row {row} with padding alone" if whole else f"none for query {step} of row {row}"
            raise InputShapeError(
                f"MultiheadAttention: expected a key for each query, got {found}; in torch's masks True, or "
                "-inf in one of numbers, is ignored, so turn a mask of Weft around with ~mask"
            )


def _hidden(mask: Tensor) -> Tensor:
    """Where one of torch's masks hides a key for certain: True, -inf or NaN."""
    return mask if mask.dtype == torch.bool else ~(mask > -torch.inf)


MultiHeadAttention = MultiheadAttention
"""The same, as Keras spells it."""
