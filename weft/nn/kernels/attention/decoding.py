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
from weft.nn.kernels.panels import Form as PanelForm
from weft.nn.kernels.panels import form as panel_form
from weft.nn.kernels.panels import kept, why_not_in_search
from weft.nn.kernels.ways import Way, fused, pick
from weft.probe import changing, watching

MOST_REGISTERS = 8
"""Maximum width of a head in registers: 128 features with AVX-512, 64 with AVX2."""

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


def _why_not(x: Tensor, num_heads: int) -> str:
    if x.shape[1] != 1:
        return "the compiled step takes one position at a time"
    if watching() or changing():
        return "a probe reads or changes intermediate values"
    if x.shape[2] // num_heads > MOST_REGISTERS * native.loaded().width:
        return f"the compiled step takes heads of at most {MOST_REGISTERS} registers"
    return why_not_in_search(x)


WAYS = Way("native", lambda: True, _why_not), Way("torch", lambda: False, plain=True)
"""Each way tells whether the step is compiled; the decoder itself runs its modules."""


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
    rows, _, size = x.shape
    modules = [module for parts in layers for module in parts.values()]
    parameters = [p for module in modules for p in module._parameters.values() if p is not None]
    slabs = native.slabs(len(caches[0]))
    most = -(-len(caches[0]) // slabs) * (rows // len(caches[0]))
    how = panel_form(of, parameters[0], most)
    packed = kept(of, parameters, lambda how: _pack(layers, last, how), how)
    each, sources = _with_caches(packed.each, caches, source), len(caches[0])
    positions = entries + 1 if path is None else path.shape[1]
    places = 0 if source is None else source.layers[0][0].shape[2]
    high = form.inner * (2 if form.activation == "swiglu" else 1)
    room = torch.empty(rows * (size + max(3 * size, high)) + slabs * max(positions, places))
    cut = how.room(most, max(size, form.inner), slabs)
    y = torch.empty(rows, size).copy_(x[:, 0])
    path = None if path is None else path.contiguous()
    mask = None if source is None or source.mask is None else source.mask.contiguous()
    job = native.Decode(
        len(layers), rows, sources, size, form.num_heads, form.inner, entries,
        positions, places, slabs, form.before, packed.root, ACTIVATIONS[form.activation],
        packed.epsilon, addressof(each), pointer(packed.gain), pointer(packed.shift),
        pointer(path), pointer(mask), pointer(y), pointer(room),
        *tiles.given(cut), KINDS[how.kind],
    )  # fmt: skip
    native.call("weft_decode", job)
    return y[:, None].to(x.dtype)


def _with_caches(
    packed: "Array[DecoderLayer]", caches: Sequence[Tensor], source: Source | None
) -> "Array[DecoderLayer]":
    """A copy of the layers with the addresses of this step's caches and of the source's keys and values."""
    each = type(packed).from_buffer_copy(packed)
    for number, (layer, cache) in enumerate(zip(each, caches, strict=True)):
        layer.cache = pointer(cache)
        layer.cache_source, layer.cache_side, layer.cache_head = cache.stride()[:3]
        if source is not None:
            keys, values = source.layers[number]
            layer.keys, layer.values = pointer(keys), pointer(values)
            layer.keys_source, layer.keys_head, layer.keys_place = keys.stride()[:3]
            layer.values_source, layer.values_head, layer.values_place = values.stride()[:3]
    return each


class _Packed(NamedTuple):
    each: "Array[DecoderLayer]"
    held: list[Tensor]  # the tensors that `each` points to
    root: bool
    epsilon: float
    gain: Tensor | None
    shift: Tensor | None


def _pack(layers: Sequence[Parts], last: nn.Module, how: PanelForm) -> _Packed:
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
                setattr(layer, f"{name}_panel", hold(how.panels(parts[name].weight)))  # type: ignore[arg-type]
                setattr(layer, f"{name}_bias", hold(_wide(parts[name].bias)))  # type: ignore[arg-type]
    norm = layers[0]["network_norm"]
    gain, shift = _wide(getattr(last, "weight", None)), _wide(getattr(last, "bias", None))
    return _Packed(each, held, isinstance(norm, nn.RMSNorm), float(norm.eps or 0), gain, shift)  # type: ignore[arg-type]


def _wide(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.float()
