"""Every number that the opened Transformer shows is that of Weft's Transformer with the page's weights."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.live.pages import exported, in_node, node, weighted
from tests.serve.browser import Browser
from weft.models import Generator
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.heads.categorical import Categorical
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
