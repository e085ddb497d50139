"""Every number of the parts that are walked through by steps is that of Weft or of PyTorch."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.live.pages import DOCS, in_node, node
from tests.serve.browser import Browser
from weft.ngram.kneser_ney import kneser_ney
from weft.nn.cells.elman import Elman
from weft.nn.cells.lstm import LSTM
from weft.search.beam import beam_search
from weft.search.trace import Trace

GATES = (torch.sigmoid, torch.sigmoid, torch.tanh, torch.sigmoid)  # i, f, candidate, o


def same(ours: Any, theirs: Any) -> bool:
    return np.allclose(np.array(ours, float), np.array(theirs, float), rtol=0, atol=1e-9)


@node
def test_the_step_of_an_lstm_is_that_of_the_cell_there_and_back(tmp_path: Path) -> None:
    source = torch.Generator().manual_seed(3)
    inner = torch.randn(4, 3, generator=source, dtype=torch.float64)
    i, f, g, o = (one(row) for one, row in zip(GATES, inner, strict=True))
    c = torch.tensor([2.0, -1.5, 0.5], dtype=torch.float64, requires_grad=True)
    values = {key: one.tolist() for key, one in zip("figoc", (f, i, g, o, c), strict=True)}
    page = in_node("lstm", f"live.parts.lstm.step({json.dumps(values)})", tmp_path)
    cell = LSTM(1, 3).double()
    with torch.no_grad():
        cell.weight_h.zero_()
    cell.bias = torch.nn.Parameter(inner.reshape(-1).clone())
    old = c.detach()[None].clone().requires_grad_()
    zeros = torch.zeros(1, 3, dtype=torch.float64)
    _, (h, new) = cell.step(zeros[:, :1], (zeros, old))
    new.retain_grad()
    h.sum().backward()
    assert same(page["h"], h[0].tolist()) and same(page["next"], new[0].tolist())
    assert same(page["back"], old.grad[0].tolist()) and same(page["dc"], new.grad[0].tolist())
    ours = [page[key] for key in ("zi", "zf", "zg", "zo")]
    assert same(ours, cell.bias.grad.reshape(4, 3).tolist())


@node
def test_the_arrows_are_the_gradients_of_pytorch(tmp_path: Path) -> None:
    page = in_node("bptt", "live.parts.bptt.run({ w: 0.7, u: -1.3, y: 0.4 })", tmp_path)
    cell = Elman(1, 1).double()
    with torch.no_grad():
        for weight, value in ((cell.weight_x, 0.7), (cell.weight_h, -1.3), (cell.bias, 0.0)):
            weight.fill_(value)
    states = [torch.zeros(1, 1, dtype=torch.float64)]
    for value in (1.0, 0.5, -0.5, 1.0):
        states.append(cell.step(torch.tensor([[value]], dtype=torch.float64), (states[-1],))[0])
        states[-1].retain_grad()
    loss = (states[-1] - 0.4).square().sum() / 2
    loss.backward()
    assert same(page["h"], [one.item() for one in states]) and same(page["loss"], loss.item())
    assert same(page["delta"][1:], [one.grad.item() for one in states[1:]])
    assert same([page["du"], page["dw"]], [cell.weight_h.grad.item(), cell.weight_x.grad.item()])


@node
@pytest.mark.parametrize(
    "text",
    ["low 5 lower 2 newest 6 widest 3", "low 5 lower 2 newest 6 widest 3 slow 9", "aaaaaa 2 aab 3 abcabc"],
)
def test_merges_are_those_of_the_chapter(text: str, tmp_path: Path) -> None:
    page = in_node(
        "pairs", f"live.parts.pairs.merges(live.parts.pairs.counted('{text}'), 'lowest', 5)", tmp_path
    )
    code = (DOCS / "course" / "tokens.md").read_text("utf-8").split("from collections import Counter\n", 1)[1]
    words = {word: int(count or 1) for word, count in re.findall(r"([a-z]+) ?(\d+)?", text)}
    code = re.sub(r"counts = \{.*\}", f"counts = {words}", code.split("```")[0])
    names: dict[str, Any] = {"Counter": Counter, "print": lambda *told: said.append(told)}
    said: list[Any] = []
    exec(code, names)  # the chapter
    assert [(*one["pairs"][0]["two"], one["pairs"][0]["count"]) for one in page] == said[:-1]
    assert page[-1]["other"] == said[-1][0] == names["pieces"]["lowest"]
    assert [pieces for pieces, _ in page[-1]["rows"]] == [names["pieces"][word] for word in words]


@node
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_the_beam_is_that_of_weft(width: int, tmp_path: Path) -> None:
    part = "live.parts.beam"
    script = f"[{part}.search({width}), {part}.finished({part}.search({width}), 0.5)]"
    steps, finished = in_node("beam", script, tmp_path)
    code = (DOCS / "course" / "decoding.md").read_text("utf-8").split("import torch\n", 1)[1].split("```")[0]
    names: dict[str, Any] = {"torch": torch}
    exec(code, names)
    words, table, trace = names["words"], names["table"], Trace()
    settings = {"eos": 1, "max_length": 4, "width": width, "trace": trace}
    found = beam_search(
        lambda token, state: (table[token], state), None, torch.tensor([0]), length_penalty=0.5, **settings
    )
    texts: dict[tuple[int, int], list[str]] = {(0, 0): []}
    fates = set()
    for one in trace.candidates:
        text = [*texts[one.time - 1, one.parent], words[one.token]]
        if one.fate != "dropped":
            texts[one.time, one.slot] = text
        [ours] = [other for other in steps[one.time - 1] if other["text"] == text]
        assert same(ours["sum"], one.cumulative)
        fates.add((one.fate, ours["fate"]))
    assert len(fates) == len({fate for fate, _ in fates}) == len({fate for _, fate in fates})
    best = [words[n] for n in found.tokens[0, 0] if n != 1]
    assert finished[0]["text"] == [*best, "</s>"] and same(finished[0]["sum"], found.logp[0, 0].item())
    assert same(finished[0]["score"], finished[0]["sum"] / math.sqrt(len(best) + 1))


@node
@pytest.mark.parametrize(
    "lines", [["new york is old", "new york is big", "old is new"], ["a b", "a b", "a b", "a c", "d c"]]
)
def test_the_counts_are_those_of_wefts_kneser_ney(lines: list[str], tmp_path: Path) -> None:
    page = in_node("counts", f"live.parts.counts.estimate({json.dumps(lines)}, [0.5, 1, 1.5])", tmp_path)
    names = page["contexts"]
    text = [names.index(word) for line in lines for word in ["<s>", *line.split()]]
    model = kneser_ney(np.array(text), size=len(names), order=2, start=0)
    theirs = np.exp(model.distribution(np.arange(len(names))[:, None]))[:, 1:]
    seen = [v for v, total in enumerate(page["total"]) if total]
    assert same(np.array(page["prob"])[seen], theirs[seen])
    assert same(np.array(page["prob"]).sum(1), 1)


TOLD = "document.querySelector('.live-sum').textContent"
STEPS = {
    "lstm": (6, "unit → 1: f ⊙ c = 0.900 · 2.000 = 1.800"),
    "bptt": (11, "t = 1: h = tanh(0.500 · 1.000 + 0.900 · 0.000) = 0.4621"),
    "pairs": (8, "e s: how often the pair occurs = 6 (newest) + 3 (widest) = 9"),
    "beam": (5, "✓ the → sum: log P(y) = 0.000 + (−0.598) = −0.598"),
    "counts": (6, "new → york: C(v w) = 2"),
}


@pytest.mark.parametrize("name", STEPS)
def test_every_step_is_walked_through_by_keys(name: str, opened: Callable[[str], Browser]) -> None:
    count, first = STEPS[name]
    page = opened(name)
    assert page.run(TOLD) == first
    page.run("document.querySelector('.live-walk [aria-current=step]').focus()")
    shown = set()
    for place in range(1, count + 1):
        assert (
            page.run("document.querySelector('.live-walk .live-quiet').textContent")
            == f"step {place} of {count}"
        )
        shown.add(page.run("document.querySelector('.live-views').textContent"))
        assert "NaN" not in page.run("document.querySelector('.live-stage').textContent")
        page.press("ArrowRight", 39)
    assert len(shown) >= count - 1


def test_a_slider_moves_the_picked_unit(opened: Callable[[str], Browser]) -> None:
    page = opened("lstm")
    page.run("document.querySelector('.live-cells').focus()")
    page.press("ArrowRight", 39)
    slider = "document.querySelector('.live-slider input')"
    assert page.run(f"{slider}.value") == "0.1"
    page.run(f"{slider}.value = 0")
    page.run(f"{slider}.dispatchEvent(new Event('input'))")
    page.run("document.querySelector('.live-row .live-button').click()")
    assert "Steps taken: 1." in page.run("document.querySelector('.live-stage').textContent")
    assert page.run("document.querySelector('.live-matrix').textContent").endswith("−0.560−1.000")


@node
@pytest.mark.parametrize("tanh", [True, False])
@pytest.mark.parametrize("weight", [0.9, 1.3])
def test_products_are_gradients(weight: float, tanh: bool, tmp_path: Path) -> None:
    states = [torch.tensor(0.7, dtype=torch.float64, requires_grad=True)]
    for _ in range(11):
        states.append((weight * states[-1]).tanh() if tanh else weight * states[-1])
    wanted = [float(one) for one in torch.autograd.grad(states[-1], states)]
    script = f"live.parts.reach.products({weight}, 11, {{ tanh: {str(tanh).lower()}, start: 0.7 }})"
    assert in_node("reach", script, tmp_path)[::-1] == pytest.approx(wanted, rel=1e-10)


@node
def test_a_gradient_is_told_with_three_digits(tmp_path: Path) -> None:
    values = "[0, 0.00515377, 1, 1670.7, 1.3 ** 50, 0.5 ** 50]"
    wanted = ["0", "0.00515", "1", "1,670", "4.98 · 10⁵", "8.88 · 10⁻¹⁶"]
    assert in_node("reach", f"{values}.map(live.parts.reach.shown)", tmp_path) == wanted


def test_the_weight_moves_the_curve(opened: Callable[[str], Browser]) -> None:
    page = opened("reach")
    told = "document.querySelector('.live-told').textContent"
    page.run("[...document.querySelectorAll('.live-choice input')].at(-1).click()")
    assert page.run(told).startswith("Over the distance 50 the gradient shrinks to 0.00515.")  # 0.9 ** 50
    page.run("document.querySelector('.live-slider input').focus()")
    for _ in range(20):
        page.press("ArrowRight", 39)
    assert page.run(told).startswith("Over the distance 50 the gradient grows to 4.98 · 10⁵.")  # 1.3 ** 50
    assert page.run("document.querySelectorAll('.live-lines path[stroke]').length") == 6
    page.run("document.querySelectorAll('.live-slider input')[0].focus()")
    page.press("Home", 36)
    assert page.run(told).startswith("Over the distance 50 the gradient shrinks to 0.")  # weight 0
