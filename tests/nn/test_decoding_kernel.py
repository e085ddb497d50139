"""Law 7 for a search's step and an encoder: compiled code gives what modules give, and sees new weights."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import close, normal
from tests.nn.decoders import FEATURES, FORMS, WIDE_HEAD, calls_of, decoder, searched
from tests.nn.ways import COMPILED, near, needs, on_threads
from weft import native
from weft.models import Generator
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.kernels import choice, decoding
from weft.probe import editing, probe
from weft.tasks.seq2seq.batch_search import rounded

pytestmark = needs("decoding")

compiled_ways = pytest.mark.parametrize("way", COMPILED)


@compiled_ways
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("looks", [True, False], ids=["looks", "alone"])
def test_a_search_by_compiled_code_is_one_by_the_modules(form: str, looks: bool, way: str) -> None:
    exact = searched(decoder(torch.float64, looks=looks, **FORMS[form]), "torch", looks=looks)
    model = decoder(looks=looks, **FORMS[form])
    called = calls_of(model, looks, way)
    most = decoding.MOST_REGISTERS * native.loaded().width  # numbers of a head; in AVX2 fewer than in AVX-512
    fits = form != "wide" or most >= WIDE_HEAD
    assert called == (11 if fits else 0)  # else the modules would be compared with themselves
    near(searched(model, way, looks=looks), exact, 2e-5)


@pytest.mark.parametrize(
    "form", [{"positions": "rotary"}, {"positions": "alibi"}, {"positions": "relative"}], ids=str
)
def test_what_it_cannot_do_is_left_to_the_modules(form: dict[str, Any]) -> None:
    assert calls_of(decoder(**form), True) == 0


@pytest.mark.parametrize("name", ["cells", "decoding"])
@torch.no_grad()
def test_a_missing_library_leaves_the_search_to_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, head, h, real = decoder(), Categorical(8, 37), normal(7, 8, dtype=torch.float32), native.loaded
    exact = [*searched(model, "torch"), (h @ head.weight.T + head.bias).log_softmax(-1)]
    missing = native.LoadedLibrary(None, "it was not compiled")
    monkeypatch.setattr(native, "loaded", lambda of="cells": missing if of == name else real(of))
    near([*searched(model, "auto"), head(h)], exact, 1e-5)


@compiled_ways
def test_two_threads_give_what_one_gives(way: str) -> None:
    model = decoder()
    found = []
    for threads in (1, 2):
        with on_threads(threads):
            found.append(tuple(searched(model, way)))
    close(*found, 1e-6)


@compiled_ways
def test_changed_weights_are_packed_anew(way: str) -> None:
    model = decoder()
    searched(model, way)
    with torch.no_grad():
        model["decoder"].blocks[1].network.second.weight.mul_(-1.0)
        model["decoder"].blocks[0].attention_norm.bias.add_(1.0)
    near(searched(model, way), searched(model, "torch"), 1e-5)


@compiled_ways
@pytest.mark.parametrize("fused", [True, False])
def test_an_optimiser_s_step_is_seen(fused: bool, way: str) -> None:
    model = decoder()
    before = searched(model, way)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimiser.step()
    after = searched(model, way)
    close(tuple(after), tuple(searched(model, "torch")), 1e-5)
    assert not torch.allclose(before[-1], after[-1], atol=1e-2)


def test_whoever_looks_inside_or_changes_something_gets_the_modules() -> None:
    model = decoder()
    with probe() as seen:
        searched(model, "auto")
    assert len(seen["self_attention"]) == 1 + 2 * 11  # the encoder, then each layer at each step
    with editing(lambda name, weights: torch.zeros_like(weights) if name == "cross_attention" else weights):
        changed = searched(model, "auto")
    assert not torch.allclose(changed[-1], searched(model, "auto")[-1], atol=1e-2)


@compiled_ways
@torch.no_grad()
def test_a_state_may_be_continued_twice(way: str) -> None:
    model = decoder(looks=False)["decoder"]
    with choice.use(fused=way):
        _, state = model(normal(2, 1, FEATURES, dtype=torch.float32), model.start(None, 2))
        first, _ = model(normal(2, 1, FEATURES, seed=2, dtype=torch.float32), state)
        model(normal(2, 1, FEATURES, seed=3, dtype=torch.float32), state)
        again, _ = model(normal(2, 1, FEATURES, seed=2, dtype=torch.float32), state)
    assert torch.equal(first, again)


@compiled_ways
@pytest.mark.parametrize(("rows", "size", "classes"), [(1, 8, 5), (7, 130, 64), (33, 16, 203), (6, 300, 999)])
@torch.no_grad()
def test_log_probabilities_are_those_of_float64(rows: int, size: int, classes: int, way: str) -> None:
    head = Categorical(size, classes)
    nn.init.normal_(head.weight, std=1.0)
    nn.init.normal_(head.bias)
    h = normal(rows, size, dtype=torch.float32)
    exact = (h.double() @ head.weight.double().T + head.bias.double()).log_softmax(-1)
    with choice.use(fused=way):
        found = head(h)
    close(found.double(), exact, 1e-5)
    close(found.double().exp().sum(-1), torch.ones(rows, dtype=torch.float64), 1e-6)
    lower = head.to(torch.bfloat16)
    with choice.use(fused=way):
        found = lower(h.bfloat16())
    with choice.use(fused="torch"):
        plain = lower(h.bfloat16())
    assert found.dtype == torch.float32
    if native.narrow():  # more exact than torch, which rounds the logits
        plain = (h.bfloat16().double() @ lower.weight.double().T + lower.bias.double()).log_softmax(-1)
        close(found.double(), plain, 2e-5)
    else:
        close(found, plain, 1e-5)


@compiled_ways
@torch.no_grad()
def test_impossible_and_broken_logits_are_as_torch_has_them(way: str) -> None:
    head = Categorical(4, 40)
    head.bias[3] = -torch.inf
    h = normal(3, 4, dtype=torch.float32)
    h[1, 2] = torch.nan
    with choice.use(fused=way):
        mine = head(h)
    with choice.use(fused="torch"):
        plain = head(h)
    assert bool(mine[1].isnan().all()) and bool(plain[1].isnan().all())
    assert bool((mine[[0, 2], 3] == -torch.inf).all())
    assert torch.allclose(mine[[0, 2]], plain[[0, 2]], atol=1e-6)


@torch.no_grad()
def test_in_bfloat16_a_transformer_writes_by_compiled_code_too() -> None:
    torch.manual_seed(1)
    encoder = TransformerEncoder(FEATURES, size=24, num_heads=2, num_layers=1)
    written = TransformerDecoder(FEATURES, encoder, size=48, num_heads=4, num_layers=2)
    head = Categorical(48, 30)
    model = Generator(Tokens(30, FEATURES), written, head, encoder=encoder, source_embed=Tokens(30, FEATURES))
    ids = torch.randint(4, 30, (3, 6), generator=torch.Generator().manual_seed(2))
    with choice.use(fused="auto"):
        half = rounded(model.eval(), "bfloat16")
    narrow = torch.bfloat16 if native.narrow() else torch.float32
    assert half.decoder.blocks[0].network.first.weight.dtype == narrow
    assert half.head.weight.dtype == half.encoder.blocks[0].network.first.weight.dtype == torch.bfloat16
    for way in ("auto", "torch"):
        with choice.use(fused=way):  # type: ignore[arg-type]
            one = rounded(model, "bfloat16") if way == "torch" else half
            state = one.start(ids, torch.ones(3, 6, dtype=torch.bool))
            logp, state = one.step(torch.full((3,), 2), state)
            logp, _ = one.step(logp.argmax(-1), state)
        exact_state = model.start(ids, torch.ones(3, 6, dtype=torch.bool))
        exact, exact_state = model.step(torch.full((3,), 2), exact_state)
        exact, _ = model.step(exact.argmax(-1), exact_state)
        assert logp.dtype == torch.float32 and (logp - exact).abs().max() < 0.1


WIDTH, SIZES = 20, [(1, 1), (3, 7), (41, 13), (2, 101)]


def encoder(**form: Any) -> TransformerEncoder:
    torch.manual_seed(5)
    found = TransformerEncoder(WIDTH, **({"size": 48, "num_heads": 4, "num_layers": 2} | form))
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
    x = normal(rows, places, WIDTH, dtype=next(model.parameters()).dtype)
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
