"""Recurrences of a matrix per head: step by step in compiled code, or in chunks of matrix products.

A state S [K, V] decays by rows: S_t = diag(a_t) S_{t-1} + w_t (e_t^T S_{t-1}) + k_t v_t^T, o_t = S_t^T q_t,
with one a_t per head or one per row. Compiled code (float32 on the CPU) keeps a matrix in the first-level
cache from step to step, so that the products of chunks, their solve and their copies are saved. In half
precision on a GPU flash-linear-attention computes all steps, where it is installed.

Within a chunk the influence of step j on step i is the product of the a after j up to i. It is never taken as
the quotient of two running products, which a step that forgets all would make 0 / 0, or as the difference of
their logarithms, in which that step would drown those after it. With one a per row the chunk is halved again
and again, and products begin and end at the border between the halves. Read next: ../cells/matrix.py;
flash_linear_attention.py; ../../native/matrix.cpp.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from weft import native
from weft.native import jobs, pointer
from weft.nn.kernels import choice
from weft.nn.kernels.choice import compiles
from weft.nn.kernels.twin import twin_gradients
from weft.probe import traced

KEPT_STEPS = 16
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
    """The plain loop: o [B, T, H, V], and the last state [B, H, K, V]."""
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
            kept = s.new_empty(rows * heads, -(-steps // KEPT_STEPS), *s.shape[2:])
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
            return None, *twin_gradients(_by_steps, (*terms, s), (do, dlast))
        zeros = torch.zeros_like(terms.v, memory_format=torch.contiguous_format)
        do = zeros if do is None else do.contiguous()
        ds = s.new_zeros(s.shape) if dlast is None else dlast.clone(memory_format=torch.contiguous_format)
        held, job = _job(terms, s, kept, found, None, training=True)
        by = Terms(*(None if part is None else part.new_empty(part.shape) for part in terms))  # type: ignore[arg-type]
        back = jobs.MatrixBack(job, job.slabs, *map(pointer, (do, ds, *by)))
        native.call("weft_matrix_backward", back)
        del held
        return None, *by, ds


def _job(
    terms: Terms, s: Tensor, kept: Tensor | None, found: Tensor | None, o: Tensor | None, *, training: bool
) -> tuple[tuple[Tensor, ...], jobs.Matrix]:
    """The tensors that must outlive the call, and the job for the compiled code."""
    (rows, steps, heads, keys), size = terms.k.shape, terms.v.shape[-1]
    slabs = native.slabs(rows * heads)
    bounds = torch.arange(slabs + 1) * (rows * heads) // slabs
    strides = torch.tensor([part.stride()[:3] if part is not None else (0, 0, 0) for part in terms])
    needs = native.loaded("matrix").library.weft_matrix_room(keys, size, training)
    room = s.new_zeros(slabs, needs)
    sizes = (steps, rows, heads, keys, size, terms.a.shape[-1], slabs, needs)
    pointers = map(pointer, (bounds, strides, *terms, s, kept, found, o, room))
    return (bounds, strides, room), jobs.Matrix(*sizes, *pointers)


def _dense(tensor: Tensor) -> Tensor:
    """A tensor whose features are contiguous; copied if necessary."""
    return tensor if tensor.stride(3) == 1 or tensor.shape[3] == 1 else tensor.contiguous()


def _by_steps(*given: Tensor) -> Scan:
    *terms, s = given
    return by_steps(Terms(*terms), s)


CHUNK = 64  # steps per chunk, a power of two


def widened(asked: Any, state: Tensor) -> tuple[Any, Tensor]:
    """A recurrence and its state in float32 at least, for sums over many steps."""
    wide = torch.promote_types(state.dtype, torch.float32)
    return type(asked)(*(part.to(wide) for part in asked)), state.to(wide)


def all_steps(asked: Any, state: Tensor, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor]:
    """All steps of a recurrence: o [B, T, H, V], and the last state [B, H, K, V], in float32 at least."""
    if choice.forced("cells") == "fla" and dtype is not None and not traced():
        from weft.nn.kernels import flash_linear_attention as library  # on a GPU only, and if asked for

        if not library.why_not(asked, state, dtype):
            return library.run(asked, state, dtype)
    asked, state = widened(asked, state)
    return compiled(asked.terms(), state) if compiles("matrix", *asked, state) else asked.chunks(state)


def masked_steps(asked: Any, mask: Tensor) -> Any:
    """The same recurrence, but where the mask [B, T] is False S does not change."""
    padding = ~mask[..., None, None]
    return asked._replace(**{name: getattr(asked, name).masked_fill(padding, 0.0) for name in asked.cleared})


class Decayed(NamedTuple):
    """S_t = diag(a_t) S_{t-1} + k_t v_t^T, o_t = S_t^T q_t.

    query, key: [B, T, H, K].
    value: [B, T, H, V].
    decay: log a_t <= 0, [B, T, H, 1] or [B, T, H, K].

    Example:
        >>> import torch
        >>> one = torch.ones(1, 3, 1, 1)  # [B, T, H, K]
        >>> o, state = Decayed(one, one, one, (one / 2).log()).all(torch.zeros(1, 1, 1, 1))
        >>> [round(value, 4) for value in o.flatten().tolist()]  # [B, T, H, V]: each step halves S and adds 1
        [1.0, 1.5, 1.75]
    """

    query: Tensor
    key: Tensor
    value: Tensor
    decay: Tensor
    cleared = ("key", "decay")  # to zero, where S does not change
    masked = masked_steps
    all = all_steps

    def one(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """The first step: state [B, H, K, V] gives o [B, 1, H, V] and the next state."""
        q, k, v, decay = (part[:, 0] for part in self)
        state = decay.exp()[..., None] * state + k[..., None] * v[..., None, :]
        return _read(q, state), state

    def terms(self) -> Terms:
        """As compiled code takes it."""
        return Terms(self.query, self.key, self.value, self.decay.exp())

    def chunks(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """`all` in chunks of matrix products.

        Source: Sun et al. 2023, "Retentive network", equation 7; Yang et al. 2023, "Gated linear attention
        Transformers with hardware-efficient training", section 4.
        """
        q, k, v, decay = (_chunks(part) for part in self)
        since = decay.cumsum(-2).exp()
        befores, state = _carried(state, since, (k * _towards(decay)).mT @ v)
        weighed = q @ k.mT * _weights(decay) if decay.shape[-1] == 1 else _pairs(q, k, _halves(decay))
        o = weighed @ v + (q * since) @ befores
        return _steps(o, self.query.shape[1]), state


class Replaced(NamedTuple):
    """S_t = a_t S_{t-1} + b_t k_t (v_t - a_t S_{t-1}^T k_t)^T, o_t = S_t^T q_t; the delta rule.

    query, key: [B, T, H, K].
    value: [B, T, H, V].
    decay: log a_t <= 0, [B, T, H, 1].
    rate: b_t, [B, T, H, 1].
    """

    query: Tensor
    key: Tensor
    value: Tensor
    decay: Tensor
    rate: Tensor
    cleared = ("decay", "rate")  # to zero, where S does not change
    masked = masked_steps
    all = all_steps

    def transition(self) -> Tensor:
        """a_t (I - b_t k_t k_t^T), [B, T, H, K, K]: what multiplies the state."""
        turned = torch.diag_embed(torch.ones_like(self.key))
        turned = turned - (self.rate * self.key)[..., None] * self.key[..., None, :]
        return self.decay.exp()[..., None] * turned

    def one(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """The first step: state [B, H, K, V] gives o [B, 1, H, V] and the next state."""
        q, k, v, decay, rate = (part[:, 0] for part in self)
        state = decay.exp()[..., None] * state
        change = rate * (v - (k[..., None] * state).sum(-2))
        state = state + k[..., None] * change[..., None, :]
        return _read(q, state), state

    def terms(self) -> Terms:
        """As compiled code takes it."""
        q, k, v, decay, rate = self
        kept = decay.exp()
        return Terms(q, k, rate * v, kept, (-kept * rate) * k)

    def chunks(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """`all` in chunks of matrix products.

        The changes u_i = b_i (v_i - a_i S_{i-1}^T k_i) of a chunk solve (I + A) u = b (v - E S), where
        A_ij = b_i k_i^T k_j, decayed, is strictly lower triangular. One triangular solve for each chunk gives
        u as a map of the state S before it.

        Source: Yang et al. 2024, "Parallelizing linear Transformers with the delta rule over sequence
        length", section 3.2 (the UT transform); Yang et al. 2024, "Gated delta networks", section 3.3.
        """
        q, k, v, decay, rate = (_chunks(part) for part in self)
        weights, since = _weights(decay), decay.cumsum(-2).exp()
        system = rate * weights * (k @ k.mT)  # the solver reads what is below the diagonal
        known = torch.cat([rate * v, (-rate * since) * k], -1)
        solved = torch.linalg.solve_triangular(system, known, upper=False, unitriangular=True)
        fixed, moved = solved.split([v.shape[-1], q.shape[-1]], -1)
        kept = (k * _towards(decay)).mT
        befores, state = _carried(state, since, kept @ fixed, kept @ moved)
        o = (weights * (q @ k.mT)) @ (fixed + moved @ befores) + (q * since) @ befores
        return _steps(o, self.query.shape[1]), state


class Corrected(NamedTuple):
    """S_t = diag(a_t) S_{t-1} + w_t (e_t^T S_{t-1}) + k_t v_t^T, o_t = S_t^T q_t; the delta rule by rows.

    query, key: [B, T, H, K].
    value: [B, T, H, V].
    decay: log a_t, from -e^(-1/2) to 0 (flash_linear_attention.py relies on it), [B, T, H, K].
    erase, write: e_t and w_t, [B, T, H, K].
    """

    query: Tensor
    key: Tensor
    value: Tensor
    decay: Tensor
    erase: Tensor
    write: Tensor
    cleared = ("key", "decay", "erase")  # to zero, where S does not change
    masked = masked_steps
    all = all_steps

    def transition(self) -> Tensor:
        """diag(a_t) + w_t e_t^T, [B, T, H, K, K]: what multiplies the state."""
        return torch.diag_embed(self.decay.exp()) + self.write[..., None] * self.erase[..., None, :]

    def one(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """The first step: state [B, H, K, V] gives o [B, 1, H, V] and the next state."""
        q, k, v, decay, erase, write = (part[:, 0] for part in self)
        found = (erase[..., None] * state).sum(-2, keepdim=True)
        state = decay.exp()[..., None] * state + write[..., None] * found + k[..., None] * v[..., None, :]
        return _read(q, state), state

    def terms(self) -> Terms:
        """As compiled code takes it."""
        q, k, v, decay, erase, write = self
        return Terms(q, k, v, decay.exp(), erase, write)

    def chunks(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """`all` in chunks of matrix products.

        As `Replaced.all`, for u_i = e_i^T S_{i-1}: (I - A) u = B v + E S with A_ij = e_i^T w_j and
        B_ij = e_i^T k_j for j < i, decayed by rows.
        """
        q, k, v, decay, erase, write = (_chunks(part) for part in self)
        reach, towards = decay.cumsum(-2), _towards(decay)
        since, old = reach.exp(), F.pad(reach[..., :-1, :], (0, 0, 1, 0)).exp()
        halves = _halves(decay, up_to=1)
        erasing = _before(erase, write, halves)
        known = torch.cat([_before(erase, k, halves) @ v, erase * old], -1)
        solved = torch.linalg.solve_triangular(-erasing, known, upper=False, unitriangular=True)
        fixed, moved = solved.split([v.shape[-1], q.shape[-1]], -1)
        kept = (write * towards).mT
        written = kept @ fixed + (k * towards).mT @ v
        befores, state = _carried(state, since, written, kept @ moved)
        halves = _halves(decay)
        o = _pairs(q, write, halves) @ (fixed + moved @ befores) + (q * since) @ befores
        return _steps(o + _pairs(q, k, halves) @ v, self.query.shape[1]), state


MatrixRecurrence = Decayed | Replaced | Corrected


def _carried(
    state: Tensor, since: Tensor, written: Tensor, turned: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The states before each chunk [B, H, N, K, V], and the last, of S <- a S + turned S + written."""
    befores = []
    kept, news = since[..., -1:, :].mT.unbind(2), written.unbind(2)  # gradients are stacked, not added
    turns = () if turned is None else turned.unbind(2)
    for n, new in enumerate(news):
        befores.append(state)
        new = torch.addcmul(new, kept[n], state)
        state = new + turns[n] @ state if turns else new
    return torch.stack(befores, 2), state


