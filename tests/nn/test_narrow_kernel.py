"""Law 7 for bfloat16 and int8 in a search: what compiled code multiplies, and how near it stays."""

import copy

import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import close, normal
from tests.nn.decoders import FORMS, WIDE_HEAD, calls_of, decoder, searched
from tests.nn.ways import as_bytes
from weft import native
from weft.nn.heads.categorical import Categorical
from weft.nn.kernels.decoding import MOST_REGISTERS, use_int8

needs_narrow = pytest.mark.skipif(
    not native.narrow(), reason="compiled code multiplies no bfloat16 here: it needs AVX512_BF16 and VNNI"
)
needs_int8 = pytest.mark.skipif(not native.int8(), reason="compiled code multiplies no int8 here")
BESIDE = torch.bfloat16 if native.narrow() else torch.float32
"""The dtype of weights that compiled code takes to multiply them as bytes."""


SHAPES = [(1, 8, 5), (7, 130, 64), (33, 67, 203), (2, 300, 999), (37, 300, 130)]  # tiles: 16 x 64


@needs_int8
@pytest.mark.usefixtures("unforced")
@pytest.mark.parametrize(("rows", "size", "classes"), SHAPES)
@torch.no_grad()
def test_int8_is_the_product_of_rounded_rows_and_rounded_weights(rows: int, size: int, classes: int) -> None:
    head = Categorical(size, classes)
    nn.init.normal_(head.weight)
    nn.init.normal_(head.bias)
    head = head.to(BESIDE)
    h = normal(rows, size, dtype=BESIDE)
    h[0] = 0
    use_int8(head)
    found = head(h).double()

    def grid(x: Tensor) -> Tensor:  # each row on its own grid of 255 numbers, computed as float32 does
        top = x.float().abs().amax(-1, keepdim=True)
        scale = torch.where(top > 0, top / 127, 1.0)
        return (x.float() * (1 / scale)).round().double() * scale.double()

    weight = as_bytes(head.weight.float()).double()
    close(found, (grid(h) @ weight.T + head.bias.double()).log_softmax(-1), 3e-5)


@needs_int8
@torch.no_grad()
def test_the_largest_bytes_do_not_overflow() -> None:
    head, signs = Categorical(300, 20), torch.ones(300)
    signs[::3] = -1
    nn.init.zeros_(head.bias)
    head.weight.copy_(torch.tensor([1.0, -1.0]).repeat(10)[:, None] * signs)
    head = head.to(BESIDE)
    use_int8(head)
    h = torch.stack([signs, -signs, signs.abs()]).repeat(7, 1).to(BESIDE)
    close(head(h).double(), (h.double() @ as_bytes(head.weight.float()).double().T).log_softmax(-1), 1e-4)


@needs_int8
@torch.no_grad()
def test_a_row_that_is_not_finite_is_not_hidden_by_int8() -> None:
    head = Categorical(20, 40).to(BESIDE)
    use_int8(head)
    h = normal(3, 20, dtype=BESIDE)
    h[0, 3], h[2, 19] = torch.nan, torch.inf
    found = head(h)
    assert bool(found[[0, 2]].isnan().all()) and bool(found[1].isfinite().all())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "precision", [pytest.param("bfloat16", marks=needs_narrow), pytest.param("int8", marks=needs_int8)]
)
def test_rounded_steps_stay_near_float64(form: str, precision: str) -> None:
    """The error of rounding: bfloat16 as small as that of torch's own bfloat16, int8 a few times that."""
    model = decoder(**FORMS[form])
    exact = searched(copy.deepcopy(model).double(), "torch")
    plain = searched(copy.deepcopy(model).to(torch.bfloat16), "torch")
    lower = copy.deepcopy(model).to(BESIDE)
    if precision == "int8":
        use_int8(lower["decoder"])
    found = searched(lower, "native")

    def error(outputs: list[Tensor]) -> float:
        return sum(float((a.double() - b).square().sum()) for a, b in zip(outputs, exact, strict=True)) ** 0.5

    assert error(found) < (1.1 if precision == "bfloat16" else 4) * error(plain)
    most = MOST_REGISTERS * native.loaded("decoding").width
    assert (form == "wide" and most < WIDE_HEAD) or calls_of(lower, looks=True) > 0
