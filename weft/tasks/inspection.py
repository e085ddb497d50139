"""What a task shows of one input: the model's output, and everything that the views draw.

A task fills `Inspection` in `Pipeline.inspection`; fields that do not apply stay empty. `WordsAround` has
words in other sentences of the validation data, because the neighbours of a vector in context are words in
their sentences. Read next: ../inspect/views/view.py, which draws from it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from weft.errors import DataError, WeftError
from weft.figures.records import ForecastRecord, Heard
from weft.probe import probe
from weft.search.trace import Trace

SENTENCES = 60
"""Maximum number of sentences to read for comparison."""

LONGEST_SENTENCE = 300
"""Maximum number of characters of such a sentence."""


Words = tuple[list[str], np.ndarray]
"""The pieces of a sentence and their vectors [S, D] in it."""


class WordsAround(NamedTuple):
    """Words in their sentences."""

    words: list[str]  # [N] pieces
    where: list[int]  # [N] the number of each one's sentence
    sentences: list[str]
    vectors: np.ndarray  # [N, D]


def around(some: Iterable[str], context: Callable[[str], Words | None]) -> WordsAround | None:
    """The vectors of all words of some sentences; None if there are none."""
    return gathered((sentence, context(sentence)) for sentence in some)


def gathered(read: Iterable[tuple[str, Words | None]]) -> WordsAround | None:
    """The same for sentences that have been read before, for example in a batch."""
    words: list[str] = []
    where: list[int] = []
    said: list[str] = []
    vectors: list[np.ndarray] = []
    for sentence, found in read:
        if found is None:
            continue
        pieces, states = found
        words += pieces
        where += [len(said)] * len(pieces)
        said.append(sentence)
        vectors.append(states)
    return WordsAround(words, where, said, np.concatenate(vectors)) if vectors else None


def sentences(read: Callable[[], Iterable[str]], count: int = SENTENCES) -> list[str]:
    """Some sentences of the run's own data, in order; empty if the data is missing."""
    found: list[str] = []
    with suppress(WeftError, OSError):
        for sentence in islice((one for one in read() if one.strip()), count):
            found.append(sentence[:LONGEST_SENTENCE])
    return found


LONGEST = 4000
"""Maximum number of characters of an input; a page with more would be unreadable."""

ALTERNATIVES = 6


class AttentionMap(NamedTuple):
    """One attention map."""

    name: str  # such as "decoder, layer 2, head 3"
    weights: np.ndarray  # [T, S]


class Hypothesis(NamedTuple):
    """One answer of a search."""

    text: str
    pieces: list[str]  # with the end symbol
    score: float
    logp: float
    looks: list[AttentionMap]  # over the source; empty without attention
    pharaoh: str = ""  # word alignment


class TokenChoice(NamedTuple):
    """The decision at one position: the chosen symbol and its alternatives."""

    given: str  # the input at this position, or empty
    taken: str
    prob: float
    others: list[tuple[str, float]]  # best first, with the chosen one if it is among them


class SearchTree(NamedTuple):
    """A beam search with all candidates."""

    trace: Trace
    pieces: dict[int, str]  # of the tokens that occur
    paths: list[list[int]]  # the tokens of the n best, with the end symbol if they ended


class ShownVectors(NamedTuple):
    """Embeddings: of the vocabulary, and of the input in its context."""

    names: list[str]
    table: np.ndarray  # [V, D]
    chosen: list[int]  # rows of the input's pieces
    pieces: list[str]
    context: np.ndarray | None  # [S, D] the encoder's states
    around: WordsAround | None = None  # words in other sentences, in the same form


class FeatureWeights(NamedTuple):
    """The weights of features of words for each tag."""

    names: Sequence[str]  # [V]
    tags: Sequence[str]  # [C]
    weights: np.ndarray  # [V, C]


class PictureWeights(NamedTuple):
    """A picture that was read or drawn, with the weights of its places."""

    pixels: np.ndarray  # [height, width, 3] uint8, or the frames of a clip [time, height, width, 3]
    looks: list[tuple[str, np.ndarray]]  # name, weights [rows, columns], of a clip [time, rows, columns]
    what: str  # the weights are; a sentence
    drawn: bool = False  # by the model, whose steps are places of the picture


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """One input and the model's output; fields that do not apply to a task stay empty."""

    text: str
    answer: str
    source: Sequence[str] = ()  # the pieces of the input, one per position
    target: Sequence[str] = ()  # the pieces that the decoder read, with the start symbol
    batch: Any = None  # input and the model's own answer, for `model.loss`
    hypotheses: Sequence[Hypothesis] = ()
    searched: SearchTree | None = None
    choices: Sequence[TokenChoice] = ()  # the decision at each token
    chosen_what: str = ""
    vectors: ShownVectors | None = None
    weights: tuple[list[str], np.ndarray, str] | None = None  # words, the weight of each, and what it is
    features: FeatureWeights | None = None  # of words, for a linear model
    forecast: ForecastRecord | None = None
    picture: PictureWeights | None = None
    heard: Heard | None = None  # a recording, and the frames that its transcript attended to
    copied: np.ndarray | None = None  # [T] the copied share of each piece of the best hypothesis