def _towards(decay: Tensor) -> Tensor:
    """The share that is left at the end of the chunk of what step j writes, for j = 1 .. C."""
    later = F.pad(decay[..., 1:, :], (0, 0, 0, 1))  # the decays after j
    return later.flip(-2).cumsum(-2).flip(-2).exp()


def _read(q: Tensor, state: Tensor) -> Tensor:
    return (q[..., None] * state).sum(-2)[:, None]


def _chunks(part: Tensor) -> Tensor:
    """[B, T, H, K] in chunks of C steps, [B, H, N, C, K], padded with zeros: steps that change nothing."""
    steps = part.shape[1]
    size = min(CHUNK, 1 << (steps - 1).bit_length())
    part = F.pad(part.transpose(1, 2), (0, 0, 0, -steps % size))
    return part.unflatten(2, (-1, size))


def _steps(o: Tensor, steps: int) -> Tensor:
    """The inverse of `_chunks`."""
    return o.flatten(2, 3)[:, :, :steps].transpose(1, 2)


def _weights(decay: Tensor) -> Tensor:
    """a_(j+1) .. a_i for j <= i, zero for j > i; [.., C, C]."""
    ones = decay.new_ones(decay.shape[-2], decay.shape[-2])
    later = torch.zeros_like(ones).masked_fill(ones.triu(1).bool(), -torch.inf)
    return ((decay * ones.tril(-1)).cumsum(-2) + later).exp()


