"""Law 7 for whole searches in int8: what compiled code multiplies, layer by layer, is what a plain twin does.

The twin is the plain loop with every product of a step and of a Transformer encoder on the grid: each row
of the input divided by its largest magnitude / 127 and rounded, and the weights as `as_bytes` has them. Where
compiled code keeps the rest in bfloat16, test_compiled.py bounds the error instead.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.nn.decoders import FORMS
from tests.nn.ways import as_bytes
from tests.search.models import RECURRENT, found, generator, same
from weft import native
from weft.models import Generator
from weft.nn.kernels import choice
from weft.nn.transformer import TransformerBlock
from weft.tasks.seq2seq.batch_search import rounded

pytestmark = pytest.mark.skipif(
    not native.int8() or native.narrow(), reason="compiled code multiplies no int8 beside float32 here"
)
ROUNDING = 5e-3
"""A sum that rounds differently can move a number to the next place on the grid, 1/127 of the largest."""


def grid(x: Tensor) -> Tensor:
    """[.., K], each row on a grid of its own."""
    top = x.abs().amax(-1, keepdim=True)
    scale = torch.where(top > 1e-30, top / 127, 1.0)
    return (x / scale).round() * scale


@contextmanager
def on_the_grid(model: Generator) -> Iterator[None]:
    """Every product as in int8, but for token vectors and the sum of an additive score."""
    plain = F.linear
    projects = [
        getattr(part.project, "weight", None)
        for part in (model.encoder, model.decoder)
        if hasattr(part, "project")
    ]

    def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if len(weight) == 1 or any(weight is one for one in projects):
            return plain(x, weight, bias)
        return plain(grid(x), as_bytes(weight), bias)

    def gridded(real: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(F, "linear", linear)
                return real(*given)

        return run

    with pytest.MonkeyPatch.context() as patch, choice.use(fused="torch", cells="steps"):
        patch.setattr(type(model), "step", gridded(type(model).step))
        patch.setattr(type(model.encoder), "forward", gridded(type(model.encoder).forward))
        patch.setattr(TransformerBlock, "source", gridded(TransformerBlock.source))
        yield


def check(model: Generator) -> None:
    lower = rounded(model, "int8")
    for how in ({"width": 4}, {"search": "greedy", "banned": (7,)}):
        mine = found(lower, plain=False, **how)
        with on_the_grid(model):
            same(mine, found(model, plain=True, **how), ROUNDING)
        exact = found(model, plain=False, **how)
        assert not torch.equal(mine.logp, exact.logp)  # it was int8


@pytest.mark.parametrize("form", RECURRENT)
def test_recurrent_decoders_multiply_all_layers_in_int8(form: str) -> None:
    check(generator("recurrent", **RECURRENT[form]))


@pytest.mark.parametrize("kind", ["hybrid", "transformer"])
def test_decoders_with_layers_of_a_transformer_multiply_them_in_int8(kind: str) -> None:
    check(generator(kind, **FORMS["odd sizes"]))
