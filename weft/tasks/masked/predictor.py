"""A trained masked language model: it fills the gaps of a text, each by itself.

`inspect_gaps` is what `weft inspect` shows, `export_filler` what `weft export` writes, `evaluate` the
perplexity and accuracy on hidden tokens, beside token frequencies.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.errors import DataError
from weft.figures.records import Figure
from weft.metrics.accuracy import Accuracy
from weft.metrics.metric import ItemKind
from weft.metrics.probabilities import Perplexity
from weft.metrics.scored import ComparedOutputs
from weft.nn.positions import most_positions
from weft.tasks import predictor
from weft.tasks.export import SEED, Graph, ModelExport, ragged_mask, random_texts, some_of
from weft.tasks.inspection import Inspection, ShownVectors, TokenChoice, choices_of, vectors_of
from weft.tasks.masked.model import SPECIALS, MaskedBatch, MaskedLanguageModel, hide
from weft.tasks.predictor import Answer, Json, Place, Raw, as_text
from weft.tasks.running_text.base import ContextEvaluation, Parts, Side
from weft.tasks.seq2seq.inspection import name_in
from weft.text.loading import portable
from weft.text.vocabulary import EOS, SOS, Vocabulary

MASK = "[MASK]"
NOTE = "probability of each piece in its gap; white 0, dark 1"
SERVED = 5
"""Pieces of each gap in the JSON of an answer."""


class GapFills(NamedTuple):
    """A text with its gaps filled, and for each gap the likeliest pieces with their probabilities."""

    text: str
    gaps: list[list[tuple[str, float]]]


@dataclass(eq=False)
class GapAnswer(Answer):
    """What belongs into the gaps of a text."""

    vocabulary: Vocabulary
    tokens: Sequence[int]
    logp: Tensor  # [gaps, V] of each gap; the special tokens have -inf
    count: int  # of pieces of each gap in `text`
    scores: bool

    def filled(self, count: int) -> GapFills:
        """The text with the likeliest pieces, and `count` pieces for each gap."""
        vocabulary, tokens = self.vocabulary, list(self.tokens)
        gaps = []
        places = [place for place, token in enumerate(tokens) if token == len(vocabulary)]
        for place, logp in zip(places, self.logp, strict=True):
            best = logp.topk(min(count, len(vocabulary) - SPECIALS))
            found = zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
            gaps.append([(vocabulary.decode([piece]), prob) for piece, prob in found])
            tokens[place] = int(best.indices[0])
        return GapFills(vocabulary.decode(tokens[1:-1]), gaps)

    def text(self) -> str:
        """The text with its gaps filled; with several pieces or scores, the pieces, a tab between gaps."""
        filled = self.filled(self.count)
        if self.count == 1 and not self.scores:
            return filled.text
        return "\t".join(
            " ".join(f"{piece}={prob:.4f}" if self.scores else piece for piece, prob in gap)
            for gap in filled.gaps
        )

    def figure(self) -> "Figure":
        """The text with its gaps filled; a piece is the darker, the likelier it is in its gap."""
        from weft.figures.coloured import coloured_text  # imports matplotlib

        filled = self.filled(1)
        gaps = iter(filled.gaps)
        words, weights = list[str](), list[float]()
        for token in self.tokens[1:-1]:
            given = token < len(self.vocabulary)
            piece, prob = (self.vocabulary.decode([token]), 0.0) if given else next(gaps)[0]
            words.append(piece)
            weights.append(prob)
        return coloured_text(words, np.array(weights), title=filled.text, note=NOTE, top=1.0)

    def json(self) -> Json:
        """The text with its gaps filled, and pieces with probabilities for each gap."""
        filled = self.filled(SERVED)
        gaps: list[Json] = [[{"piece": piece, "prob": prob} for piece, prob in gap] for gap in filled.gaps]
        return {"text": filled.text, "gaps": gaps}


class GapFiller(predictor.Predictor[list[int]]):
    """Fills gaps, each by itself.

    Args:
        model: trained, in evaluation mode.
        vocabulary: its pieces.
        count: number of pieces of each gap in the text of an answer.
        scores: whether the text says their probabilities.

    Example:
        >>> from weft.tasks.masked.model import MaskedModel
        >>> from weft.text.vocabulary import Vocabulary
        >>> words = Vocabulary.train(["a cat sat"], kind="word", size=None)
        >>> model = MaskedModel(size=8).build(len(words)).eval()
        >>> model.predictor.head.symbols.bias.data[words.encode("a cat")[-1]] = 99.0  # untrained, says "cat"
        >>> GapFiller(model, words).predict("a [MASK] sat")
        'a cat sat'
    """

    draws = True
    window = 64  # an answer holds the probabilities of the whole vocabulary

    def __init__(
        self, model: MaskedLanguageModel, vocabulary: Vocabulary, *, count: int = 1, scores: bool = False
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self._count = count
        self._scores = scores

    def parse(self, raw: Raw, place: Place) -> list[int]:
        """A text with [MASK] in it, as tokens."""
        text = as_text(raw, place)
        if MASK not in text:
            raise place.refuse(f"expected {MASK} where a word is missing, got {text[:40]!r}")
        return self.tokens(text)

    def answers(self, inputs: Sequence[list[int]]) -> Iterator[GapAnswer]:
        return (self._answer(tokens) for tokens in inputs)

    def fill(self, text: str, count: int = 5) -> GapFills:
        """The likeliest pieces for each [MASK]; the first one is put into the text.

        Raises:
            DataError: there is no [MASK] in the text.
        """
        return self._answer(self.parse(text, Place("input"))).filled(count)

    def value(self, answer: GapAnswer) -> str:
        return answer.filled(1).text

    def tokens(self, text: str) -> list[int]:
        """<sos>, the pieces and the masks, <eos>."""
        tokens = [SOS]
        *before, last = text.split(MASK)
        for part in before:  # the space before a gap belongs to the missing piece
            tokens += [*self.vocabulary.encode(part.rstrip(" ")), len(self.vocabulary)]
        tokens += self.vocabulary.encode(last)
        return [*tokens, EOS]

    def _answer(self, tokens: list[int]) -> GapAnswer:
        size = len(self.vocabulary)
        source = torch.tensor([tokens], device=next(self.model.parameters()).device)
        logp = _logp(self, source)[0, :, :size]
        gaps = logp[[place for place, token in enumerate(tokens) if token == size]]
        gaps[:, :SPECIALS] = -torch.inf
        return GapAnswer(self.vocabulary, tokens, gaps, count=self._count, scores=self._scores)


ROWS = 32


def inspect_gaps(filler: GapFiller, text: str, most: int, valid: Callable[[], Iterable[str]]) -> Inspection:
    """A text with its gaps [MASK] filled; or without any, each token predicted from all others."""
    vocabulary, size = filler.vocabulary, len(filler.vocabulary)
    device = next(filler.model.parameters()).device
    tokens = filler.tokens(text)
    if len(tokens) > most + 2:
        raise DataError(
            f"expected at most {most} tokens, as in training, got {len(tokens) - 2}; shorten the text"
        )
    gaps = [place for place, token in enumerate(tokens) if token == size]
    source = torch.tensor([tokens], device=device)
    names = [*vocabulary.pieces(range(size)), MASK]
    pieces = ["<sos>", *(names[token] for token in tokens[1:-1]), "<eos>"]
    if gaps:
        logp = _logp(filler, source)[0, :, :size]
        logp[:, :SPECIALS] = -torch.inf
        best = logp.argmax(1)
        target = torch.where(source == size, best[None], source)
        chosen = source == size
        choices = choices_of(logp[gaps], best[gaps].tolist(), name_in(vocabulary))
        answer, what = filler.fill(text, 1).text, "each gap, filled by itself"
    else:
        choices = _in_turn(filler, source)
        nats = -sum(math.log(max(one.prob, 1e-30)) for one in choices) / max(1, len(choices))
        answer = f"perplexity {math.exp(nats):.1f} of each token, given all others"
        target, chosen = source, torch.ones_like(source, dtype=torch.bool)
        chosen[:, [0, -1]] = False
        what = "each token of the text, hidden by itself, given all others"
    mask = torch.ones_like(source, dtype=torch.bool)
    return Inspection(
        text=text,
        answer=answer,
        source=pieces,
        batch=MaskedBatch(source, mask, target, chosen, int(chosen.sum())),
        choices=choices,
        chosen_what=what,
        vectors=_vectors(filler, tokens, pieces, most, valid),
    )


def _logp(filler: GapFiller, source: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return filler.model(source, torch.ones_like(source, dtype=torch.bool)).float().cpu()  # type: ignore[no-any-return]


def _in_turn(filler: GapFiller, source: torch.Tensor) -> list[TokenChoice]:
    """The probability of each token where it alone is hidden."""
    size, count = len(filler.vocabulary), source.shape[1] - 2
    rows = source.expand(count, -1).clone()
    places = torch.arange(1, count + 1)
    rows[places - 1, places] = size
    found = [
        _logp(filler, rows[at : at + ROWS])[torch.arange(len(rows[at : at + ROWS])), places[at : at + ROWS]]
        for at in range(0, count, ROWS)
    ]
    if not found:
        return []
    logp = torch.cat(found)[:, :size]
    return choices_of(logp, source[0, 1:-1].tolist(), name_in(filler.vocabulary))


def _vectors(
    filler: GapFiller, tokens: list[int], pieces: list[str], most: int, valid: Callable[[], Iterable[str]]
) -> ShownVectors | None:
    predictor, vocabulary = filler.model.predictor, filler.vocabulary
    device = next(filler.model.parameters()).device

    def states(row: list[int]) -> np.ndarray:
        source = torch.tensor([row], device=device)
        with torch.no_grad():
            memory = predictor.memory(source, torch.ones_like(source, dtype=torch.bool))
        return memory.states[0, 1:-1].float().cpu().numpy()

    def context(line: str) -> tuple[list[str], np.ndarray] | None:
        row = vocabulary.encode(line)[:most]
        return (vocabulary.pieces(row), states([SOS, *row, EOS])) if row else None

    names = [*vocabulary.pieces(range(len(vocabulary))), MASK]
    inner = tokens[1:-1], pieces[1:-1]
    return vectors_of(predictor.embed, names, *inner, states(tokens), context, valid)


STEPS = 10  # of the longer example


def export_filler(filler: GapFiller, length: int, valid: Callable[[], Iterable[str]]) -> ModelExport:
    """A masked language model as one graph: tokens of a text to log-probabilities at each position."""
    model, vocabulary = filler.model, filler.vocabulary
    size, most = len(vocabulary), most_positions(model)
    steps = STEPS if most is None else min(most, STEPS)
    settings: dict[str, Any] = {
        "kind": "filler",
        "vocabulary": "tokenizer.json",
        "gap": MASK,
        "mask": size,
        "sos": SOS,
        "eos": EOS,
        "banned": list(range(SPECIALS)),
        "max_length": most,
    }
    graph = Graph("pieces", model, (_inputs(size, 3, steps - 3), _inputs(size, 2, steps)), ["logp"])
    return ModelExport(
        [graph],
        settings,
        {"tokenizer.json": portable(vocabulary)},
        lambda count: _examples(filler, length, most, valid, count),
        program="gaps",
    )


def _inputs(size: int, rows: int, steps: int) -> Mapping[str, Tensor]:
    """Random texts with gaps, each shorter than the one before."""
    draw = torch.Generator().manual_seed(rows)
    mask = ragged_mask(rows, steps)
    tokens = torch.randint(min(SPECIALS, size), size + 1, (rows, steps), generator=draw)
    return {"tokens": tokens * mask, "mask": mask}


def _examples(
    filler: GapFiller, length: int, most: int | None, valid: Callable[[], Iterable[str]], count: int
) -> Sequence[str]:
    """Validation lines with a word left out, or random tokens where the data is missing."""
    draw = random.Random(SEED)

    def lines() -> Iterator[str]:
        words = (line.split()[:length] for line in valid())
        gaps = (_gap(row, draw) for row in words if row)
        return (text for text in gaps if len(filler.tokens(text)) <= (most or 2**31))

    def drawn() -> Sequence[str]:
        longest = min(20, length if most is None else most - 3)
        return [f"{text} {MASK}" for text in random_texts(filler.vocabulary, count, 1, longest)]

    return some_of(lines, count, drawn)


def _gap(words: Sequence[str], draw: random.Random) -> str:
    place = draw.randrange(len(words))
    return " ".join([*words[:place], MASK, *words[place + 1 :]])


SHARE = 0.15
"""The share of the tokens that is chosen where a model is scored."""


class HiddenScores(NamedTuple):
    """The chosen tokens, one after the other."""

    each: np.ndarray  # [N] nats
    wanted: np.ndarray  # [N] the token,
    said: np.ndarray  # [N] and the likeliest piece, as it is predicted
    line: np.ndarray  # [N] the number of its line,
    near: np.ndarray  # [N] how many tokens it is from the nearer end,
    place: np.ndarray  # [N] and its place in the line
    lines: int  # number of lines

    @property
    def nats(self) -> float:
        """The mean."""
        return float(self.each.mean())

    @property
    def right(self) -> float:
        """The share of the tokens whose likeliest token is right."""
        return float((self.said == self.wanted).mean())

    def nats_of_lines(self, counts: np.ndarray | None = None, about: str = "") -> ComparedOutputs:
        """The nats of the chosen tokens of each line, beside those of token frequencies, if any are given."""
        tokens, lowest = np.bincount(self.line, minlength=self.lines), {}
        if counts is not None:
            each = -np.log(counts[self.wanted] / counts.sum())
            lowest["token frequencies"] = np.bincount(self.line, each, self.lines)
        nats = np.bincount(self.line, self.each, self.lines)
        return ComparedOutputs(nats, tokens, None, lowest, "nats", about=about)

    def pieces_of_lines(
        self, vocabulary: Vocabulary, common: int | None = None, about: str = ""
    ) -> ComparedOutputs:
        """The pieces said for the chosen tokens of each line, beside a common one, if it is given."""
        names = [*vocabulary.pieces(range(len(vocabulary))), MASK]

        def listed(tokens: np.ndarray) -> list[list[str]]:
            found: list[list[str]] = [[] for _ in range(self.lines)]
            for line, token in zip(self.line.tolist(), tokens.tolist(), strict=True):
                found[line].append(names[token])
            return found

        lowest = {} if common is None else {"most frequent token": listed(np.full_like(self.said, common))}
        return ComparedOutputs(listed(self.said), listed(self.wanted), None, lowest, "labels", about=about)

    def filled(self, lines: list[list[int]]) -> list[list[int]]:
        """The lines with the likeliest piece in each chosen place."""
        found = [list(line) for line in lines]
        for line, place, said in zip(self.line, self.place, self.said, strict=True):
            found[line][place] = int(said)
        return found


def score(model: MaskedLanguageModel, lines: list[list[int]], size: int) -> HiddenScores:
    """Hide tokens of each line, always the same ones, and score what the model says of them."""
    order = sorted(range(len(lines)), key=lambda n: len(lines[n]))
    device = next(model.parameters()).device
    parts: list[tuple[np.ndarray, ...]] = []
    for at in range(0, len(order), ROWS):
        numbers = order[at : at + ROWS]
        some = [lines[n] for n in numbers]
        batch = hide(some, size, share=SHARE, seed=[1, at]).to(device)
        with torch.no_grad():
            h, _ = model.predictor.features(batch.source, batch.source_mask)
            logp = model.predictor.head(h[batch.chosen])
            pieces = logp[:, SPECIALS:size].argmax(1) + SPECIALS
        target = batch.target[batch.chosen]
        row, place = (where.cpu().numpy() for where in batch.chosen.nonzero(as_tuple=True))
        lengths = np.array([len(line) for line in some])[row]
        found = (
            -logp.gather(1, target[:, None])[:, 0].double().cpu().numpy(),
            target.cpu().numpy(),
            pieces.cpu().numpy(),
            np.array(numbers)[row],
            np.minimum(place - 1, lengths - place),
            place - 1,
        )
        parts.append(found)
    each, wanted, said, line, near, place = map(np.concatenate, zip(*parts, strict=True))
    return HiddenScores(each, wanted, said, line, near, place, len(lines))


@dataclass(frozen=True)
class GapEvaluation(ContextEvaluation):
    """The scores of hidden tokens."""

    offers: ClassVar[tuple[ItemKind, ...]] = ("nats", "labels")


def evaluate(
    model: MaskedLanguageModel,
    vocabulary: Vocabulary,
    text: Parts[int],
    *,
    title: str,
    unit: str,
    length: int,
) -> GapEvaluation:
    """Perplexity and accuracy of 15 % of the tokens, beside the frequencies of this very text."""
    lines, size = text.parts, len(vocabulary)
    found = score(model, lines, size)
    counts = np.bincount([token for line in lines for token in line], minlength=size)
    about = f"kind:{unit}|kinds:{size}|chosen:{SHARE}|80/10/10|seed:1|lines of at most {length}"
    nats = found.nats_of_lines(counts, about)._replace(sources=[*map(vocabulary.decode, lines)])
    pieces = found.pieces_of_lines(vocabulary, int(counts.argmax()), about)
    return GapEvaluation(
        title,
        [vocabulary.decode(line) for line in text.joined(found.filled(lines))],
        [
            nats.scored(Perplexity()).renamed("perplexity of the chosen tokens"),
            pieces.scored(Accuracy()).counted("token").signed(f"tokens:{len(found.each)}"),
        ],
        [Side("masked", found.near, found.each)],
        "tokens to the nearer end of the line",
        compared=[nats, pieces],
    )
