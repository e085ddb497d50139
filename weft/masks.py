"""Masks are bool, True = real (not padding), everywhere in Weft.

What layers ask of a mask (is there padding, and where) is found on the CPU when a batch is made and travels
with the mask to the device, because asking a GPU for a value makes Python wait for it.

Cells and stacks accept padding anywhere (left, right, in between) with any content. Kernels skip padding or
keep the state there, so they need the real positions first and finite padding. `settle` rearranges the
input, and `restore` restores the order of the outputs.
Read next: nn/cells/cell.py, which calls both around every kernel.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, Literal, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.errors import ShapeError
from weft.probe import exporting, traced, within

_kept: ContextVar[bool] = ContextVar("kept", default=False)
_static: ContextVar[bool] = ContextVar("static", default=False)

Arrangement = Literal["full", "first", "scattered"]
Batch = TypeVar("Batch")

HARMLESS = 1e18  # below this norm of x no product of padding with a weight overflows


class MaskFacts:
    """What layers ask of a mask [B, T], each found when it is first asked for."""

    def __init__(self, twin: Tensor, device: torch.device) -> None:
        self.twin, self.device = twin, device

    @cached_property
    def full(self) -> bool:
        """Whether all positions are real."""
        return bool(self.twin.all())

    @cached_property
    def arrangement(self) -> Arrangement:
        """Whether the real positions are everywhere, first in each row, or scattered."""
        if self.full:
            return "full"
        return "scattered" if bool((self.twin[:, 1:] > self.twin[:, :-1]).any()) else "first"

    @cached_property
    def empty(self) -> int:
        """The first row without a real position; -1 if each row has one."""
        real = self.twin.any(1)
        return -1 if bool(real.all()) else int(real.int().argmin())

    @cached_property
    def places(self) -> Tensor:
        """[N] int64, the real positions, counted row by row, on the device of the mask."""
        found = self.twin.flatten().nonzero()[:, 0]
        return sent(found, self.device)


def facts(mask: Tensor) -> MaskFacts:
    """The facts noted on a mask, or read from it: a GPU is read once, not at every layer."""
    if mask.device.type == "cpu":
        return MaskFacts(mask, mask.device)
    if (known := known_facts(mask)) is not None:
        return known
    return note(mask, mask.cpu())


def known_facts(mask: Tensor) -> MaskFacts | None:
    """The facts noted on a mask; None without a note, or if the mask has changed since."""
    version, known = getattr(mask, "_facts", (None, None))
    return known if known is not None and version == _version(mask) else None


def note(mask: Tensor, twin: Tensor) -> MaskFacts:
    """Let the facts of a mask [B, T] travel with it; on the CPU they are found again on demand."""
    found = MaskFacts(twin, mask.device)
    if mask.device.type != "cpu":
        if not _static.get():  # a recorded graph must not wait for a copy, and needs no places
            found.places  # noqa: B018  copied to the device now, before anything is computed there
        mask._facts = (_version(mask), found)  # type: ignore[attr-defined]
    return found


def _version(mask: Tensor) -> int:
    """How often a mask was changed in place; tensors of inference mode do not count it."""
    return 0 if mask.is_inference() else mask._version


def static() -> bool:
    """Whether a computation is recorded, whose shapes must not depend on a mask; see train/captured.py."""
    return _static.get()


def static_shapes() -> AbstractContextManager[None]:
    """A block in which shapes do not depend on masks."""
    return within(_static, True)


def derived(function: Callable[..., Tensor], *masks: Tensor) -> Tensor:
    """function(*masks), another mask [B, T], with its facts, if those of the masks are known."""
    found, known = function(*masks), [known_facts(mask) for mask in masks]
    twins = [one.twin for one in known if one is not None]
    if len(twins) == len(masks):
        note(found, function(*twins))
    return found


def or_all(mask: Tensor | None, x: Tensor) -> Tensor:
    """The mask; without one, that of x [B, T, ..] whose positions are all real."""
    return torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if mask is None else mask


def strided(mask: Tensor, stride: int) -> Tensor:
    """Every so many positions of a mask: [B, T] to [B, ceil(T / stride)]."""
    return derived(lambda mask: mask[:, ::stride], mask)


def to_device(batch: Batch, device: torch.device) -> Batch:
    """A batch on a device: a named tuple whose tensors move there, and its masks [B, T] with their facts."""
    moved = [_moved(part, device) for part in batch]  # type: ignore[attr-defined]
    return type(batch)(*moved)


def _moved(part: Any, device: torch.device) -> Any:
    if not isinstance(part, Tensor):
        if hasattr(part, "to"):
            return part.to(device)
        return to_device(part, device) if isinstance(part, tuple) and hasattr(part, "_fields") else part
    there = sent(part, device)
    if part.dtype == torch.bool and part.dim() == 2 and part.device.type == "cpu" != there.device.type:
        note(there, part)
    return there


def sent(part: Tensor, device: torch.device) -> Tensor:
    """A tensor on a device; from pinned memory to a GPU, so that Python need not wait for the copy."""
    if device.type == "cuda" and part.device.type == "cpu":
        return part.pin_memory().to(device, non_blocking=True)
    return part.to(device)


def select(states: Tensor, mask: Tensor) -> Tensor:
    """The states at real positions: [B, T, ..] and [B, T] to [N, ..]."""
    if _static.get():
        raise NotImplementedError("the number of real positions differs from batch to batch")
    if mask.device.type == "cpu":
        return states[mask]
    return states.flatten(0, 1).index_select(0, facts(mask).places)


def positions(states: Tensor, mask: Tensor) -> Tensor:
    """`select`; where shapes are static, all positions [B T, ..], whose results `summed` leaves out."""
    return states.flatten(0, 1) if _static.get() else select(states, mask)


def summed(values: Tensor, mask: Tensor) -> Tensor:
    """The sum of values [N, ..] of `positions` over the real ones."""
    if not _static.get():
        return values.sum()
    return values.masked_fill(~mask.flatten().view(-1, *[1] * (values.dim() - 1)), 0.0).sum()


def grid(size: int) -> int:
    """The next size of a coarse grid: multiples of 8, and from 128 on of an eighth to a sixteenth of it."""
    step = max(8, (1 << (size - 1).bit_length()) >> 4)
    return -(-size // step) * step


def fill(part: Tensor, rows: int, columns: int) -> Tensor:
    """Tokens, features or a mask [B, S, ..] with zeros, or False, in new rows and columns."""
    features = (0, 0) * (part.dim() - 2)
    return F.pad(part, (*features, 0, columns - part.shape[1], 0, rows - part.shape[0]))


def repeat(part: Tensor, rows: int) -> Tensor:
    """[B, ..] with copies of the first row after the others, [rows, ..].

    Example:
        >>> repeat(torch.tensor([7, 8]), 4).tolist()
        [7, 8, 7, 7]
    """
    return torch.cat([part, part[:1].expand(rows - len(part), *part.shape[1:])])


def from_lengths(lengths: Tensor, size: int) -> Tensor:
    """The mask [B, S] of rows with the given lengths [B], padded at the end."""
    return torch.arange(size, device=lengths.device)[None] < lengths[:, None]


def lengths(mask: Tensor) -> Tensor:
    """Number of real positions per row: [B, S] bool to [B] int64."""
    return mask.sum(1)


def causal(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """[T, S] bool: the last query sees all keys, the one before it all but the last, and so on."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def last(states: Tensor, mask: Tensor) -> Tensor:
    """The state at each row's last real position: [B, S, D] and [B, S] to [B, D]."""
    index = (mask.shape[1] - 1 - mask.flip(1).int().argmax(1)).view(-1, 1, 1)
    return states.gather(1, index.expand(-1, 1, states.shape[2])).squeeze(1)


