"""Law 7 for a Transformer encoder without gradients: its compiled layers give what the modules give."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import close, normal
from tests.nn.decoders import FORMS
from tests.nn.ways import COMPILED, needs, on_threads
from weft import native
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.kernels import choice, decoding
from weft.probe import probe

pytestmark = needs("decoding")

FEATURES, SIZES = 20, [(1, 1), (3, 7), (41, 13), (2, 101)]


def encoder(**form: Any) -> TransformerEncoder:
    torch.manual_seed(5)
    found = TransformerEncoder(FEATURES, **({"size": 48, "num_heads": 4, "num_layers": 2} | form))
    for parameter in found.parameters():
        nn.init.normal_(parameter, std=0.3)
    return found.eval()


def ragged(rows: int, places: int) -> Tensor:
    """A mask [B, S] whose first row is full, and whose last has one real position."""
    lengths = torch.linspace(places, 1, rows).long()
    return torch.arange(places) < lengths[:, None]


@torch.no_grad()
def states(model: TransformerEncoder, way: str, rows: int, places: int) -> Tensor:
    """The real positions of the memory, [real, D]."""
    mask = ragged(rows, places)
    x = normal(rows, places, FEATURES, dtype=next(model.parameters()).dtype)
    with choice.use(fused=way):  # type: ignore[arg-type]
        return model(x, mask).states[mask]


@pytest.mark.parametrize("way", COMPILED)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("rows", "places"), SIZES)
def test_compiled_layers_are_those_of_the_modules(form: str, rows: int, places: int, way: str) -> None:
    model = encoder(**FORMS[form])
    exact = states(copy.deepcopy(model).double(), "torch", rows, places)
    close(states(model, way, rows, places).double(), exact, 2e-5)


@pytest.mark.usefixtures("unforced")
def test_compiled_layers_serve_the_usual_forms_only() -> None:
    x = normal(2, 5, 48, dtype=torch.float32)
    with torch.no_grad():
        assert decoding.suits_whole(x, 4)
        assert not decoding.suits_whole(normal(2, choice.ENCODER_POSITIONS + 1, 48, dtype=torch.float32), 4)
        with probe():
            assert not decoding.suits_whole(x, 4)
    assert not decoding.suits_whole(x, 4)  # gradients
    forms = {"positions": "rotary"}, {"positions": "alibi"}, {"norm": "parallel"}, {"activation": "geglu"}
    assert not any(encoder(**form).usual for form in forms)


def test_two_threads_encode_what_one_does() -> None:
    model, found = encoder(), []
    for threads in (1, 2):
        with on_threads(threads):
            found.append(states(model, "auto", 41, 13))
    close(*found, 1e-6)


def test_changed_weights_of_an_encoder_are_seen() -> None:
    model = encoder()
    before = states(model, "auto", 3, 7)
    with torch.no_grad():
        model.blocks[1].network.second.weight.mul_(-1.0)
    after = states(model, "auto", 3, 7)
    close(after, states(model, "torch", 3, 7), 2e-5)
    assert not torch.allclose(before, after, atol=1e-2)


@pytest.mark.skipif(not native.narrow(), reason="compiled code multiplies no bfloat16 here")
@pytest.mark.parametrize("form", FORMS)
def test_rounded_layers_stay_as_near_float64_as_torch_s_bfloat16(form: str) -> None:
    model = encoder(**FORMS[form])
    exact = states(copy.deepcopy(model).double(), "torch", 41, 13)
    lower = copy.deepcopy(model).to(torch.bfloat16)
    mine, plain = ((states(lower, way, 41, 13) - exact).norm() for way in ("auto", "torch"))
    assert mine < 1.1 * plain
