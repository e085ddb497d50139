"""The parts on models of letters: n-grams, gates and gradients are those of Weft and of PyTorch."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.live.pages import exported, in_node, node, weighted
from tests.serve.browser import Browser
from weft.models import Generator
from weft.ngram.kneser_ney import kneser_ney
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.heads.categorical import Categorical

TEXT = (
    "click the button to open the file. the file is then shown, and the button is closed again. " * 2
    + "zoom!"
)


@node
@pytest.mark.parametrize("order", [1, 2, 4])
def test_probabilities_of_the_next_letter(order: int, tmp_path: Path) -> None:
    letters = sorted(set(TEXT))
    tokens = np.array([len(letters), *(letters.index(letter) for letter in TEXT)])
    model = kneser_ney(tokens, size=len(letters) + 1, order=order, start=len(letters))
    before = ["", "th", "the f", "xyz", "zoom!"]
    script = f"(({{ letters, probs }}) => {json.dumps(before)}.map((one) => [letters, probs(one)]))"
    script += f"(live.parts.letters.kneserNey({json.dumps(TEXT)}, {order}))"
    for text, (names, probs) in zip(before, in_node("letters", script, tmp_path), strict=True):
        assert names == letters and sum(probs) == pytest.approx(1, abs=1e-9)
        past = [len(letters), *(letters.index(one) if one in letters else -1 for one in text)]
        row = np.array([past[-(order - 1) :] if order > 1 else []], np.int64)
        wanted = np.exp(model.distribution(row))[0, : len(letters)]
        if "x" not in text:
            assert probs == pytest.approx(wanted.tolist(), abs=1e-9), text


@node
def test_a_space_at_the_end_counts(tmp_path: Path) -> None:
    script = """(async () => {
      const net = live.parts.letters.exact(await live.model('letters-lstm'));
      return ['Click the ', 'Click the'].map((text) => net.next(text).pieces[0]);
    })()"""
    after, before = in_node("letters", script, tmp_path, "letters-lstm")
    assert after.isalpha() and before == "▁"


def test_typing_and_writing(opened: Callable[[str], Browser]) -> None:
    page = opened("letters")
    rows = "document.querySelectorAll('.live-bars')[{}].rows[0].textContent"
    page.run("document.querySelector('.live-stage textarea').select()")
    page.type("Click the butto")
    assert [page.run(rows.format(side))[0] for side in (0, 1)] == ["n", "n"]
    page.run("document.querySelectorAll('.live-slider input')[2].focus()")
    page.press("ArrowRight", 39)  # top-k of 1: the likeliest letter alone
    assert page.run(rows.format(1)) == "n1.000"
    page.run("document.querySelector('.live-button').click()")
    page.wait("[...document.querySelectorAll('.live-said')].every((one) => one.textContent.length > 100)")
    said = page.run("[...document.querySelectorAll('.live-said')].map((one) => one.textContent)")
    assert all(one.startswith("Click the button") for one in said)


SENTENCE = 'Open the "File" menu.'
CELLS = {"lstm": LSTM, "gru": GRU}


@node
@pytest.mark.parametrize("name", CELLS)
def test_states_letter_by_letter(name: str, tmp_path: Path) -> None:
    script = f"""(async () => {{
      const net = await live.model('letters-{name}'), text = {json.dumps(SENTENCE)};
      const known = [...net.step.known].map(([name, {{ dims, data }}]) => [name, dims, data]);
      const probs = net.read(text).map(({{ logp }}) => logp);
      return [net.row(text), live.parts.gates.read('{name}', net, text), known, probs];
    }})()"""
    numbers, steps, known, probs = in_node("gates", script, tmp_path, f"letters-{name}")
    weights = {key.rpartition("module.")[2]: torch.tensor(data).reshape(dims) for key, dims, data in known}

    def part(ending: str) -> dict[str, torch.Tensor]:
        return {key.rpartition(".")[2]: one for key, one in weights.items() if ending in key}

    table, head = part("table."), part("head.")
    embed = Tokens(*table["weight"].shape)
    embed.table.load_state_dict(table)
    cell = CELLS[name](48, 128)
    cell.load_state_dict(part("forwards.0."))
    with torch.no_grad():
        states, _ = cell(embed(torch.tensor([numbers])), cell.start(torch.zeros(1, 48)))
        logp = torch.nn.functional.linear(states[0], head["weight"], head["bias"]).log_softmax(-1)
    found = torch.tensor([one["gates"]["h"] for one in steps])
    assert found.allclose(states[0], atol=1e-5)
    assert torch.tensor(probs).allclose(logp, atol=1e-4)
    assert "".join(one["piece"] for one in steps[1:]) == SENTENCE.replace(" ", "▁")


def test_letters_are_coloured_and_a_unit_is_followed(opened: Callable[[str], Browser]) -> None:
    page = opened("gates")
    told, line = "document.querySelector('.live-told').textContent", "document.querySelectorAll('.live-line')"
    assert page.run(f"{line}.length") == 6
    page.run("document.querySelector('.live-stage input[type=text]').select()")
    page.type("the menu")
    assert page.run(f"{line}[4].textContent") == "the·menu"
    assert page.run(f"new Set([...{line}[4].children].map((one) => one.style.backgroundColor)).size") > 4
    assert page.run(told).startswith("Unit 0 at “u”: i = ")
    page.run("document.querySelector('.live-button').click()")
    assert not page.run(told).startswith("Unit 0 ")
    page.run("document.querySelectorAll('.live-choice input')[1].click()")
    assert page.run(f"{line}.length") == 4 and "u = " in page.run(told)


PAST = 'Open the "File" menu, then open'


def model(name: str, vocabulary: int) -> Generator:
    """Weft's model of the page's shape."""
    if name == "transformer":
        how = {"num_layers": 2, "num_heads": 4, "activation": "gelu", "positions": "rotary", "dropout": 0.0}
        embed = Tokens(vocabulary, 64, scaled=False)
        head = Categorical(64, vocabulary, tied=embed.table)
        return Generator(embed, TransformerDecoder(64, size=64, **how), head)
    decoder = RecurrentDecoder(48, cell={"lstm": LSTM, "gru": GRU}[name], sizes=(128,), dropout=0.0)
    return Generator(Tokens(vocabulary, 48), decoder, Categorical(128, vocabulary))


@node
@pytest.mark.parametrize("name", ["lstm", "gru", "transformer"])
def test_the_past_of_a_prediction_is_the_gradient_of_pytorch(name: str, tmp_path: Path) -> None:
    script = f"""(async () => {{
      const net = await live.model('letters-{name}'), text = {json.dumps(PAST)};
      const {{ probs, past }} = await live.parts.past.opened('{name}', net, text), tokens = net.row(text);
      const asked = [[8, tokens[9]], [tokens.length - 1, 5]];
      return {{ tokens, probs, asked, past: asked.map(([at, next]) => past(at, next)) }};
    }})()"""
    page = in_node("past", script, tmp_path, f"letters-{name}", programs=("gates", "transformer"))
    tokens = torch.tensor([page["tokens"]])
    net = weighted(model(name, len(page["probs"][0])), *exported(f"letters-{name}"))
    for (at, next_), lengths in zip(page["asked"], page["past"], strict=True):
        x = net.embed(tokens).detach().requires_grad_()
        state = net.start(tokens, torch.ones_like(tokens, dtype=torch.bool))
        logp = net.head(net.decoder(x, state)[0])[0]
        assert np.abs(np.array(page["probs"]) - logp.exp().detach().numpy()).max() < 1e-5
        logp[at, next_].backward()
        wanted = torch.zeros(len(tokens[0]), dtype=torch.float64)
        wanted[: at + 1] = torch.tensor(lengths)
        assert (x.grad[0].norm(dim=-1) - wanted).abs().max() < 1e-5


def test_the_predicted_letter_is_chosen(opened: Callable[[str], Browser]) -> None:
    page = opened("past")
    lines = "document.querySelectorAll('.live-line')"
    told = "document.querySelector('.live-told').textContent"
    assert page.run(f"{lines}.length") == 3
    page.run("document.querySelector('.live-stage input[type=text]').select()")
    page.type("the menu then the m")
    page.wait(f"{lines}[0].children.length === 19")
    page.run(f"{lines}[1].children[4].click()")
    assert page.run(told).startswith("The letter that is predicted, framed: “m”.")
    assert page.run(f"[...{lines}].every((one) => one.children[4].className === 'live-at')")
    assert page.run(f"{lines}[2].children[5].title") == ""
    page.run("document.querySelector('.live-slider input').focus()")
    page.press("ArrowRight", 39)
    assert "“e”" in page.run(told)
