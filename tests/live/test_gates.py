"""The gates that the page shows are those of Weft's cells, given the weights of the page's models."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.live.pages import in_node, node
from tests.serve.browser import Browser
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.embed.tokens import Tokens

TEXT = 'Open the "File" menu.'
CELLS = {"lstm": LSTM, "gru": GRU}


@node
@pytest.mark.parametrize("name", CELLS)
def test_states_letter_by_letter(name: str, tmp_path: Path) -> None:
    script = f"""(async () => {{
      const net = await live.model('letters-{name}'), text = {json.dumps(TEXT)};
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
    assert "".join(one["piece"] for one in steps[1:]) == TEXT.replace(" ", "▁")


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
