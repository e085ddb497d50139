"""Every number that the opened encoder-decoder shows is that of PyTorch's GRU with the page's weights."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.live.pages import exported, in_node, node
from tests.serve.browser import Browser


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
