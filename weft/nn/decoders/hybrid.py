"""A Transformer decoder with a recurrent cell in place of self-attention, for fast decoding.

A step costs the same at every position, because a layer's memory of what was written is its cell's state.
Read next: transformer.py, with self-attention; ../cells/ssru.py, the usual cell.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from weft import masks
from weft.masks import harmless
from weft.native import WholeStep
from weft.nn.attention import HeadSource, MultiHead
from weft.nn.cells.cell import Cell, made
from weft.nn.cells.ssru import SSRU
from weft.nn.decoders.decoder import Decoder
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.norms import NormKind, norm_of
from weft.nn.ops import Dropout, Ends, Layers, Linear, PastSteps, decoding, transformer
from weft.nn.positions import added, positions_of
from weft.nn.randomness import recomputed
from weft.nn.transformer import GELU_GATED, Activation, FeedForward, Norm, Residual, blocks_of, form_of
from weft.setting_types import Count, DropoutRate, Size
from weft.shapes import check_choice
from weft.tree import State


class HybridState(NamedTuple):
    """The state of a hybrid decoder; its size does not grow with the text."""

    layers: tuple[State, ...]  # each layer's cell state
    read: Tensor  # [N] int64, positions so far
    source: decoding.SourceLayers | None


class HybridBlock(Residual):
    """A cell, cross-attention and a position-wise network, each with a residual connection and a norm.

    The arguments are those of HybridDecoder; memory_size is None without cross-attention.
    """

    def __init__(
        self,
        size: int,
        num_heads: int,
        inner: int,
        *,
        cell: Callable[[int, int], Cell],
        memory_size: Size | None,
        norm: Norm,
        norm_kind: NormKind,
        norm_epsilon: float,
        activation: Activation,
        bias: bool,
        dropout: DropoutRate,
        attention_dropout: DropoutRate,
    ) -> None:
        super().__init__()
        self.norm = norm
        self.cell = made(cell, size, size)
        self.cell_norm = norm_of(size, norm_kind, epsilon=norm_epsilon, bias=bias)
        if memory_size is not None:
            self.look = MultiHead(
                size,
                num_heads,
                memory_size=memory_size,
                dropout=attention_dropout,
                bias=bias,
                name="cross_attention",
            )
            self.look_norm = norm_of(size, norm_kind, epsilon=norm_epsilon, bias=bias)
        self.network = FeedForward(size, inner, activation=activation, bias=bias, dropout=dropout)
        self.network_norm = norm_of(size, norm_kind, epsilon=norm_epsilon, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        state: State,
        mask: Tensor | None,
        source: HeadSource | None,
        source_mask: Tensor | None,
    ) -> tuple[Tensor, State]:
        """x [N, T, D] to [N, T, D], and the cell's next state; arguments as in TransformerBlock.decode."""
        y, state = self.cell(self._norm_before(x, self.cell_norm), state, mask)
        x = self._looked(self._add(x, y, self.cell_norm), source, source_mask)
        return self._network(x, x), state

    def parts(self) -> dict[str, nn.Module]:
        return {"attention_norm": self.cell_norm, "query": self.cell, **super().parts()}


