"""One search step of a Transformer decoder in compiled code (native/decoding.cpp) on the CPU.

In float32, or where the processor can with bfloat16 weights; then norms, sums and softmax stay in float32.

Nothing is measured: it computes what the modules compute without about a hundred calls of small operations.
Its plain twin is `Block.decode`, which runs wherever `suits` is False. `WEFT_FUSED=torch` turns it off.
"""

from collections.abc import Mapping, Sequence
from ctypes import Array, addressof
from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft import native
from weft.native import ACTIVATIONS, KINDS, NORMS, PRODUCTS, DecoderLayer, pointer
from weft.nn.kernels import tiles
from weft.nn.kernels.cells.form import Gates
from weft.nn.kernels.choice import Way, fused, pick
from weft.nn.kernels.panels import Packing, kept, multiplied, packing, why_not_in_search
from weft.probe import changing, watching

MOST_REGISTERS = 8
"""Maximum width of a head in registers: 128 features with AVX-512, 64 with AVX2."""

LONGEST = 256
"""Positions of an encoder up to which attention row by row is as fast as torch's."""

AT_ONCE = 96  # as in native/decoding.cpp

Parts = Mapping[str, nn.Module]
"""A layer's norms and products by their names in weft/native; those with `cross` only with a source."""


class Form(NamedTuple):
    """Settings that all layers share."""

    num_heads: int
    inner: int
    activation: str
    before: bool  # norms before the sublayers


class Source(NamedTuple):
    """The source: keys and values [B, H, S, K] of each layer; mask [B, S] bool, None for no padding."""

    layers: Sequence[tuple[Tensor, Tensor]]
    mask: Tensor | None


def there(module: nn.Module) -> bool:
    """Whether the compiled step is available for this module, apart from its dtype."""
    on_cpu = all(parameter.device.type == "cpu" for parameter in module.parameters())
    return on_cpu and fused() != "torch" and native.loaded("decoding").library is not None


def suits(x: Tensor, num_heads: int) -> bool:
    """Whether to use the compiled step for x [N, 1, D] of a search, rather than the decoder's modules."""
    return pick("decoder step", WAYS, (x, num_heads), asked=fused()).run()


def suits_whole(x: Tensor, num_heads: int) -> bool:
    """Whether to use the compiled layers for x [B, S, D] of an encoder, rather than its modules."""
    return pick("encoder", WHOLE, (x, num_heads), asked=fused()).run()


def _why_not_whole(x: Tensor, num_heads: int) -> str:
    if x.shape[1] > LONGEST or not x.numel():
        return f"compiled attention within a text is fast up to {LONGEST} positions"
    return _why_not(x[:, :1], num_heads)


def _why_not(x: Tensor, num_heads: int) -> str:
    if x.shape[1] != 1:
        return "the compiled step takes one position at a time"
    if watching() or changing():
        return "a probe reads or changes intermediate values"
    if x.shape[2] // num_heads > MOST_REGISTERS * native.loaded().width:
        return f"the compiled step takes heads of at most {MOST_REGISTERS} registers"
    return why_not_in_search(x)


WAYS = Way("native", lambda: True, _why_not), Way("torch", lambda: False, plain=True)
WHOLE = Way("native", lambda: True, _why_not_whole), Way("torch", lambda: False, plain=True)
"""Each way tells whether the layers are compiled; the decoder or encoder itself runs its modules."""


