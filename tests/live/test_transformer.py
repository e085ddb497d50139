"""Attention, positions, heads and the opened Transformer: every number is that of Weft."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.live.pages import expected, exported, in_node, node, weighted
from tests.serve.browser import Browser
from weft.models import Generator
from weft.nn.attention import Attention
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.distances import Rotary, turned
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import Memory
from weft.nn.heads.categorical import Categorical
from weft.nn.positions import sinusoid
from weft.nn.scores import Dot, ScaledScore
from weft.probe import probe

TEXT = "Save the new file, and save the"


def transformer() -> Generator:
    """Weft's model with the weights of the page."""
    embed = Tokens(2000, 96, scaled=False)
    decoder = TransformerDecoder(
        96, size=96, num_layers=2, num_heads=4, activation="gelu", positions="rotary", dropout=0.0
    )
    model: Generator = weighted(
        Generator(embed, decoder, Categorical(96, 2000, tied=embed.table)), *exported("heads")
    )
    return model


@node
def test_every_tensor_is_that_of_weft(tmp_path: Path) -> None:
    script = f"""(async () => {{
      const net = await live.model('heads'), text = {json.dumps(TEXT)};
      const {{ w, ...found }} = await live.parts.transformer.trace(net, net.row(live.spaced(text)));
      return {{ ...found, page: net.read(live.spaced(text)).map(({{ logp }}) => logp) }};
    }})()"""
    page = in_node("transformer", script, tmp_path, "heads")
    assert page["pieces"] == ["⏎", "save", "the", "new", "file", ",", "and", "save", "the"]
    model, seen = transformer(), {}
    for name, module in model.decoder.named_modules():
        module.register_forward_hook(lambda _, given, out, name=name: seen.update({name: (given[0], out)}))
    tokens = torch.tensor([page["tokens"]])
    with torch.no_grad(), probe() as probed:
        state = model.start(tokens, torch.ones_like(tokens, dtype=torch.bool))
        logp = model.head(model.decoder(model.embed(tokens), state)[0])[0]

    def same(ours: Any, theirs: torch.Tensor) -> None:
        theirs = theirs.detach().reshape(np.shape(ours))
        assert np.abs(np.array(ours, dtype=float) - theirs.numpy()).max() < 1e-5

    def heads(rows: torch.Tensor) -> torch.Tensor:
        return rows.reshape(-1, 4, 24).transpose(0, 1)

    angles = torch.arange(9.0).double()[:, None] * 10000 ** -(torch.arange(12).double() / 12)
    turn = torch.polar(torch.ones_like(angles), angles)
    same(page["embedding"], model.embed(tokens)[0])
    for n, layer in enumerate(page["layers"]):
        own = {name.split(".", 2)[2]: one for name, one in seen.items() if name.startswith(f"blocks.{n}.")}
        for key, name in (("x", "attention_norm"), ("joined", "attention.out"), ("x1", "network_norm")):
            same(layer[key], own[name][0])
        for key, name in (("n", "attention_norm"), ("o", "attention.out"), ("n1", "network_norm")):
            same(layer[key], own[name][1])
        for key, name in (("h", "network.first"), ("f", "network.second")):
            same(layer[key], own[name][1])
        same(layer["g"], own["network.second"][0])
        q = heads(own["attention.query"][1][0])
        k, v = map(heads, own["attention.key_value"][1][0].chunk(2, -1))
        for key, values in (("q", q), ("k", k), ("v", v)):
            same(layer[key], values)
        q2, k2 = (
            torch.view_as_real(torch.view_as_complex(one.reshape(4, 9, 12, 2).contiguous()) * turn).flatten(2)
            for one in (q, k)
        )
        same(layer["q2"], q2)
        same(layer["k2"], k2)
        same(layer["s"], q2 @ k2.mT / 24**0.5)
        weights = next(iter(probed.values()))[n][0]
        same(layer["a"], weights)
        same(layer["z"], weights @ v)
        same(layer["x2"], own["network.second"][1][0] + own["network_norm"][0])
    same(page["last"], seen["last_norm"][1])
    same(page["probs"], logp.exp())
    logits = torch.tensor(page["logits"])
    same(page["logits"], logp + logits.logsumexp(-1, keepdim=True))
    assert np.abs(np.array(page["page"]) - logp.numpy()).max() < 1e-3  # the page's runtime has float32


