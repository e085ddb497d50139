"""What a task shows of one input: what the model made of it, and everything the views draw.

A task fills `Inspected` in its own file inspected.py; what it does not have stays empty.
Read next: tasks/shared/writing/inspected.py; inspect/views/view.py, which draws from it.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from weft.errors import DataError
from weft.figures.records import Forecasted, Heard
from weft.probe import probe
from weft.search.trace import Trace
from weft.tasks.shared.inspected.context import Around

LONGEST = 4000
"""Characters of an input: a page of more could not be read."""

ALTERNATIVES = 6


class Looks(NamedTuple):
    """One picture of attention."""

    name: str  # such as "decoder, layer 2, head 3"
    weights: np.ndarray  # [T, S]


class Hypothesis(NamedTuple):
    """One answer of a search."""

    text: str
    pieces: list[str]  # the end symbol too
    score: float
    logp: float
    looks: list[Looks]  # over the source; none where the decoder does not look back
    pharaoh: str = ""  # alignment of words


class Choice(NamedTuple):
    """One position that was decided: what was taken, and what else was likely."""

    given: str  # what stands there in the input; empty where there is none
    taken: str
    prob: float
    others: list[tuple[str, float]]  # best first, the taken one too where it is among them


class Searched(NamedTuple):
    """A beam search, every candidate kept."""

    trace: Trace
    pieces: dict[int, str]  # of the tokens that occur
    paths: list[list[int]]  # the tokens of the n best, the end symbol too where they ended


class Vectors(NamedTuple):
    """Embeddings: of the vocabulary, and of the input in its context."""

    names: list[str]
    table: np.ndarray  # [V, D]
    chosen: list[int]  # rows of the input's pieces
    pieces: list[str]
    context: np.ndarray | None  # [S, D] what the encoder makes of them
    around: Around | None = None  # the same of words in other sentences


class Pictured(NamedTuple):
    """A picture that was read or drawn, and what was looked at in it."""

    pixels: np.ndarray  # [height, width, 3] uint8, or the frames of a clip [time, height, width, 3]
    looks: list[tuple[str, np.ndarray]]  # a name and weights [rows, columns], of a clip [time, rows, columns]
    what: str  # the weights are, a sentence
    drawn: bool = False  # by the model, whose steps are places of the picture


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """One input and what a model made of it; what a task does not have stays empty.

    Args:
        text: the input.
        answer: what the model says.
        source: the pieces that were read, one a position.
        target: the pieces that the decoder read, the first symbol too.
        batch: input and the model's own answer, for `model.loss`.
        hypotheses: of a search, best first.
        searched: the search itself.
        choices: token by token.
        chosen_what: what the choices are, for a title.
        vectors: embeddings.
        weights: how much each word of the input weighed, and which weights these are.
        forecast: of a series.
        picture: that was read or drawn.
        heard: a recording, and where its transcript listened.
        copied: [T] how much of each piece of the best hypothesis was copied, of a model that can copy.
    """

    text: str
    answer: str
    source: Sequence[str] = ()
    target: Sequence[str] = ()
    batch: Any = None
    hypotheses: Sequence[Hypothesis] = ()
    searched: Searched | None = None
    choices: Sequence[Choice] = ()
    chosen_what: str = ""
    vectors: Vectors | None = None
    weights: tuple[list[str], np.ndarray, str] | None = None
    forecast: Forecasted | None = None
    picture: Pictured | None = None
    heard: Heard | None = None
    copied: np.ndarray | None = None


class Examples(NamedTuple):
    """Sources that a run was validated on, the shortest first."""

    texts: Sequence[str]
    run: str  # whose they are, for the error

    def middle(self) -> str:
        """The one of middling length.

        Raises:
            DataError: there is none.
        """
        if not self.texts:
            raise DataError("keeps no example to inspect; give a text after the run", path=self.run)
        return self.texts[len(self.texts) // 2]


def checked(text: str) -> str:
    """The text, if it can be looked at.

    Raises:
        DataError: it is empty or too long.
    """
    if not text.strip():
        raise DataError("the text is empty; give one sentence, in quotes")
    if len(text) > LONGEST:
        raise DataError(
            f"the text has {len(text):,} characters, a page shows at most {LONGEST:,}; give a sentence of it"
        )
    return text


def choices_of(
    logp: Tensor, taken: Sequence[int], names: Sequence[str] | Any, given: Sequence[str] = ()
) -> list[Choice]:
    """What was chosen at each position, from log-probabilities [T, C].

    Args:
        logp: of one row.
        taken: what was chosen, T numbers.
        names: numbers to what is shown, by indexing.
        given: what stands there in the input.
    """
    probs = logp.float().exp()
    top = probs.topk(min(ALTERNATIVES, probs.shape[1]))
    found = []
    for place, number in enumerate(taken):
        others = zip(top.indices[place].tolist(), top.values[place].tolist(), strict=True)
        found.append(
            Choice(
                given[place] if given else "",
                names[number],
                float(probs[place, number]),
                [(names[one], prob) for one, prob in others],
            )
        )
    return found


def table_of(part: nn.Module, size: int) -> np.ndarray | None:
    """The embedding table [V, D] inside a front end, if it has one of that many rows."""
    for module in part.modules():
        if isinstance(module, nn.Embedding) and module.num_embeddings >= size:
            return module.weight.detach().float().cpu().numpy()[:size]
    return None


def self_attention(model: nn.Module, batch: Any) -> list[Looks]:
    """Every head of every layer that looks at its own sequence, encoder before decoder."""
    names: list[str] = []
    with ExitStack() as stack:
        for name, module in model.named_modules():
            if getattr(module, "name", "") == "self_attention":
                hook = module.register_forward_pre_hook(lambda *_, name=name: names.append(name))
                stack.callback(hook.remove)
        with torch.no_grad(), probe() as seen:
            model.loss(batch)  # type: ignore[operator]
    found, layers = [], Counter[str]()
    for name, weights in zip(names, seen["self_attention"], strict=True):
        part = name.split(".")[0]
        layers[part] += 1
        for head, each in enumerate(weights[0].float().cpu().numpy(), 1):
            found.append(Looks(f"{part}, layer {layers[part]}, head {head}", each))
    return found