class HybridDecoder(Decoder):
    """A recurrent cell, cross-attention to the memory, and a position-wise network in each layer.

    Args:
        in_size: features of the input; projected if they differ from the width.
        encoder: its memory is read; None for a language model.
        cell: the recurrence, from D to D features.
        norm: "before" each sublayer or "after" its residual sum.
        positions: "sinusoidal", "learned" or "none", added to the input.
        size, num_layers, num_heads, inner, norm_kind, norm_epsilon, activation, bias, position_base,
            max_length, dropout, attention_dropout: as in TransformerEncoder.

    Raises:
        ConfigError: an unknown norm, or unknown positions.

    Source: Kim et al. 2019, "From research to production and back: ludicrously fast neural machine
    translation", section 3.

    Example:
        >>> import torch
        >>> decoder = HybridDecoder(5, size=6, num_layers=1, num_heads=2)
        >>> y, state = decoder(torch.zeros(2, 4, 5), decoder.start(None, 2))
        >>> y.shape  # [B, T, D]
        torch.Size([2, 4, 6])
    """

    def __init__(
        self,
        in_size: int,
        encoder: Encoder | None = None,
        *,
        size: Size = 256,
        num_layers: Count = 4,
        num_heads: Count = 4,
        inner: int | None = None,
        cell: Callable[[int, int], Cell] = SSRU,
        norm: Literal["before", "after"] = "before",
        norm_kind: NormKind = "layer",
        norm_epsilon: float = 1e-5,
        activation: Activation = "relu",
        bias: bool = True,
        positions: Literal["sinusoidal", "learned", "none"] = "sinusoidal",
        position_base: float = 10000.0,
        max_length: int = 1024,
        dropout: DropoutRate = 0.1,
        attention_dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__(in_size, encoder)
        check_choice("norm", norm, Literal["before", "after"])
        check_choice("positions", positions, Literal["sinusoidal", "learned", "none"])
        self.size = size
        self.num_heads = num_heads
        self.project = nn.Identity() if in_size == size else Linear(in_size, size)
        self.positions = positions_of(positions, size, max_length, base=position_base)
        self.dropout = Dropout(dropout)
        self.blocks, self.last_norm = blocks_of(
            size,
            num_layers,
            num_heads,
            inner,
            block=partial(HybridBlock, cell=cell),
            memory_size=None if encoder is None else encoder.size,
            norm=norm,
            norm_kind=norm_kind,
            norm_epsilon=norm_epsilon,
            activation=activation,
            bias=bias,
            dropout=dropout,
            attention_dropout=attention_dropout,
        )

    def start(self, memory: Memory | None, rows: int) -> HybridState:
        """The cells' first states, and the source's keys and values for every layer."""
        like = self.blocks[0].network.second.weight.new_zeros(rows, 1)
        source = None
        if memory is not None:
            mask = None if masks.full(memory.mask) else memory.mask[:, None, None]
            layers = tuple(HeadSource(*block.look.keys_values(memory.states)) for block in self.blocks)
            source = decoding.SourceLayers(layers, mask)
        read = torch.zeros(rows, dtype=torch.int64, device=like.device)
        return HybridState(tuple(block.cell.start(like) for block in self.blocks), read, source)

    def forward(
        self, x: Tensor, state: HybridState, mask: Tensor | None = None
    ) -> tuple[Tensor, HybridState]:
        x = self.project(harmless(x, mask))
        new = torch.ones_like(x[..., 0], dtype=torch.int64) if mask is None else mask.long()  # [N, T]
        counted = state.read[:, None] + new.cumsum(1)  # padding does not count as a position
        x = self.dropout(self.positions(x, (counted - 1).clamp(min=0)))
        sources, of_source = state.source or ((None,) * len(self.blocks), None)
        layers = []
        for block, before, source in zip(self.blocks, state.layers, sources, strict=True):
            x, after = recomputed(block, x, before, mask, source, of_source)
            layers.append(after)
        return self.last_norm(x), HybridState(tuple(layers), counted[:, -1], state.source)

    def whole_step(self, state: HybridState, ends: Ends) -> WholeStep | None:
        gates = self.blocks[0].cell.step_weights()
        if self.training or gates is None or gates.kind != "ssru" or bool(state.read.any()):
            return None
        network = self.blocks[0].network
        if network.activation in GELU_GATED:
            return None
        positions = added(self.positions, 0, ends.steps, network.first.weight)
        if positions is None:
            return None
        form, parts = form_of(self.blocks, self.num_heads), [block.parts() for block in self.blocks]
        layers = Layers(self, form, parts, self.last_norm, self.project, nn.Identity(), positions)
        carries = [carry.float() for (carry,) in state.layers]
        return transformer(layers, PastSteps(len(state.read), (), carries, state.source), ends)