def test_a_word_is_followed_to_the_prediction(opened: Callable[[str], Browser]) -> None:
    page = opened("transformer")
    told = "document.querySelector('.live-sum').textContent"
    chosen = "[...document.querySelectorAll('[aria-current=step]')].map((one) => one.textContent)"
    assert page.run(chosen) == ["Input", "Tokens"]
    page.run("document.querySelector('.live-walk [aria-current=step]').focus()")
    for _ in range(7):
        page.press("ArrowRight", 39)
    assert page.run(chosen) == ["Layer 1", "Softmax"]
    assert page.run(told).startswith("the → save: a = e^")  # head 1 reads the word before
    page.run("document.querySelectorAll('.live-walk .live-button')[2].click()")
    assert page.run(chosen) == ["Layer 2", "Softmax"]
    assert page.run(told).startswith("the → new: a = e^")  # and here what followed it
    page.run("document.querySelectorAll('.live-cells')[1].focus()")
    page.press("ArrowUp", 38)
    page.press("ArrowLeft", 37)
    assert page.run(told).startswith("save → the: a = e^")
    for _ in range(9):
        page.run("[...document.querySelectorAll('.live-walk button')].at(-1).click()")
    assert page.run(chosen) == ["Output", "Next word"]
    assert page.run(f"[{told}, document.querySelectorAll('.live-walk button:disabled').length]") == [
        page.run(told),
        1,
    ]
    page.run("document.querySelectorAll('.live-pieces button')[7].click()")
    assert page.run(told).startswith("new: p = e^")
    page.run("document.querySelector('.live-stage input').select()")
    page.type("click the")
    page.wait("document.querySelectorAll('.live-pieces button').length === 3")
    page.run("document.querySelector('.live-walk button').click()")
    assert page.run(told) == "the: number = 5"


@node
def test_a_sum_is_shown_by_its_largest_products(tmp_path: Path) -> None:
    script = """live.products([[1, 2], [-3, 1], [0.5, 0.1], [10, 1], [4, 1], [0.1, 0.1]], [[0.25, 'b']])"""
    found = in_node("transformer", script, tmp_path)
    four = "10.000 · 1.000 + 4.000 · 1.000 + (−3.000) · 1.000 + 1.000 · 2.000"
    assert found["text"] == f"{four} + 0.060 (the other 2 products) + 0.250 (b)"
    assert len(found["more"]) == 6 and found["more"][1] == "2: (−3.000) · 1.000 = −3.000"


@node
@pytest.mark.parametrize("scaled", [False, True])
def test_weights_and_context(scaled: bool, tmp_path: Path) -> None:
    torch.manual_seed(3)
    states, query = torch.randn(1, 5, 7, dtype=torch.float64), torch.randn(1, 1, 7, dtype=torch.float64)
    attention = Attention((ScaledScore if scaled else Dot)(7, 7), 7).double()
    memory = Memory(states, torch.ones(1, 5) > 0, states[:, -1])
    with probe() as seen:
        context = attention(query, attention.prepare(memory))
    asked = f"{json.dumps(query[0, 0].tolist())}, {json.dumps(states[0].tolist())}, {json.dumps(scaled)}"
    found = in_node("attention", f"live.parts.attention.attend({asked})", tmp_path)
    assert found["weights"] == pytest.approx(seen["attention"][0].flatten().tolist(), abs=1e-10)
    assert found["context"] == pytest.approx(context.flatten().tolist(), abs=1e-10)


@node
def test_random_features_have_the_variance_of_the_sentence(tmp_path: Path) -> None:
    script = "live.parts.attention.drawn(1, 512, 8).keys.flat()"
    values = torch.tensor(in_node("attention", script, tmp_path))
    assert values.mean().abs() < 0.05 and abs(values.var() - 1) < 0.05


