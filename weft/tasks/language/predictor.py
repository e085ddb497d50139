"""A trained language model: it continues texts, scores them, and says which token may come next.

`inspect_text` is what `weft inspect` shows, `export_writer` what `weft export` writes.
Read next: decoding.py, what a search sees of it; ../../search/sampling.py.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.errors import DataError, ShapeError
from weft.figures.records import Figure
from weft.metrics.bleu import least_risk
from weft.models import Generator
from weft.nn.positions import most_positions
from weft.search.beam import beam_search
from weft.search.hypotheses import Hypotheses
from weft.search.offered import written
from weft.search.sampling import search
from weft.search.trace import Trace
from weft.tasks.answer_list import AnswerList
from weft.tasks.export import ModelExport, random_texts, some_of
from weft.tasks.inspection import Inspection, SearchTree, Words, choices_of, vectors_of
from weft.tasks.language.data import collate_lines, known, reading_of
from weft.tasks.language.decoding import ExpectedToken, LanguageDecoding, MixedModel, StepReader, expected
from weft.tasks.predictor import Answer, Failure, Json, Place, Predictor, Raw, as_text, each, succeeded
from weft.tasks.running_text.base import Batching
from weft.tasks.seq2seq.graphs import stepping
from weft.tasks.seq2seq.inspection import name_in
from weft.text.loading import portable
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary
from weft.tree import leaves


class GeneratedText(NamedTuple):
    """A text and its continuation."""

    text: str  # the given text and its continuation
    added: str  # the continuation
    logp: float  # nats, of the continuation, before temperature, top_k and top_p


@dataclass(eq=False)
class Continuation(Answer):
    """The continuations of a text."""

    writer: "TextWriter"
    found: Sequence[GeneratedText]

    def text(self) -> str:
        """Each continuation on its own line; with scores, after its log-probability and a tab."""
        shown = [f"{one.logp:.4f}\t{one.text}" if self.writer._scores else one.text for one in self.found]
        return "\n".join([*shown, *[""] * (self.writer.lines - len(shown))])

    def json(self) -> Json:
        """The first continuation and its log-probability."""
        return {"text": self.found[0].text, "logp": self.found[0].logp}

    def figure(self) -> "Figure":
        """The first text, coloured by how likely the model finds each of its tokens."""
        from weft.figures.coloured import coloured_text

        text = self.found[0].text
        scored = self.writer.score(text)
        note = f"probabilities; {-sum(scored.logp) / len(scored.logp):.3f} nats per token"
        return coloured_text(scored.pieces, np.exp(scored.logp), title=text[:80], note=note, top=1.0)


WINDOW = 512  # lines per sort by length


class ScoredTokens(NamedTuple):
    """The log-probability of each token of a text; the last one is its end."""

    pieces: list[str]
    logp: list[float]

    @property
    def total(self) -> float:
        """Nats."""
        return sum(self.logp)


class Alternative(NamedTuple):
    """A candidate for the next token."""

    piece: str
    prob: float


class TextWriter(Predictor[str]):
    """Continues texts.

    Args:
        model: in evaluation mode, on its device.
        vocabulary: its tokens.
        decoding: settings of the continuation.
        batching, length: how training cut the text.
        mixed: an n-gram model and its weight, or None.
        scores: whether `weft predict` writes log-probabilities before the texts.

    Example:
        >>> from weft.models import Generator
        >>> from weft.nn import Categorical, RecurrentDecoder, Tokens
        >>> from weft.tasks.language.decoding import LanguageDecoding
        >>> from weft.text.vocabulary import Vocabulary
        >>> words = Vocabulary.train(["a cat sat"], kind="word", size=None)
        >>> model = Generator(
        ...     Tokens(len(words), 3), RecurrentDecoder(3, sizes=(5,)), Categorical(5, len(words))
        ... ).eval()
        >>> model.head.bias.data[words.encode("a cat")[-1]] = 9.0  # an untrained model that writes "cat"
        >>> decoding = LanguageDecoding(search="greedy", max_tokens=2)
        >>> TextWriter(model, words, decoding, batching="lines", length=9).predict("a")
        'a cat cat'
    """

    draws = True
    window = WINDOW
    piped = WINDOW

    def __init__(
        self,
        model: Generator,
        vocabulary: Vocabulary,
        decoding: LanguageDecoding,
        *,
        batching: Batching,
        length: int,
        mixed: MixedModel | None = None,
        scores: bool = False,
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.decoding = decoding
        self._batching: Batching = batching
        self._length = length
        self._mixed = mixed
        self.lines = decoding.nbest
        self._scores = scores
        cut = batching == "windows" and vocabulary.opening is None
        window = length if cut else most_positions(model.decoder)
        self.reader = StepReader(model, window, mixed)
        self.reading = reading_of(vocabulary)
        self._random: torch.Generator = torch.Generator(self._device).manual_seed(decoding.seed)

    def parse(self, raw: Raw, place: Place) -> str:
        """A text; an empty one may be continued too."""
        return as_text(raw, place)

    def answers(self, inputs: Sequence[str]) -> Iterator[Answer]:
        return succeeded(self.attempts(inputs))

    def attempts(self, inputs: Sequence[str]) -> Iterator[Answer | Failure]:
        """Like Predictor.attempts, but tries only the failed texts again.

        With scores and max_tokens=0, the score is the log-probability of the text itself, with its end.
        """
        for text, found in zip(inputs, self._window(inputs, self._random), strict=True):
            try:
                if isinstance(found, DataError | ShapeError):
                    raise found
                if self._scores and not self.decoding.max_tokens:
                    total = self.score(text).total
                    found = [one._replace(logp=total) for one in found]
                yield Continuation(self, found)
            except (DataError, ShapeError) as error:
                yield error

    def lacking(self, value: str) -> list[str]:
        return self.vocabulary.alphabet.unknown(value)

    def value(self, answer: Continuation) -> str:
        """The text and its best continuation."""
        return answer.found[0].text

    def write(self, texts: Iterable[str], *, window: int = WINDOW) -> AnswerList[list[GeneratedText]]:
        """Like `predict` of many texts, with the n continuations of each and their log-probabilities.

        Args:
            texts: see `predict`; those with the same number of tokens are continued together.
            window: number of texts that are answered together; 1 answers each at once.
        """

        def cell(found: list[GeneratedText]) -> str | list[str]:
            return found[0].text if len(found) == 1 else [one.text for one in found]

        return self.listed(texts, lambda one: one.found, cell, window)

    def _window(self, some: Sequence[str], generator: torch.Generator) -> list[list[GeneratedText] | Failure]:
        found: list[list[GeneratedText] | Failure] = [[] for _ in some]
        rows: dict[int, list[int]] = {}
        lengths: dict[int, list[int]] = {}
        for number, row in enumerate(each(some, lambda part: map(self.reading.row, part))):
            if isinstance(row, DataError | ShapeError):
                found[number] = row
                continue
            rows[number] = row
            lengths.setdefault(len(row), []).append(number)

        def continued(numbers: Sequence[int]) -> list[list[GeneratedText]]:
            written = self._search([rows[n] for n in numbers], generator)
            every = [
                [self._written(some[n], rows[n], *one) for one in row]
                for n, row in zip(numbers, written, strict=True)
            ]
            if not self.decoding.mbr:
                return every
            best = (least_risk([one.added for one in row], self.decoding.nbest) for row in every)
            return [[row[place] for place in places] for row, places in zip(every, best, strict=True)]

        for numbers in lengths.values():
            size = min(self.decoding.batch_rows, self.decoding.most_rows(self._most))
            for at in range(0, len(numbers), size):
                part = numbers[at : at + size]
                for number, one in zip(part, each(part, continued), strict=True):
                    found[number] = one
        return found

    def score(self, text: str) -> ScoredTokens:
        """The probability of each token of a text, and of the end after it.

        Weft's own models read a line end before the text; without anything before it, the first token has
        none.
        """
        row = self.reading.row(text)
        found = self.expected([[*row, EOS]], 0)[0]
        return ScoredTokens(self._pieces([one.token for one in found]), [one.logp for one in found])

    def expected(self, rows: Sequence[Sequence[int]], k: int) -> list[list[ExpectedToken]]:
        """Each token of the rows after the first: its log-probability, and the k likeliest in its place."""
        return expected(self.reader, rows, k, stride=self.decoding.stride)

    def next(self, text: str, k: int = 10) -> list[Alternative]:
        """The k likeliest tokens after a text, best first."""
        with torch.inference_mode():
            state, first = self.reader.start([self.reading.row(text)])
            logp, _ = self.reader.step(first, state)
        best = logp[0].topk(min(k, logp.shape[1]))
        pieces = self._pieces(best.indices.tolist())
        return [Alternative(*pair) for pair in zip(pieces, best.values.exp().tolist(), strict=True)]

    @property
    def ends(self) -> int:
        """Number of </s> after which writing stops: each ends a line, or the whole text."""
        return self.decoding.max_lines if self.vocabulary.opening is None else 1

    @property
    def _most(self) -> int:
        """Tokens that are written at most."""
        return max(1, min(self.decoding.max_tokens, self.decoding.most_tokens()))

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _pieces(self, tokens: Sequence[int]) -> list[str]:
        return ["</s>" if piece == "<eos>" else piece for piece in self.vocabulary.pieces(tokens)]

    def _written(self, text: str, given: list[int], added: list[int], logp: float) -> GeneratedText:
        new = "\n".join(self.added(text, given, added).split("\n")[: self.decoding.max_lines])
        return GeneratedText(text + new, new, logp)

    def added(self, text: str, given: list[int], added: list[int]) -> str:
        """The text that written tokens append to one with the row `given`, up to the first `stop` text."""
        given = known(given, len(self.vocabulary))  # the text itself is not decoded
        whole, before = self.reading.decoded([*given, *added]), self.reading.decoded(given)
        # Bytes that follow may change the last characters: they complete one, or make it invalid.
        pairs = enumerate(zip(whole, before, strict=False))
        same = next((place for place, (one, other) in pairs if one != other), min(len(whole), len(before)))
        new = whole[same:]
        if text[-1:].isspace() and self.vocabulary.opening is None:
            new = new.removeprefix(" ")
        for stop in self.decoding.stop:
            new = new.partition(stop)[0]
        return new

    def _search(
        self, rows: list[list[int]], generator: torch.Generator
    ) -> list[list[tuple[list[int], float]]]:
        how = self.decoding
        if not how.max_tokens:
            return [[([], 0.0)] for _ in rows]
        # With several lines to write, no line end ends the search: padding, which is never chosen, would.
        end = EOS if self.ends == 1 else PAD
        banned = (PAD, UNK, SOS)
        with torch.inference_mode():
            state, first = self.reader.start(rows)
            found = search(
                how,
                self.reader.step,
                state,
                first,
                eos=end,
                max_length=self._most,
                banned=banned,
                chance=generator,
            )
        return self._cut(found)

    def _cut(self, found: Hypotheses) -> list[list[tuple[list[int], float]]]:
        """The continuation up to the last wanted line end, without it."""
        made = []
        for texts, lengths, logps in zip(*(part.tolist() for part in found[:3]), strict=True):
            row = []
            for tokens, length, logp in zip(texts, lengths, logps, strict=True):
                ends = [place for place, token in enumerate(tokens[:length]) if token == EOS]
                stop = ends[self.ends - 1] if len(ends) >= self.ends else length
                row.append((tokens[:stop], logp))
            made.append(row)
        return made


WRITTEN = 16
"""Maximum number of tokens of the continuation."""

WIDTH = 5


def inspect_text(writer: TextWriter, text: str, valid: Callable[[], Iterable[str]]) -> Inspection:
    """A text under a language model: the probability of each token, and a continuation that is searched."""
    model, vocabulary = writer.model, writer.vocabulary
    device = next(model.parameters()).device
    tokens = writer.reading.tokens(text)
    tokens = tokens[: writer._length - 1] if writer._batching == "windows" else tokens
    batch = collate_lines([tokens]).to(device)
    with torch.no_grad():
        h = model.features(batch)
        logp, own = model.head(h)[0], h[0, 1:].float().cpu().numpy()
    pieces = ["</s>" if piece == "<eos>" else piece for piece in vocabulary.pieces([EOS, *tokens])]
    trace = Trace()
    with torch.inference_mode():
        state, first = writer.reader.start([[EOS, *tokens]])
        found = beam_search(
            writer.reader.step,
            state,
            first,
            eos=EOS,
            max_length=WRITTEN,
            width=WIDTH,
            nbest=WIDTH,
            banned=(PAD, UNK, SOS),
            trace=trace,
        )
    rows = zip(found.tokens[0].tolist(), found.lengths[0].tolist(), strict=True)
    paths = [row[:length] for row, length in rows if length]
    different = {one.token for one in trace.candidates}

    def context(line: str) -> Words | None:
        read = writer.reading.tokens(line)[: writer._length - 1]
        with torch.no_grad():
            states = model.features(collate_lines([read]).to(device))[0, 1:]
        return (vocabulary.pieces(read), states.float().cpu().numpy()) if read else None

    return Inspection(
        text=text,
        answer="… " + vocabulary.decode([token for token in paths[0] if token != EOS]),
        target=pieces,
        batch=batch,
        searched=SearchTree(trace, dict(zip(different, vocabulary.pieces(different), strict=True)), paths),
        choices=choices_of(logp, [*tokens, EOS], name_in(vocabulary)),
        chosen_what="each token of the text, given those before it",
        vectors=vectors_of(
            model.embed,
            vocabulary.pieces(range(len(vocabulary))),
            tokens,
            pieces[1:],
            own,
            context,
            valid,
        ),
    )


def export_writer(writer: TextWriter, valid: Callable[[], Iterable[str]]) -> ModelExport:
    """A language model as one graph, `step`, which reads and writes one token."""
    model, vocabulary, how = writer.model, writer.vocabulary, writer.decoding
    with torch.no_grad():
        states = [model.start(None, torch.ones(rows, 1, dtype=torch.bool)) for rows in (1, 2, 3)]
    step, state = stepping(model, states[1:])
    first = [_value(leaf) for leaf in leaves(states[0])]
    settings: dict[str, Any] = {
        "kind": "continue",
        "sos": SOS,
        "eos": EOS,
        "pad": PAD,
        "unk": UNK,
        "known": known([UNK], len(vocabulary))[0],
        "ends": writer.ends,
        "banned": [PAD, UNK, SOS],
        "state": [{**one, **value} for one, value in zip(state, first, strict=True)],
        "window": writer.reader.window,
        "decoding": written(how),
        "vocabulary": "tokenizer.json",
    }
    files = {"tokenizer.json": portable(vocabulary)}
    examples = partial(_examples, vocabulary, valid)
    options = {"beam": 1} if how.search == "sample" else {}
    return ModelExport([step], settings, files, examples, program="continuing", options=options)


def _value(leaf: Tensor) -> dict[str, Json]:
    """The tensor [1, ..] before the first step; its numbers are left out if all are zero."""
    values: Any = leaf.flatten().tolist() if bool(leaf.any()) else None
    return {"shape": list(leaf.shape), "type": str(leaf.dtype).removeprefix("torch."), "values": values}


def _examples(vocabulary: Vocabulary, valid: Callable[[], Iterable[str]], count: int) -> Sequence[str]:
    """The first half of validation lines, or random tokens where the data is missing."""

    def halves() -> Iterator[str]:
        lines = (line.split() for line in islice(valid(), 10 * count) if line.strip())
        return (" ".join(words[: 1 + len(words) // 2]) for words in lines)

    return some_of(halves, count, lambda: random_texts(vocabulary, count, 5, 5))
