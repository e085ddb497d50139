"""The recurrences with a matrix per head, all steps in compiled code, float32 on the CPU.

S_t = diag(a_t) S_{t-1} + w_t (e_t^T S_{t-1}) + k_t v_t^T, o_t = S_t^T q_t. A matrix stays in the first-level
cache from step to step, so that the products of chunks, their solve and their copies are saved.

Read next: ../chunks.py, whose kinds of recurrence call this; ../../../native/matrix.cpp.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weft import native
from weft.native import pointer

CHUNK = 16
"""Steps between the states that the backward pass starts from; as in matrix.cpp."""

Scan = tuple[Tensor, Tensor]


class Terms(NamedTuple):
    """The factors of a recurrence, for all steps.

    q, k: [B, T, H, K].
    v: [B, T, H, V].
    a: [B, T, H, 1] or [B, T, H, K].
    e: [B, T, H, K], or None where there is no term e.
    w: [B, T, H, K], or None for w = k.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    a: Tensor
    e: Tensor | None = None
    w: Tensor | None = None


def by_steps(terms: Terms, s: Tensor) -> Scan:
    """The plain loop.

    Args:
        terms: of all steps.
        s: [B, H, K, V], the initial state.

    Returns:
        o [B, T, H, V], and the last state.
    """
    outs = []
    for t in range(terms.q.shape[1]):
        q, k, v, a, e, w = (None if part is None else part[:, t, :, :, None] for part in terms)
        assert q is not None and k is not None and v is not None and a is not None
        entering = k * v.mT
        if e is not None:
            entering = entering + (k if w is None else w) * (e * s).sum(-2, keepdim=True)
        s = a * s + entering
        outs.append((q * s).sum(-2))
    return torch.stack(outs, 1), s


def compiled(terms: Terms, s: Tensor) -> Scan:
    """`by_steps` in compiled code."""
    given = [*(None if part is None else _dense(part) for part in terms), s]
    wanted = torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in given)
    o, last = _Matrix.apply(wanted, *given)
    return o, last


def why_not_compiled(*given: Tensor) -> str:
    """Why compiled code cannot compute a recurrence of these tensors; "" if it can."""
    if native.loaded("matrix").library is None:
        return native.loaded("matrix").reason
    if any(each.device.type != "cpu" or each.dtype is not torch.float32 for each in given):
        return (
            f"the compiled scan computes in float32 on the CPU, not in {given[0].dtype} on {given[0].device}"
        )
    plain = all(type(each) in (Tensor, nn.Parameter) and each.numel() for each in given)
    return "" if plain else "the compiled scan takes plain tensors that are not empty"


class _Matrix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, training: bool, *given: Tensor | None) -> Scan:  # type: ignore[override]
        *parts, s = given
        assert s is not None
        terms = Terms(*parts)  # type: ignore[arg-type]
        last = s.clone(memory_format=torch.contiguous_format)
        rows, steps, heads, _ = terms.v.shape
        o, kept, found = terms.v.new_empty(terms.v.shape), None, None
        if training:
            kept = s.new_empty(rows * heads, -(-steps // CHUNK), *s.shape[2:])
            found = None if terms.e is None else o.new_empty(o.shape)
        held, job = _job(terms, last, kept, found, o, training=False)
        native.call("weft_matrix_forward", job)
        del held
        if training:
            ctx.save_for_backward(*terms, s, kept, found)
        ctx.set_materialize_grads(False)
        return o, last

    @staticmethod
    def backward(ctx: Any, do: Tensor | None, dlast: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        *parts, s, kept, found = ctx.saved_tensors
        terms = Terms(*parts)
        if torch.is_grad_enabled():  # for a second derivative
            return None, *_gradients_as_graph(terms, s, (do, dlast))
        zeros = torch.zeros_like(terms.v, memory_format=torch.contiguous_format)
        do = zeros if do is None else do.contiguous()
        ds = s.new_zeros(s.shape) if dlast is None else dlast.clone(memory_format=torch.contiguous_format)
        held, job = _job(terms, s, kept, found, None, training=True)
        by = Terms(*(None if part is None else part.new_empty(part.shape) for part in terms))  # type: ignore[arg-type]
        back = native.MatrixBack(job, job.slabs, *map(pointer, (do, ds, *by)))
        native.call("weft_matrix_backward", back)
        del held
        return None, *by, ds


def _job(
    terms: Terms, s: Tensor, kept: Tensor | None, found: Tensor | None, o: Tensor | None, *, training: bool
) -> tuple[tuple[Tensor, ...], native.Matrix]:
    """The tensors that must outlive the call, and the job for the compiled code."""
    (rows, steps, heads, keys), size = terms.k.shape, terms.v.shape[-1]
    slabs = native.slabs(rows * heads)
    bounds = torch.arange(slabs + 1) * (rows * heads) // slabs
    strides = torch.tensor([part.stride()[:3] if part is not None else (0, 0, 0) for part in terms])
    needs = native.loaded("matrix").library.weft_matrix_room(keys, size, training)
    room = s.new_zeros(slabs, needs)
    sizes = (steps, rows, heads, keys, size, terms.a.shape[-1], slabs, needs)
    pointers = map(pointer, (bounds, strides, *terms, s, kept, found, o, room))
    return (bounds, strides, room), native.Matrix(*sizes, *pointers)


def _dense(tensor: Tensor) -> Tensor:
    """A tensor whose features are contiguous; copied if necessary."""
    return tensor if tensor.stride(3) == 1 or tensor.shape[3] == 1 else tensor.contiguous()


def _gradients_as_graph(terms: Terms, s: Tensor, by: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
    given = (*terms, s)
    wanted = [each for each in given if each is not None and each.requires_grad]
    with torch.enable_grad():
        pairs = [(out, grad) for out, grad in zip(by_steps(terms, s), by, strict=True) if grad is not None]
        outs, grads = zip(*pairs, strict=True)
        found = iter(torch.autograd.grad(outs, wanted, grads, create_graph=True, allow_unused=True))
    return tuple(next(found) if each is not None and each.requires_grad else None for each in given)
