"""What stands around a decoder in a search by compiled code: token vectors and output layer.

Read next: transformer.py and recurrent.py, the steps; ../../../search/whole.py, which runs them.
"""

from ctypes import Structure
from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft import native
from weft.native import KINDS, Predict, pointer
from weft.nn.kernels import choice, tiles
from weft.nn.kernels.choice import fused
from weft.nn.kernels.panels import Packing, kept, packing, why_not_in_search
from weft.probe import changing, watching

PLAIN = Packing("float32", tiled=False)


class Vectors(NamedTuple):
    """Token vectors: the table of a module times a scale."""

    of: nn.Module
    table: Tensor  # [V, E]
    scale: float


class Output(NamedTuple):
    """The output layer of a module: log softmax(W project(h) + b)."""

    of: nn.Module
    project: nn.Module | None  # a linear map without bias
    weight: Tensor  # [V, D]
    bias: Tensor  # [V]


class Ends(NamedTuple):
    """What stands around a decoder, and how far a search may go."""

    vectors: Vectors
    output: Output
    width: int  # W
    steps: int


def why_not(ends: Ends, *weights: Tensor) -> str:
    """Why compiled code cannot take the steps of a search, as far as all decoders are concerned.

    Args:
        ends: around the decoder.
        weights: some of the decoder's.
    """
    if choice.traced() or fused() == "torch":
        return "torch's operations were asked for"
    if watching() or changing():
        return "a probe reads or changes intermediate values"
    output = ends.output
    if output.weight.dtype != output.bias.dtype or len(output.weight) > len(ends.vectors.table):
        return "the output layer has a form of its own"
    first = output.weight
    if any(one.dtype != first.dtype or one.device != first.device for one in (ends.vectors.table, *weights)):
        return "the weights differ in dtype or device"
    return why_not_in_search(first.detach())


class Held:
    """A struct for compiled code, and the tensors to which it points.

    Args:
        sources: B.
        ends: around the decoder.
    """

    def __init__(self, sources: int, ends: Ends) -> None:
        self.ends = ends
        self.sources = sources
        self.slabs = native.slabs(sources)
        self.most = -(-sources // self.slabs) * ends.width
        """Most rows of a slab."""
        self.tensors: list[Tensor] = []

    def hold(self, tensor: Tensor | None) -> int | None:
        """The address of a tensor, which lives as long as this."""
        if tensor is not None:
            self.tensors.append(tensor)
        return pointer(tensor)

    def plain(self, tensor: Tensor | None) -> int | None:
        """The address of its numbers in float32."""
        return self.hold(None if tensor is None else tensor.detach().float().contiguous())

    def room(self, how: Packing, widest: int) -> tuple[int, int | None]:
        """A buffer for rows of at most `widest` numbers that are split or rounded: its size and address."""
        cut = how.room(self.most, widest, self.slabs)
        self.hold(cut)
        return tiles.given(cut)

    def head(self, job: Structure, size: int) -> None:
        """Set `head`, `project_panel`, `table` and `scale` of a struct for features [.., size]."""
        of, project, weight, bias = self.ends.output
        classes, inputs = weight.shape
        how = packing(of, weight, self.most)
        panel = kept(of, [weight], lambda how: how.panels(weight), how)
        if project is not None:
            inner: Tensor = project.weight  # type: ignore[assignment]
            job.project_panel = self.hold(kept(project, [inner], lambda how: how.panels(inner), how))
        job.head = Predict(
            self.most, inputs, classes, 1, self.hold(panel), self.plain(bias), None, None,
            *self.room(how, max(inputs, size)), KINDS[how.kind],
        )  # fmt: skip
        of, table, scale = self.ends.vectors
        if table.dtype != torch.float32:
            table = kept(of, [table], lambda _: self.ends.vectors.table.detach().float(), PLAIN)
        job.scale, job.table = scale, self.plain(table)