def test_arrows_follow_keys_and_mouse(opened: Callable[[str], Browser]) -> None:
    page = opened("attention")
    context = "document.querySelector('.live-context').textContent"
    assert page.run(context) == "context c = (1.575, 0.425)"  # by hand, in the chapter
    page.run("document.querySelector('[aria-label=query]').focus()")
    ring = "document.querySelector('[aria-label=query] circle:last-child')"
    drawn = "(({ stroke, strokeWidth, vectorEffect }) => [stroke, strokeWidth, vectorEffect])"
    drawn += f"(getComputedStyle({ring}))"
    page.press("ArrowLeft", 37)
    page.press("ArrowRight", 39)
    assert page.run(drawn)[0] != "none" and page.run(drawn)[1:] == ["3px", "non-scaling-stroke"]
    handle = "getComputedStyle(document.querySelector('[aria-label=query]'))"
    assert page.run(f"{handle}.outlineStyle") == "none"  # it would be in units of the drawing
    for key, code in [("ArrowLeft", 37), ("ArrowUp", 38)] * 10:
        page.press(key, code)
    assert page.run("document.querySelector('[aria-label=query]').ariaValueText") == "0.00, 1.00"
    assert page.run(context) == "context c = (0.425, 1.575)"  # the mirror image
    box = page.run(
        """(() => { const of = (name) => document.querySelector(name).getBoundingClientRect();
        const b = of('[aria-label=query] circle');
        return [b.x + b.width / 2, b.y + b.height / 2, of('.live-stage svg').width]; })()"""
    )
    where = {"button": "left", "clickCount": 1}
    page.send("Input.dispatchMouseEvent", type="mousePressed", x=box[0], y=box[1], **where)
    page.send("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1] + box[2] / 6.6, **where)
    page.send("Input.dispatchMouseEvent", type="mouseReleased", x=box[0], y=box[1] + box[2] / 6.6, **where)
    assert page.run("document.querySelector('[aria-label=query]').ariaValueText") == "0.00, 0.00"
    assert page.run(context) == "context c = (1.000, 1.000)"  # equal weights: the mean of the states


@node
@pytest.mark.parametrize("base", [10.0, 10000.0])
def test_the_table_and_the_angles(base: float, tmp_path: Path) -> None:
    found = in_node(
        "positions", f"[0, 3, 41].map((t) => live.parts.positions.sinusoid(t, 12, {base}))", tmp_path
    )
    assert torch.tensor(found).allclose(sinusoid(torch.tensor([0, 3, 41]), 12, base=base), atol=1e-6)
    torch.manual_seed(2)
    x = torch.randn(10, dtype=torch.float64)
    script = f"[0, 3, 41].map((t) => live.parts.positions.turned({x.tolist()}, t, {base}))"
    order = Rotary(10, base=base)(torch.tensor([0, 3, 41]), torch.tensor([0, 3, 41]), x)
    wanted = turned(x.expand(1, 1, 3, 10), order.turn)[0, 0]
    assert torch.tensor(in_node("positions", script, tmp_path), dtype=torch.float64).allclose(
        wanted, atol=1e-10
    )


@node
def test_the_energy_depends_on_the_distance_alone(tmp_path: Path) -> None:
    pairs = "[[3, 5], [103, 105], [3, 6]]"
    script = f"{pairs}.map(([t, s]) => live.parts.positions.energy([1, 2, 3, 4], [2, 0, 1, 1], t, s, 10000))"
    near, far, other = in_node("positions", script, tmp_path)
    assert near == pytest.approx(far, abs=1e-10) and abs(near - other) > 0.01


def test_sliders_move_the_table_and_the_hands(opened: Callable[[str], Browser]) -> None:
    page = opened("positions")
    told, energy = (f"document.querySelector('.{name}').textContent" for name in ("live-told", "live-energy"))
    assert page.run(told).startswith("Position 3, feature 4: sin(3 · 0.316) = 0.813.")
    page.run("document.querySelectorAll('.live-slider input')[2].focus()")
    for _ in range(3):
        page.press("ArrowLeft", 37)  # base 10,000 to 10
    assert page.run(told).startswith("Position 3, feature 4: sin(3 · 0.750) = 0.778.")
    before = page.run(energy).partition(": ")[2]
    page.run("[...document.querySelectorAll('.live-button')].at(-1).click()")
    assert page.run(energy) == f"Energy of query at 4 and key at 6, distance 2: {before}"


@node
def test_weights_of_every_head(tmp_path: Path) -> None:
    [[text, wanted]] = expected("heads")
    typed = text.capitalize().replace(" .", ".")
    script = f"(async () => live.parts.heads.look(await live.model('heads'), {json.dumps(typed)}))()"
    found = in_node("heads", script, tmp_path, "heads")
    ours, theirs = np.array(found["weights"]), np.array(wanted)
    assert found["pieces"] == ["⏎", *text.split()]
    assert ours.shape == theirs.shape == (2, 4, len(found["pieces"]), len(found["pieces"]))
    assert np.abs(ours.sum(-1) - 1).max() < 1e-5
    assert (ours == np.tril(ours)).all()  # causal
    assert np.abs(ours - theirs).max() < 0.05  # weights have 8 bits


@node
def test_a_head_reads_the_word_before_and_one_what_followed(tmp_path: Path) -> None:
    [[text, _]] = expected("heads")
    script = f"""(async () => {{
      const {{ look, habit }} = live.parts.heads, net = await live.model('heads');
      const {{ pieces, weights }} = look(net, {json.dumps(text)});
      return weights.map((heads) => heads.map((one) => habit(pieces, one)));
    }})()"""
    first, second = in_node("heads", script, tmp_path, "heads")
    assert max(head["before"] for head in first) > 0.5
    assert max(head["followed"] for head in second) > 0.5


@node
def test_what_a_head_reads_is_counted(tmp_path: Path) -> None:
    script = "live.parts.heads.habit(['⏎', 'a', 'b', 'a'], [[1], [0.25, 0.75], [0, 1, 0], [0, 0, 0.5, 0.5]])"
    found = in_node("heads", script, tmp_path)
    assert np.allclose([found["before"], found["itself"]], [(0.25 + 1 + 0.5) / 3, (0.75 + 0.5) / 3])
    assert found["followed"] == 0.5  # after the first a stands b


def test_a_head_and_a_word_are_chosen(opened: Callable[[str], Browser]) -> None:
    page = opened("heads")
    told = "document.querySelector('.live-told').textContent"
    assert page.run("document.querySelectorAll('.live-heads button').length") == 8
    page.run("document.querySelectorAll('.live-heads button')[5].click()")
    axes = "[...document.querySelectorAll('.live-scroll text')].map((one) => one.textContent)"
    assert page.run(axes)[::2] == page.run(axes)[1::2]  # the words stand at both axes
    assert page.run(axes)[::2][:4] == ["⏎", "the", "first", "page"]
    page.run("document.querySelectorAll('.live-pieces button')[3].focus()")
    assert page.run(told).startswith("Layer 2, head 2: “page” reads ")
    page.run("document.querySelector('.live-stage input').select()")
    page.type("save the file")
    page.wait("document.querySelectorAll('.live-pieces button').length === 4")
    assert "“file” reads" in page.run(told)
