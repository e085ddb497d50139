"""The contract of a subject: one input, what a run made of it, and all that the views look at.

One file of this folder for each task; a run of a task without a file here still shows its training curves.
Read next: translate.py; ../views/view.py, which draws from it.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from weft import jsonfile
from weft.errors import DataError
from weft.probe import probe
from weft.run import Opened
from weft.search.trace import Trace
from weft.tasks.shared.inspected.context import Around

if TYPE_CHECKING:
    from weft.tasks.speech.predictor import Heard

LONGEST = 4000
"""Characters of an input: a page of more could not be read."""

ALTERNATIVES = 6


class Looks(NamedTuple):
    """One picture of attention."""

    name: str  # such as "layer 2, head 3"
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


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An input and what became of it; what a task does not have stays empty.

    Args:
        opened: the run.
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
        forecast: what weft/tasks/forecast/answer_figure.py draws from.
        picture: that was read or drawn.
        heard: a recording and where it was listened to.
        copied: [T] how much of each piece of the best hypothesis was copied, of a model that can copy.
    """

    opened: Opened
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
    forecast: Any = None
    picture: Pictured | None = None
    heard: "Heard | None" = None
    copied: np.ndarray | None = None


class Kind(ABC):
    """How an input of one task becomes a subject.

    Attributes:
        has_series: whether an input has several series, of which one is looked at.
        series: its name; the first where None.
    """

    has_series: ClassVar[bool] = False
    series: str | None = None

    @abstractmethod
    def read(self, opened: Opened, text: str | None) -> Subject:
        """The subject of a text; of an example of the run's own where it is None.

        Raises:
            DataError: a text that the model cannot read.
        """


def example(opened: Opened) -> str:
    """A source that the run was validated on, of middling length."""
    found = examples(opened)
    return found[len(found) // 2]


def examples(opened: Opened) -> list[str]:
    """Sources that the run was validated on, out of metrics.jsonl, the shortest first.

    Raises:
        DataError: there is none.
    """
    found: list[str] = []
    path = opened.path / "metrics.jsonl"
    if path.is_file():
        for event in jsonfile.events(path):
            try:
                samples = event.get("samples") or []
                found = [one["source"] for one in samples if one["source"].strip()] or found
            except (KeyError, TypeError, AttributeError):
                continue
    if not found:
        raise DataError(f"{opened.path}: keeps no example to look at; give a text after the run")
    return [one[:LONGEST] for one in sorted(found, key=len)]


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


def self_attention(opened: Opened, batch: Any) -> list[Looks]:
    """Every head of every layer that looks at its own sequence, encoder before decoder."""
    model = opened.model
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
            found.append(Looks(f"{part} layer {layers[part]}, head {head}", each))
    return found