def mean(states: Tensor, mask: Tensor) -> Tensor:
    """The mean over each row's real positions: [B, S, D] and [B, S] to [B, D]."""
    weights = mask.to(states.dtype)[..., None]
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)


def reverse(states: Tensor, mask: Tensor) -> Tensor:
    """Reverse the real positions of each row of [B, S, D], which come first; padding stays in place."""
    position = torch.arange(mask.shape[1], device=mask.device)[None]
    count = mask.sum(1, keepdim=True)
    index = torch.where(position < count, count - 1 - position, position)
    places = index + mask.shape[1] * torch.arange(mask.shape[0], device=mask.device)[:, None]
    # whole rows: `gather` looks for each feature by itself and took seven times as long
    return states.flatten(0, 1).index_select(0, places.flatten()).view(states.shape)


def full(mask: Tensor) -> bool:
    """Whether all positions are real; False in an exported graph, which must hold for padding as well."""
    return not exporting() and not _kept.get() and facts(mask).full


def kept() -> AbstractContextManager[None]:
    """No mask counts as full in this block, so a state has the same tensors as in an exported graph."""
    return within(_kept, True)


def check_mask(mask: Tensor, *, what: str = "mask") -> None:
    """Check that each row has a real position; otherwise softmax would give NaN."""
    if exporting():  # a graph cannot depend on values
        return
    if (row := facts(mask).empty) >= 0:
        raise ShapeError(f"{what}: row {row} has no real position; give each row at least one")


def settle(x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """x with its real positions first and harmless padding, the mask, and where each was, for `restore`."""
    if mask is None:
        return x, None, None
    if torch.jit.is_tracing() or exporting():
        return _zeroed(x, mask), mask, None
    known = arrangement(mask) or "scattered"
    if known == "full":
        return x, None, None
    if known == "first":
        return harmless(x, mask), mask, None
    order = (~mask).to(torch.uint8).argsort(dim=1, stable=True)
    first = mask.gather(1, order)
    return _zeroed(x.gather(1, order[..., None].expand_as(x)), first), first, order.argsort(1)


def restore(y: Tensor, places: Tensor | None) -> Tensor:
    """Outputs [B, T, H] in the original order, before `settle`."""
    return y if places is None else y.gather(1, places[..., None].expand_as(y))


def harmless(x: Tensor, mask: Tensor | None) -> Tensor:
    """x [B, T, D] with padding set to zero if it may be non-finite or very large.

    On the CPU filling costs ten times as much as checking.
    """
    if mask is None:
        return x
    if inspectable(x) and x.device.type == "cpu" and bool(torch.linalg.vector_norm(x.detach()) < HARMLESS):
        return x
    return _zeroed(x, mask)


def arrangement(mask: Tensor) -> Arrangement | None:
    """Where the real positions of a mask [B, T] are; None if that is not known and it may not be read."""
    if (known := facts(mask) if inspectable(mask) else known_facts(mask)) is None:
        return None
    return known.arrangement


def inspectable(tensor: Tensor) -> bool:
    """Whether code may branch on a tensor's values: it is a plain tensor and is not being traced."""
    plain = type(tensor) in (Tensor, nn.Parameter) and tensor.device.type != "meta"
    return plain and not traced()


def _zeroed(x: Tensor, mask: Tensor) -> Tensor:
    return x.masked_fill(~mask[..., None], 0.0)
