"""A program of a user, for mypy --strict: the public names have types that an editor completes.

tests/test_examples.py checks it; nobody runs it.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import weft
from weft.data import LabelledText, ParallelText, read_lines
from weft.metrics import Bleu, Chrf
from weft.nn import (
    GRU,
    LSTM,
    SRU,
    Categorical,
    MultiheadAttention,
    RecurrentDecoder,
    RecurrentEncoder,
    RecurrentLayer,
    Tokens,
)
from weft.search import beam_search, greedy_search, sample
from weft.tasks import ForecastPredictor, TextClassifier, Translator, WordTagger
from weft.testing import check_cell

EOS = 2


class Tagger(nn.Module):
    """Layers of Weft in a module of one's own."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = Tokens(12, 32)
        self.read = LSTM(32, 16, bidirectional=True, batch_first=True)
        self.again = GRU(32, 32, batch_first=True)
        self.mix: RecurrentLayer = SRU(32, 32, num_layers=2, peephole=True)
        self.attend = MultiheadAttention(32, 4, batch_first=True)
        self.tag = Categorical(32, 5)

    def forward(self, tokens: Tensor, padding: Tensor) -> Tensor:
        """Tokens and padding [B, T] to logits [B, T, C]."""
        h, _ = self.read(self.embed(tokens))
        h, _ = self.again(h)
        h, _ = self.mix(h, mask=~padding)
        context, _ = self.attend(h, h, h, padding)
        logits: Tensor = self.tag(context)
        return logits


def search(
    encoder: RecurrentEncoder, decoder: RecurrentDecoder, embed: Tokens, head: Categorical
) -> list[int]:
    """Three searches over a step of one's own."""

    def step(token: Tensor, state: Any) -> tuple[Tensor, Any]:
        h, state = decoder(embed(token[:, None]), state)
        return head(h[:, 0]), state

    source = torch.ones(2, 3, dtype=torch.long)
    state = decoder.start(encoder(embed(source), source > 0), 2)
    first = torch.ones(2, dtype=torch.long)
    found = beam_search(step, state, first, eos=EOS, max_length=8, width=4)
    greedy_search(step, state, first, eos=EOS, max_length=8)
    sample(step, state, first, eos=EOS, max_length=8, generator=torch.Generator())
    lengths: list[int] = found.lengths[:, 0].tolist()
    return lengths


def use(run: Path) -> list[str]:
    """Runs by their classes, scores and data."""
    translator = weft.load(run, Translator)
    tagger, classifier = weft.load(run, WordTagger), weft.load(run, TextClassifier)
    forecaster = weft.load(run, ForecastPredictor)
    said = [str(translator.predict("a")), str(tagger.predict("a b")), str(classifier.predict("a"))]
    said.append(f"{forecaster} {weft.load(run)} {weft.__version__}")
    said += [str(metric.score(["a b"], ["a b"])) for metric in (Bleu(), Chrf())]
    return said + list(read_lines(run))


__all__ = ["LabelledText", "ParallelText", "Tagger", "check_cell", "search", "use"]
