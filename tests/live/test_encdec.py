"""Encoder-decoders: the opened one, the one that reverses letters, the translator and its search tree."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.live.pages import expected, exported, in_node, node
from tests.serve.browser import Browser
from tests.slow import leading


def reader(constants: dict[str, Tensor], nodes: list[Any], name: str) -> torch.nn.GRU:
    """The GRU of the encoder behind a tensor; ONNX has its gates in the order u, r, candidate."""
    made = {one: node for node in nodes for one in node[2]}
    while made[name][0] != "GRU":
        name = made[name][1][0]
    gru = torch.nn.GRU(32, 64).double()
    x, h, bias = (constants[one][0] for one in made[name][1][1:4])

    def order(rows: Tensor) -> Tensor:
        u, r, g = rows.chunk(3)
        return torch.cat([r, u, g])

    with torch.no_grad():
        gru.weight_ih_l0.copy_(order(x))
        gru.weight_hh_l0.copy_(order(h))
        gru.bias_ih_l0.copy_(order(bias[:192]))
        gru.bias_hh_l0.copy_(order(bias[192:]))
    return gru


@node
@torch.no_grad()
def test_every_tensor_is_that_of_pytorch(tmp_path: Path) -> None:
    script = """(async () => {
      const net = await live.model('reverse-input');
      const { w, ...found } = live.parts.encdec.trace(net, [...'pagebad']);
      const page = await net.answer('p a g e b a d', { inside: true });
      return { ...found, page: page.text, logp: page.inside.steps.map(({ logp }) => logp) };
    })()"""
    page = in_node("encdec", script, tmp_path, "reverse-input")

    def same(ours: Any, theirs: Tensor) -> None:
        assert np.abs(np.array(ours) - theirs.numpy().reshape(np.shape(ours))).max() < 1e-5

    start, nodes = exported("reverse-input", "start")
    step, step_nodes = exported("reverse-input")
    made = {one: node for node in nodes for one in node[2]}
    table = step["module.model.source_embed.table.weight"]
    x = table[page["tokens"]] * 32**0.5
    forward, backward = (reader(start, nodes, name) for name in made["state_2"][1])
    right, left = forward(x)[0], backward(x.flip(0))[0].flip(0)
    h = torch.cat([right, left], 1)
    keys = h @ start[made["state_1"][1][1]]
    bridge = "module.model.decoder.bridge.maps.0.0"
    last = torch.cat([right[-1], left[0]])
    s = torch.tanh(start[f"{bridge}.weight"] @ last + start[f"{bridge}.bias"])
    for key, wanted in (("x", x), ("h", h), ("k", keys), ("last", last), ("s0", s)):
        same(page[key], wanted)
    for key, course in (("forward", right), ("backward", left)):
        same([one["h"] for one in page[key]], course)
    cell = torch.nn.GRUCell(160, 64).double()
    own = "module.model.decoder.stack.forwards.0"
    cell.weight_ih.copy_(step[f"{own}.weight_x"])
    cell.weight_hh.copy_(step[f"{own}.weight_h"])
    cell.bias_ih.copy_(step[f"{own}.bias"])
    cell.bias_hh.zero_()[128:] = step[f"{own}.bias_n"]
    query, energy, _ = (step.get(inputs[1]) for operator, inputs, *_ in step_nodes if operator == "MatMul")
    token = 2
    for one, logp in zip(page["steps"], page["logp"], strict=True):
        q = s @ query + step["module.model.decoder.attention.score.query.bias"]
        weights = (torch.tanh(q + keys) @ energy).softmax(0)
        context = weights[:, 0] @ h
        new = cell(torch.cat([table[token] * 32**0.5, context])[None], s[None])[0]
        logits = table @ (step["module.model.head.project.weight"] @ new) + step["module.model.head.bias"]
        for key, wanted in (("old", s), ("q", q), ("a", weights), ("c", context), ("h", new)):
            same(one[key], wanted)
        same(one["logits"], logits)
        same(one["probs"], logits.softmax(0))
        assert np.abs(np.log(one["probs"]) - np.array(logp)).max() < 1e-3  # the page's runtime has float32
        u, g = (torch.tensor(one[key]).double() for key in "ug")
        gates = cell.weight_ih[:128] @ torch.tensor(one["x"]).double() + cell.weight_hh[:128] @ s
        same([*one["r"], *one["u"]], torch.sigmoid(gates + cell.bias_ih[:128]))
        same(one["h"], u * s + (1 - u) * g)
        token, s = one["token"], new
    assert [*page["page"].split(), "⏎"] == page["written"] == [*"dabegap", "⏎"]


def test_a_letter_is_followed(opened: Callable[[str], Browser]) -> None:
    page = opened("encdec")
    told = "document.querySelector('.live-sum').textContent"
    written = "[...document.querySelectorAll('.live-pieces button')].map((one) => one.textContent)"
    assert page.run(written) == [*"knalb", "⏎"]
    page.run("document.querySelectorAll('.live-walk .live-button')[1].click()")
    page.run("document.querySelector('.live-walk [aria-current=step]').focus()")
    page.press("ArrowRight", 39)
    page.press("ArrowRight", 39)
    assert page.run(told).startswith("k → k: α = e^")
    page.run("document.querySelectorAll('.live-pieces button')[2].click()")
    assert page.run(told).startswith("a → a: α = e^")
    page.run("document.querySelectorAll('.live-walk .live-button')[2].click()")
    for _ in range(3):
        page.run("[...document.querySelectorAll('.live-walk button')].at(-1).click()")
    assert page.run(told).startswith("a → a: p = e^")
    page.run("document.querySelector('.live-stage input').select()")
    page.type("bad x")
    page.wait("document.querySelectorAll('.live-pieces button').length === 4")
    assert page.run(written) == [*"dab", "⏎"]


@node
@pytest.mark.parametrize("enters", leading(["input", "never", "late"]))
def test_answers(enters: str, tmp_path: Path) -> None:
    given = expected(f"reverse-{enters}")
    texts = [source.split() for source, _ in given]
    script = f"""(async () => {{
      const net = await live.model('reverse-{enters}'), found = [];
      for (const text of {json.dumps(texts)}) found.push(await live.parts.reverse.answer(net, text));
      return found;
    }})()"""
    found = in_node("reverse", script, tmp_path, f"reverse-{enters}")
    same = [one["written"] == wanted.split() for one, (_, wanted) in zip(found, given, strict=True)]
    assert sum(same) >= 0.9 * len(same)  # weights have 8 bits
    for letters, one in zip(texts, found, strict=True):
        for row in one["attention"] or ():
            assert len(row) == len(letters) and sum(row) == pytest.approx(1, abs=1e-4)
    assert (found[0]["attention"] is None) == (enters == "never")


def test_short_strings_are_right_and_long_ones_break(opened: Callable[[str], Browser]) -> None:
    page = opened("reverse")
    verdicts = (
        "[...document.querySelectorAll('.live-stage td:last-child')].map((one) => one.textContent).slice(1)"
    )
    page.run("document.querySelector('.live-slider input').focus()")
    page.press("Home", 36)
    page.wait("document.querySelector('.live-mono').textContent.length === 3")
    assert page.run(verdicts)[2] == "right"
    page.press("End", 35)
    page.wait("document.querySelector('.live-mono').textContent.length === 16")
    assert page.run(verdicts)[0] != "right"
    assert page.run("document.querySelectorAll('.live-stage svg rect').length") > 100


@node
def test_answers_and_the_tree(tmp_path: Path) -> None:
    given = expected("translator")
    script = f"""(async () => {{
      const net = await live.model('translator'), found = [], {{ search, named }} = live.parts.translator;
      for (const text of {json.dumps([text for text, _ in given])}) {{
        const {{ steps, pieces, score, text: said, attention }} = named(await search(net, text, 5));
        const sums = attention.map((row) => row.reduce((a, b) => a + b, 0));
        found.push({{ steps, pieces, score, said, attention: sums }});
      }}
      return found;
    }})()"""
    found = in_node("translator", script, tmp_path, "translator")
    same = [one["said"] == wanted for one, (_, wanted) in zip(found, given, strict=True)]
    assert sum(same) >= len(same) - 1  # weights have 8 bits
    for one in found:
        assert all(abs(total - 1) < 1e-3 for total in one["attention"])
        for before, after in zip(one["steps"], one["steps"][1:], strict=False):
            sums = [kept["sum"] for kept in after["live"]]
            assert len(sums) <= 5 and sums == sorted(sums, reverse=True)
            for kept in after["live"]:
                parent = before["live"][kept["parent"]]
                assert kept["sum"] <= parent["sum"] and kept["path"].startswith(parent["path"])


@node
def test_the_hint_is_true_for_the_first_sentence(tmp_path: Path) -> None:
    script = """(async () => {
      const net = await live.model('translator'), { search, named, winner } = live.parts.translator;
      const text = 'Open the folder that contains the picture.';
      const [one, five] = [1, 5].map((beam) => search(net, text, beam));
      return [(await one).text, (await five).text, winner(named(await five))];
    })()"""
    greedy, best, ranks = in_node("translator", script, tmp_path, "translator")
    assert greedy != best and max(ranks) > 0


def test_pointing_and_playing(opened: Callable[[str], Browser]) -> None:
    page = opened("translator")
    page.wait("document.querySelector('.live-pieces button')")
    numbers = "[...document.querySelectorAll('.live-scroll text.quiet')].map((one) => one.textContent)"
    assert all(one.startswith("−") for one in page.run(numbers))  # log-probabilities
    page.run("document.querySelector('.live-pieces button').focus()")
    tinted = (
        "[...document.querySelectorAll('.live-pieces')[1].children].map((one) => one.style.backgroundColor)"
    )
    assert len(set(page.run(tinted))) > 1
    page.run("document.querySelector('.live-button').click()")
    paths = "document.querySelectorAll('.live-scroll path').length"
    page.wait(f"{paths} > 3")
    few = page.run(paths)
    page.wait(f"{paths} > {few + 5}")
    page.run("document.querySelectorAll('.live-slider input')[1].focus()")
    page.press("Home", 36)
    assert page.run(paths) == 0
