"""The gradients that reach each letter are those of PyTorch, in all three models."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.live.pages import exported, in_node, node, weighted
from tests.serve.browser import Browser
from weft.models import Generator
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.heads.categorical import Categorical

TEXT = 'Open the "File" menu, then open'


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
      const net = await live.model('letters-{name}'), text = {json.dumps(TEXT)};
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