class Examples(NamedTuple):
    """Sources of the run's validation data, the shortest first."""

    texts: Sequence[str]
    run: str  # the run's path, for the error

    def middle(self) -> str:
        """The source of median length."""
        if not self.texts:
            raise DataError("keeps no example to inspect; give a text after the run", path=self.run)
        return self.texts[len(self.texts) // 2]


NO_EXAMPLES = Examples((), "")


def checked(text: str) -> str:
    """The text, if it can be inspected."""
    if not text.strip():
        raise DataError("the text is empty; give one sentence, in quotes")
    if len(text) > LONGEST:
        raise DataError(
            f"expected at most {LONGEST:,} characters, got {len(text):,}; give a part of the text"
        )
    return text


def choices_of(
    logp: Tensor, taken: Sequence[int], name: Callable[[int], str], given: Sequence[str] = ()
) -> list[TokenChoice]:
    """The choice at each position, from log-probabilities [T, C] and the numbers [T] that were taken."""
    probs = logp.float().exp()
    top = probs.topk(min(ALTERNATIVES, probs.shape[1]))
    found = []
    for place, number in enumerate(taken):
        others = zip(top.indices[place].tolist(), top.values[place].tolist(), strict=True)
        found.append(
            TokenChoice(
                given[place] if given else "",
                name(number),
                float(probs[place, number]),
                [(name(one), prob) for one, prob in others],
            )
        )
    return found


def table_of(part: nn.Module, size: int) -> np.ndarray | None:
    """The embedding table [V, D] inside a front end, if it has one with `size` rows."""
    for module in part.modules():
        if isinstance(module, nn.Embedding) and module.num_embeddings >= size:
            return module.weight.detach().float().cpu().numpy()[:size]
    return None


def vectors_of(
    part: nn.Module,
    names: list[str],
    chosen: list[int],
    pieces: list[str],
    own: np.ndarray | None,
    context: Callable[[str], Words | None],
    valid: Callable[[], Iterable[str]],
) -> ShownVectors | None:
    """The pieces of an input in a front end's table and in their context; None without a table or pieces.

    `own` [S, D] is the input in its context, or None if a state is not that of a piece.
    """
    table = table_of(part, len(names))
    if table is None or not chosen:
        return None
    beside = None if own is None else around(sentences(valid), context)
    return ShownVectors(names, table, chosen, pieces, own, beside)


def self_attention(model: nn.Module, batch: Any) -> list[AttentionMap]:
    """Every head of every self-attention layer, encoder before decoder."""
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
            found.append(AttentionMap(f"{part}, layer {layers[part]}, head {head}", each))
    return found


def asked(data: Any, read: Callable[[Path], np.ndarray], text: str | None) -> tuple[np.ndarray, str]:
    """The picture in a file, or one of the validation data, and its name."""
    if text is None:
        if data.generated is not None:
            found = data.load("valid")
            return found.pixels[0], f"{found.names[0]}, {data.describe('valid')}"
        path = data.find("valid")[0].path
        return read(path), path.name
    path = file_named(text, "a picture")
    return read(path), path.name


def file_named(text: str, what: str) -> Path:
    """The file that an input names."""
    if not text.strip():
        raise DataError(f"the text is empty; give the name of {what}, or leave it out")
    if len(text) > 1000 or not Path(text).is_file():
        raise DataError(f"{text[:60]}: no such file; give {what}")
    return Path(text)


def places(grid: Sequence[int]) -> list[str]:
    """The name of each place of a front end, in reading order, such as 1,1 and 1,2."""
    return [",".join(str(number + 1) for number in place) for place in np.ndindex(*grid)]


def pictured(
    picture: np.ndarray, pieces: Sequence[str], looks: Sequence[AttentionMap], grid: Sequence[int], what: str
) -> PictureWeights:
    """A picture with the attention of each of its pieces [T], by the first of the maps [T, S]."""
    wide = tuple(grid) if len(grid) > 1 else (1, *grid)
    if picture.dtype != np.uint8:
        picture = np.full((*wide, 3), 255, np.uint8)
    rows = looks[0].weights if looks else np.zeros((0, 1))
    over = [(piece, row.reshape(wide)) for piece, row in zip(pieces, rows, strict=False)]
    return PictureWeights(picture, over, what)
