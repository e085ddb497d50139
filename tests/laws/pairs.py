"""An encoder and a decoder combined, and the laws of the combination.

Read next: test_decoders.py (every variant of a decoder), test_grid.py (every encoder with every decoder).
"""

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tests.laws.members import READ, ROWS, WRITE, Make, close, normal, ready, source
from weft import tree
from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.pointer import PointerDecoder
from weft.nn.encoders.encoder import Encoder, Memory
from weft.tree import State


class Pair(NamedTuple):
    """A decoder and its encoder, if it reads a memory."""

    decoder: Decoder
    encoder: Encoder | None

    def memory(self) -> Memory | None:
        """The encoder's memory of `source()`."""
        return None if self.encoder is None else self.encoder(*source())

    def start(self) -> State:
        return self.decoder.start(self.memory(), ROWS)

    def start_of(self, rows: list[int]) -> State:
        """These rows only (repetitions allowed), with padding up to their longest."""
        if self.encoder is None:
            return self.decoder.start(None, len(rows))
        x, mask = (each[rows] for each in source())
        longest = int(mask.sum(1).max())
        return self.decoder.start(self.encoder(x[:, :longest], mask[:, :longest]), len(rows))


def some(y: Any, *index: Any) -> Any:
    """y[index]; if y is a tree, as of a decoder that copies, of each of its tensors."""
    return tree.tree_map(lambda leaf: leaf[index], y)


def close_but_for_padding(got: Any, want: Any) -> None:
    """Assert equality; weights over the padding of a longer source must be 0."""
    parts = list(tree.leaves(got)), list(tree.leaves(want))
    longer = [one.shape[-1] - other.shape[-1] for one, other in zip(*parts, strict=True)]
    close(got, tuple(F.pad(each, (0, more)) for each, more in zip(parts[1], longer, strict=True)))


def pair(make: Make, make_encoder: Make | None, seed: int = 3, dtype: torch.dtype = torch.float64) -> Pair:
    """Build both, with no parameter at zero."""
    if make_encoder is None and getattr(make, "func", make) is PointerDecoder:
        pytest.skip("a pointer is refused without a source")
    encoder = None if make_encoder is None else ready(lambda: make_encoder(READ), dtype, seed)
    return Pair(ready(lambda: make(WRITE, encoder), dtype, seed + 10), encoder)


def one_call_equals_steps(it: Pair, x: Tensor, cuts: list[int]) -> None:
    """Law 1: x [B, T, D] all at once, in pieces that end at `cuts`, and step by step."""
    whole, last = it.decoder(x, it.start())
    assert next(tree.leaves(whole)).shape == (*x.shape[:2], it.decoder.size)
    for ends in (list(range(1, x.shape[1] + 1)), [*cuts, x.shape[1]]):
        state, begin = it.start(), 0
        for end in ends:
            y, state = it.decoder(x[:, begin:end], state)
            close(y, some(whole, slice(None), slice(begin, end)))
            begin = end
        close(state, last)


def masked_prefix_equals_prefix(it: Pair, x: Tensor, mask: Tensor, cuts: list[int]) -> None:
    """Laws 2 and 3: after a masked prefix, given in pieces, each row continues as after its own prefix."""
    state, begin, ys = it.start(), 0, []
    for end in [*cuts, x.shape[1]]:
        y, state = it.decoder(x[:, begin:end], state, mask[:, begin:end])
        ys.append(y)
        begin = end
    more = normal(len(x), 4, x.shape[2], seed=9)
    y1, state = it.decoder(more[:, :1], state)
    y3, _ = it.decoder(more[:, 1:], state)
    for row, length in enumerate(mask.sum(1).tolist()):
        alone, here = it.start_of([row]), slice(row, row + 1)
        if length:
            y, alone = it.decoder(x[here, :length], alone)
            close_but_for_padding(some(tree.join_steps(ys), here, slice(length)), y)
        y, _ = it.decoder(more[here], alone)
        close_but_for_padding(some(tree.join_steps([y1, y3]), here), y)


def chosen_rows_equal_rows(it: Pair, x: Tensor, mask: Tensor) -> None:
    """Law 4: `step` on selected rows equals the selected rows of `step`."""
    rows = torch.tensor([4, 1, 1, 0, 3, 3, 2])
    _, state = it.decoder(x, it.start(), mask)
    token = normal(len(x), 1, x.shape[2], seed=9)
    y, after = it.decoder(token, state)
    chosen, after_chosen = it.decoder(token[rows], tree.take(state, rows))
    close(chosen, some(y, rows))
    close(after_chosen, tree.take(after, rows))


def beams_share_a_source(it: Pair, x: Tensor, mask: Tensor, width: int = 3) -> None:
    """Hypotheses that share their source (tree.fan) equal rows that each have a copy of it."""
    copies = torch.arange(len(x)).repeat_interleave(width)
    _, before = it.decoder(x, it.start(), mask)
    shared = tree.fan(before, width)
    copied = it.decoder(x[copies], it.start_of(copies.tolist()), mask[copies])[1]
    words = [normal(len(copies), steps, x.shape[2], seed=9 + steps) for steps in (1, 2, 1)]
    within = torch.cat([torch.tensor([2, 0, 0]) + width * row for row in range(len(x))])
    for word in words:  # one step, two at once, one step; hypotheses are reordered after each
        y, shared = it.decoder(word, shared)
        z, copied = it.decoder(word, copied)
        close_but_for_padding(y, z)
        shared, copied = tree.reorder(shared, within), tree.take(copied, within)
    kept = torch.tensor([4, 1])
    rows = (kept[:, None] * width + torch.arange(width)).flatten()
    token = normal(len(rows), 1, x.shape[2], seed=30)
    close_but_for_padding(
        it.decoder(token, tree.keep_sources(shared, kept, width))[0],
        it.decoder(token, tree.take(copied, rows))[0],
    )