def step(
    of: nn.Module,
    form: Form,
    layers: Sequence[Parts],
    last: nn.Module,
    x: Tensor,
    entries: int,
    caches: Sequence[Tensor],
    path: Tensor | None,
    source: Source | None,
) -> Tensor:
    """All layers for one new position of every hypothesis; its keys and values are written into the caches.

    Args:
        of: the module that owns the weights, which are packed once and again when they change.
        form: settings of the layers.
        layers: the modules of each layer.
        last: the norm after the last layer, or a module without weights.
        x: [N, 1, D], in the dtype of the weights.
        entries: E, entries of a source before this step; hypothesis w of a source writes entry E + w.
        caches: one per layer, [B, 2, H, E + W, K].
        path: [N, P] int64, the entries that belong to a hypothesis, the new one last; None for 0 .. E.
        source: keys and values for cross-attention; None without a source.

    Returns:
        [N, 1, D] in the dtype of x.
    """
    sources = len(caches[0])
    most = -(-sources // native.slabs(sources)) * (len(x) // sources)
    found, how = packed(of, layers, last, most)
    call = _Call(
        form,
        found,
        how,
        _with_caches(found.each, caches, source),
        sources,
        entries,
        positions=entries + 1 if path is None else path.shape[1],
        places=0 if source is None else source.layers[0][0].shape[2],
        path=None if path is None else path.contiguous(),
        mask=None if source is None or source.mask is None else source.mask.contiguous(),
    )
    return call.run(x[:, 0], most)[:, None]


def whole(
    of: nn.Module, form: Form, layers: Sequence[Parts], last: nn.Module, x: Tensor, mask: Tensor | None
) -> Tensor:
    """All layers of an encoder, whose positions attend to one another, for x [B, S, D]; gives [B, S, D].

    Args:
        of, form, layers, last: as in `step`.
        x: in the dtype of the weights.
        mask: [B, S] bool; None for no padding.
    """
    sources, places, size = x.shape
    rows = max(places, min(AT_ONCE, sources * places))
    found, how = packed(of, layers, last, rows)
    mask = None if mask is None else mask.contiguous()
    call = _Call(form, found, how, found.each, sources, 0, 0, places, None, mask, whole=True)
    return call.run(x.reshape(-1, size), rows).view(x.shape)


def sources(of: nn.Module, products: Sequence[nn.Module], x: Tensor, num_heads: int) -> Sequence[Tensor]:
    """Keys and values [B, H, S, K] of a source x [B, S, D] for each layer, in turn, by one product.

    Args:
        of: the module that owns the weights.
        products: each layer's linear map to keys and values.
        x: in the dtype of the weights.
        num_heads: H.
    """
    rows, weights = x.shape[0] * x.shape[1], [product.weight for product in products]
    how = packing(of, weights[0], -(-rows // native.slabs(rows)))  # type: ignore[arg-type]
    given = [p for product in products for p in product._parameters.values() if p is not None]

    def pack(how: Packing) -> tuple[Tensor, Tensor | None]:
        biases = [product.bias for product in products]
        bias = None if biases[0] is None else torch.cat(biases).detach().float()  # type: ignore[arg-type]
        return how.panels(torch.cat(weights)), bias  # type: ignore[arg-type]

    y = multiplied("weft_multiply", how, x, *kept(products[0], given, pack, how), sum(map(len, weights)))
    parts = y.to(x.dtype).unflatten(-1, (2 * len(products), num_heads, -1))  # [B, S, 2 L, H, K]
    return parts.permute(2, 0, 3, 1, 4).unbind()


class _Call(NamedTuple):
    """The arguments of weft_decode, as struct Decode in native/decoding.cpp has them."""

    form: Form
    packed: "Packed"
    how: Packing
    each: "Array[DecoderLayer]"
    sources: int
    entries: int
    positions: int
    places: int
    path: Tensor | None
    mask: Tensor | None
    whole: bool = False

    def run(self, x: Tensor, most: int) -> Tensor:
        """x [N, D] through all layers; `most` rows are computed at a time."""
        (rows, size), form, packed = x.shape, self.form, self.packed
        slabs = native.slabs(self.sources)
        high = form.inner * (2 if form.activation == "swiglu" else 1)
        longest = max(self.positions, self.places)
        room = torch.empty(rows * (size + max(3 * size, high)) + slabs * longest)
        cut = self.how.room(most, max(size, form.inner), slabs)
        y = torch.empty(rows, size).copy_(x)
        job = native.Decode(
            len(self.each), rows, self.sources, size, form.num_heads, form.inner, self.entries,
            self.positions, self.places, slabs, form.before, packed.root, ACTIVATIONS[form.activation],
            packed.epsilon, addressof(self.each), pointer(packed.gain), pointer(packed.shift),
            pointer(self.path), pointer(self.mask), pointer(y), pointer(room),
            *tiles.given(cut), KINDS[self.how.kind], self.whole, self.positions,
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
    packed: "Array[DecoderLayer]", caches: Sequence[Tensor], source: Source | None
) -> "Array[DecoderLayer]":
    """A copy of the layers with the addresses of this step's caches and of the source's keys and values."""
    each = with_source(packed, source)
    for layer, cache in zip(each, caches, strict=True):
        layer.cache = pointer(cache)
        layer.cache_source, layer.cache_side, layer.cache_head = cache.stride()[:3]
    return each


def with_source(packed: "Array[DecoderLayer]", source: Source | None) -> "Array[DecoderLayer]":
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