def _halves(decay: Tensor, *, up_to: int = 0) -> list[tuple[Tensor, Tensor]]:
    """What the decays by rows [.., C, K] leave on the way from step j to step i, in two parts.

    For blocks of 1, 2, 4, .. steps in pairs, [.., pairs, size, K] each: from the border between the blocks
    up to i in the later one, and after j in the earlier one up to the border. With `up_to` 1 the last decay
    is that of the step before i.
    """
    whole = decay.exp()  # of a block
    after = torch.ones_like(whole)
    to, halves = after if up_to else whole, []
    for size in (1 << level for level in range((decay.shape[-2] - 1).bit_length())):
        to, late = to.unflatten(-2, (-1, 2, size)).unbind(-3)
        early, after = after.unflatten(-2, (-1, 2, size)).unbind(-3)
        halves.append((late, early))
        left, right = whole.unflatten(-2, (-1, 2)).unbind(-2)
        to = torch.cat([to, late * left[..., None, :]], -2).flatten(-3, -2)
        after = torch.cat([early * right[..., None, :], after], -2).flatten(-3, -2)
        whole = left * right
    return halves


def _pairs(q: Tensor, k: Tensor, halves: list[tuple[Tensor, Tensor]]) -> Tensor:
    """sum_c q_ic a_(j+1)c .. a_ic k_jc for j <= i, zero for j > i; q, k [.., C, K] give [.., C, C]."""
    return _before(q, k, halves) + torch.diag_embed((q * k).sum(-1))


def _before(q: Tensor, k: Tensor, halves: list[tuple[Tensor, Tensor]]) -> Tensor:
    """`_pairs` for j < i: blocks of 1, 2, 4, .. steps, each pair of neighbours joined by one product."""
    lower = q.new_zeros(*q.shape[:-1], 1, 1)  # [.., blocks, size, size]
    for to, after in halves:
        size = lower.shape[-1]
        queries, keys = (part.unflatten(-2, (-1, 2, size)) for part in (q, k))
        pairs = (queries[..., 1, :, :] * to) @ (keys[..., 0, :, :] * after).mT
        upper = F.pad(lower[..., 0::2, :, :], (0, size))
        lower = torch.cat([upper, torch.cat([pairs, lower[..., 1::2, :, :]], -1)], -2)
    return lower[..., 0, :, :]
