"""One search step in compiled code on the CPU: packed weights, all layers of a Transformer, the output layer.

Weights are packed once for each module and again when they change: float32 weights are multiplied in float32,
bfloat16 weights in bfloat16 where the processor can (norms, sums and softmax stay in float32), and those of
modules given to `use_int8` as bytes. `step` computes all layers of a decoder for one new position, `whole`
those of an encoder, without about a hundred calls of small operations; their plain twins are the modules,
which run wherever `suits` is False. `log_probabilities` is log softmax(W h + b) over a vocabulary.
`WEFT_FUSED=torch` turns all of it off. Read next: search_step.py, many steps; ../../native/decoding.cpp.
"""

from collections.abc import Callable, Mapping, Sequence
from ctypes import Array, addressof
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from weft import native
from weft.native import pointer
from weft.native.jobs import ACTIVATIONS, CELLS, KINDS, NORMS, PRODUCTS, Decode, DecoderLayer, PredictJob
from weft.nn.kernels import choice
from weft.nn.kernels.choice import compiles, in_torch
from weft.nn.kernels.equations import Gates
from weft.nn.kernels.linear import linear, room_arguments, tiled_panel, tiled_room
from weft.probe import edit_active, watching

Kept = TypeVar("Kept")
_kept: "WeakKeyDictionary[nn.Module, dict[Packing, tuple[object, object]]]" = WeakKeyDictionary()
_int8: "WeakSet[nn.Module]" = WeakSet()


