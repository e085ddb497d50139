"""w^T tanh(q + k) for every query and key, without keeping [B, T, S, A] where no gradient needs it.

native   one pass of compiled code in float32, on the CPU and without gradients
torch    the sum, its tanh and a product

Nothing is measured: the first that can run does the least. Read next: scores/additive.py, which calls it.
"""

from ctypes import byref

import torch
from torch import Tensor

from weft import native
from weft.native import pointer
from weft.nn.kernels.linear import linear
from weft.nn.kernels.panels import usable


def additive(query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    """Energies [B, T, S].

    Args:
        query: [B, T, A]; keys: [B, S, A]; weight: [1, A].
    """
    if usable(query) or usable(query, torch.bfloat16):  # the latter's tanh alone took five times as long
        found = _native(query.float().contiguous(), keys.float(), weight.float().contiguous())
        return found.to(query.dtype)
    hidden = (query[:, :, None] + keys[:, None]).tanh_()  # [B, T, S, A]
    return linear(hidden, weight).squeeze(-1)


def _native(query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    (sources, queries, size), places = query.shape, keys.shape[1]
    keys = keys if keys.stride(2) == 1 else keys.contiguous()
    energy = query.new_empty(sources, queries, places)
    slabs = max(1, min(torch.get_num_threads(), sources * queries))
    job = native.Energies(
        sources, queries, places, size, keys.stride(0), keys.stride(1), slabs,
        pointer(query), pointer(keys), pointer(weight), pointer(energy),
    )  # fmt: skip
    library = native.decoding()
    library.library.weft_energies(byref(job), library.start)
    return energy