class Packing(NamedTuple):
    """How weights are packed: a kind of KINDS, and whether for the tiles."""

    kind: str
    tiled: bool

    def room(self, rows: int, inputs: int, slabs: int) -> Tensor | None:
        """A buffer in which each slab splits or rounds its rows [rows, inputs]; None if none is needed."""
        if self.tiled:
            return tiled_room(rows, inputs, slabs)
        if self.kind == "float32":
            return None
        library = native.loaded("decoding").library
        return torch.empty(slabs, library.weft_narrow_rows(KINDS[self.kind], rows, inputs), dtype=torch.int16)

    def panels(self, weight: Tensor) -> Tensor:
        """Weights [O, K] as panels of up to four registers of outputs, zero-padded; for tiles, split."""
        outputs, inputs = weight.shape
        weight = weight.detach().float().contiguous()
        if self.tiled:
            return tiled_panel(1, outputs, weight)
        if self.kind == "float32":
            library = native.loaded()
            packed = weight.new_empty(-(-outputs // library.width) * library.width * inputs)
            pack = library.library.weft_pack_forward
            pack(CELLS["elman"], outputs, inputs, pointer(weight), pointer(packed))
            return packed
        library, kind = native.loaded("decoding").library, KINDS[self.kind]
        packed = torch.empty(library.weft_narrow_panel(kind, outputs, inputs), dtype=torch.int16)
        library.weft_narrow_pack(kind, outputs, inputs, pointer(weight), pointer(packed))
        return packed


def multiplied(
    function: str, how: Packing, x: Tensor, panels: Tensor, bias: Tensor | None, outputs: int
) -> Tensor:
    """A compiled product of x [.., D] by packed weights, in float32: [.., outputs]."""
    x = x.float().contiguous()
    rows, size = x.numel() // x.shape[-1], x.shape[-1]
    y, slabs = torch.empty(*x.shape[:-1], outputs), native.slabs(rows)
    cut = how.room(-(-rows // slabs), size, slabs)
    job = PredictJob(
        rows, size, outputs, slabs, pointer(panels), pointer(bias), pointer(x), pointer(y),
        *room_arguments(cut), KINDS[how.kind],
    )  # fmt: skip
    native.call(function, job)
    return y


def packing(of: nn.Module, weight: Tensor, rows: int) -> Packing:
    """How to pack the weights of a module that multiplies this many rows per thread."""
    rounded = weight.dtype == torch.bfloat16
    if of in _int8 and native.int8() and rounded == native.narrow():
        return Packing("int8", tiled=False)
    return Packing("bfloat16", tiled=False) if rounded else Packing("float32", tiled(rows))


def use_int8(of: nn.Module) -> None:
    """From now on, compiled code multiplies a module's weights as bytes where it can.

    They are in bfloat16 where compiled code multiplies that too (`native.narrow`), elsewhere in float32.
    """
    _int8.add(of)


def multiply_as(one: nn.Module, other: nn.Module) -> None:
    """Let `use_int8` hold for the second module too if it was called for the first."""
    if one in _int8:
        _int8.add(other)


def suits_search(x: Tensor) -> bool:
    """Whether compiled code can compute a search step over x of any shape, which gives no gradients."""
    if torch.is_grad_enabled() or (x.dtype == torch.bfloat16 and not native.narrow()):
        return False
    return compiles("search", x) and native.loaded().library is not None  # which packs the weights


def tiled(rows: int) -> bool:
    """Whether compiled code should multiply this many rows per thread on tiles."""
    way = choice.forced("fused")
    return native.tiles() and (way == "tiles" or (way == "auto" and rows >= choice.TILED_ROWS))


def kept(
    of: nn.Module, parameters: Sequence[Tensor], pack: Callable[[Packing], Kept], packing: Packing
) -> Kept:
    """What `pack(packing)` returned for a module; called again if a parameter may have changed.

    torch counts the in-place changes of a tensor, with two exceptions: changes by fused optimisers, whose
    steps are counted here, and tensors created in inference mode, which are packed every time. Changes
    through `.data` are not noticed.
    """
    try:
        stamp = (_optimised(), *[(p.data_ptr(), p._version) for p in parameters])
    except RuntimeError:  # a tensor of inference mode has no version
        return pack(packing)
    packings = _kept.setdefault(of, {})
    found = packings.get(packing)
    if found is None or found[0] != stamp:
        found = packings[packing] = (stamp, pack(packing))
    return found[1]  # type: ignore[return-value]


_steps: list[int] = []


def _optimised() -> int:
    """Optimiser steps taken in this process since the first call of this function."""
    if not _steps:
        _steps.append(0)
        register_optimizer_step_post_hook(_step)
    return _steps[0]


def _step(*_: object) -> None:
    _steps[0] += 1


MOST_REGISTERS = 8
"""Maximum width of a head in registers: 128 features with AVX-512, 64 with AVX2."""

AT_ONCE = 96  # as in native/decoding.cpp

Parts = Mapping[str, nn.Module]
"""A layer's norms and products by their names in weft/native; those with `cross` only with a source."""


class Form(NamedTuple):
    """Settings that all layers share."""

    num_heads: int
    inner: int
    activation: str
    before: bool  # norms before the sublayers


class SourceLayers(NamedTuple):
    """Keys and values of the source for every layer, shared by all hypotheses."""

    layers: tuple[tuple[Tensor, Tensor], ...]  # [B, H, S, K] each
    mask: Tensor | None  # [B, 1, 1, S] bool; None without padding
    per_source = True

    def rows(self) -> Tensor | None:
        """The mask [B, S] as compiled code takes it."""
        return None if self.mask is None else self.mask[:, 0, 0].contiguous()


def has_compiled_step(module: nn.Module) -> bool:
    """Whether the compiled step is available for this module, apart from its dtype."""
    on_cpu = all(parameter.device.type == "cpu" for parameter in module.parameters())
    return on_cpu and not in_torch() and native.loaded("decoding").library is not None


def suits(x: Tensor, num_heads: int) -> bool:
    """Whether to use the compiled step for x [N, 1, D] of a search, rather than the decoder's modules."""
    if x.shape[1] != 1 or watching() or edit_active():
        return False
    return x.shape[2] // num_heads <= MOST_REGISTERS * native.loaded().width and suits_search(x)


def suits_whole(x: Tensor, num_heads: int) -> bool:
    """Whether to use the compiled layers for x [B, S, D] of an encoder, rather than its modules."""
    return 0 < x.shape[1] <= choice.ENCODER_POSITIONS and suits(x[:, :1], num_heads)


def step(
    of: nn.Module,
    form: Form,
    layers: Sequence[Parts],
    last: nn.Module,
    x: Tensor,
    entries: int,
    caches: Sequence[Tensor],
    path: Tensor | None,
    source: SourceLayers | None,
) -> Tensor:
    """All layers for one new position of every hypothesis; its keys and values are written into the caches.

    x is [N, 1, D], in the dtype of the weights, as is the result; each cache is [B, 2, H, E + W, K].
    Hypothesis w of a source writes entry E + w; `path` [N, P] has the entries that belong to it, the new one
    last, or is None for 0 .. E.
    """
    sources = len(caches[0])
    most = -(-sources // native.slabs(sources)) * (len(x) // sources)
    found, how = packed(of, layers, last, most)
    each = _with_caches(found.each, caches, source)
    positions = entries + 1 if path is None else path.shape[1]
    places = 0 if source is None else source.layers[0][0].shape[2]
    path = None if path is None else path.contiguous()
    mask = None if source is None else source.rows()
    sizes = sources, entries, positions, places
    return _decode(x[:, 0], most, form, found, how, each, sizes, path, mask)[:, None]


def whole(
    of: nn.Module, form: Form, layers: Sequence[Parts], last: nn.Module, x: Tensor, mask: Tensor | None
) -> Tensor:
    """All layers of an encoder, whose positions attend to one another, for x [B, S, D]; gives [B, S, D]."""
    sources, places, size = shape = x.shape
    rows = max(places, min(AT_ONCE, sources * places))
    found, how = packed(of, layers, last, rows)
    mask = None if mask is None else mask.contiguous()
    x, sizes = x.reshape(-1, size), (sources, 0, 0, places)
    return _decode(x, rows, form, found, how, found.each, sizes, None, mask, whole=True).view(shape)


def sources(of: nn.Module, products: Sequence[nn.Module], x: Tensor, num_heads: int) -> Sequence[Tensor]:
    """Keys and values [B, H, S, K] of a source x [B, S, D] for each layer, in turn, by one product."""
    rows, weights = x.shape[0] * x.shape[1], [product.weight for product in products]
    how = packing(of, weights[0], -(-rows // native.slabs(rows)))  # type: ignore[arg-type]
    given = [p for product in products for p in product._parameters.values() if p is not None]

    def pack(how: Packing) -> tuple[Tensor, Tensor | None]:
        biases = [product.bias for product in products]
        bias = None if biases[0] is None else torch.cat(biases).detach().float()  # type: ignore[arg-type]
        return how.panels(torch.cat(weights)), bias  # type: ignore[arg-type]

    y = multiplied("weft_multiply", how, x, *kept(products[0], given, pack, how), sum(map(len, weights)))
    parts = y.unflatten(-1, (2 * len(products), num_heads, -1)).permute(2, 0, 3, 1, 4)  # [2 L, B, H, S, K]
    whole = torch.empty_like(parts, dtype=x.dtype, memory_format=torch.contiguous_format)
    return whole.copy_(parts).unbind()  # so that a head reads its positions in order


def _decode(
    x: Tensor,
    most: int,
    form: Form,
    packed: "Packed",
    how: Packing,
    each: "Array[DecoderLayer]",
    sizes: tuple[int, int, int, int],
    path: Tensor | None,
    mask: Tensor | None,
    *,
    whole: bool = False,
) -> Tensor:
    """x [N, D] through all layers, at most so many rows at a time; as struct Decode in native/layers.h.

    The sizes are sources, entries, positions and places.
    """
    (rows, size), (sources, entries, positions, places) = x.shape, sizes
    slabs = native.slabs(sources)
    high = form.inner * (2 if form.activation == "swiglu" else 1)
    room = torch.empty(rows * (size + max(3 * size, high)) + slabs * max(positions, places))
    cut = how.room(most, max(size, form.inner), slabs)
    y = torch.empty(rows, size).copy_(x)
    job = Decode(
        len(each), rows, sources, size, form.num_heads, form.inner, entries,
        positions, places, slabs, form.before, packed.root, ACTIVATIONS[form.activation],
        packed.epsilon, addressof(each), pointer(packed.gain), pointer(packed.shift),
        pointer(path), pointer(mask), pointer(y), pointer(room),
        *room_arguments(cut), KINDS[how.kind], whole, positions,
    )  # fmt: skip
    native.call("weft_decode", job)
    return y.to(x.dtype)


def packed(of: nn.Module, layers: Sequence[Parts], last: nn.Module, most: int) -> "tuple[Packed, Packing]":
    """The weights of all layers, packed for products of at most this many rows per thread."""
    modules = [module for parts in layers for module in parts.values()]
    parameters = [p for module in modules for p in module._parameters.values() if p is not None]
    how = packing(of, parameters[0], most)
    return kept(of, parameters, lambda how: _pack(layers, last, how), how), how


def _with_caches(
    packed: "Array[DecoderLayer]", caches: Sequence[Tensor], source: SourceLayers | None
) -> "Array[DecoderLayer]":
    """A copy of the layers with the addresses of this step's caches and of the source's keys and values."""
    each = with_source(packed, source)
    for layer, cache in zip(each, caches, strict=True):
        layer.cache = pointer(cache)
        layer.cache_source, layer.cache_side, layer.cache_head = cache.stride()[:3]
    return each


def with_source(packed: "Array[DecoderLayer]", source: SourceLayers | None) -> "Array[DecoderLayer]":
    """A copy of the layers with the addresses of the source's keys and values."""
    each = type(packed).from_buffer_copy(packed)
    for number, layer in enumerate(each):
        if source is not None:
            keys, values = source.layers[number]
            layer.keys, layer.values = pointer(keys), pointer(values)
            layer.keys_source, layer.keys_head, layer.keys_place = keys.stride()[:3]
            layer.values_source, layer.values_head, layer.values_place = values.stride()[:3]
    return each


class Packed(NamedTuple):
    """The layers of a decoder or encoder, packed."""

    each: "Array[DecoderLayer]"
    held: list[Tensor]  # the tensors that `each` points to
    root: bool
    epsilon: float
    gain: Tensor | None
    shift: Tensor | None


def _pack(layers: Sequence[Parts], last: nn.Module, how: Packing) -> Packed:
    each = (DecoderLayer * len(layers))()
    held: list[Tensor] = []

    def hold(tensor: Tensor | None) -> int | None:
        if tensor is None:
            return None
        held.append(tensor.detach().contiguous())
        return pointer(held[-1])

    for layer, parts in zip(each, layers, strict=True):
        for name in NORMS:
            if name in parts:
                setattr(layer, f"{name}_gain", hold(_wide(parts[name].weight)))  # type: ignore[arg-type]
                setattr(layer, f"{name}_shift", hold(_wide(getattr(parts[name], "bias", None))))
        for name in PRODUCTS:
            if name in parts:
                weight, bias = _product(parts[name])
                setattr(layer, f"{name}_panel", hold(how.panels(weight)))
                setattr(layer, f"{name}_bias", hold(_wide(bias)))
    norm = layers[0]["network_norm"]
    gain, shift = _wide(getattr(last, "weight", None)), _wide(getattr(last, "bias", None))
    return Packed(each, held, isinstance(norm, nn.RMSNorm), float(norm.eps or 0), gain, shift)  # type: ignore[arg-type]


def _product(part: nn.Module) -> tuple[Tensor, Tensor | None]:
    """Weight and bias of a linear layer, or of a cell's gates."""
    gates: Gates | None = part.step_weights() if hasattr(part, "step_weights") else None  # type: ignore[operator]
    return (part.weight, part.bias) if gates is None else (gates.x, gates.bias)  # type: ignore[return-value]


def _wide(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.float()


def log_probabilities(of: nn.Module, h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Log-probabilities [.., V] of h [.., D], in at least float32."""
    if not (weight.dtype == bias.dtype == h.dtype and suits_search(h)):
        # In place: a copy for the bias and a second buffer took a quarter of a search step.
        logits = linear(h, weight)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32)).add_(bias)
        return torch.log_softmax(logits, -1, out=logits)
    rows = h.numel() // h.shape[-1]
    how = packing(of, weight, -(-rows // native.slabs(rows)))
    packed = kept(of, [weight], lambda how: how.panels(weight), how)
    return multiplied("weft_predict", how, h, packed, bias.float().contiguous(), len(weight))
