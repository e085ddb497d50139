"""A trained classifier: texts in, a class for each and its probability out, in order.

`inspect_text` is what `weft inspect` shows, `export_classifier` what `weft export` writes. A table that has a
header is written again with new columns, so its header is an input and an answer too.
Read next: ../../figures/coloured.py, which draws how much each word weighed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from weft.data.batching import length_groups
from weft.data.held import name_of
from weft.data.labelled import MARKED, LabelledExample, text_columns
from weft.data.table_style import TableStyle, style_of
from weft.data.tables import is_table
from weft.errors import ConfigError, DataError
from weft.figures.records import Figure
from weft.models import Labeller
from weft.nn.embed.contextual import InContext
from weft.nn.embed.grams import Grams
from weft.probe import probe
from weft.store import files
from weft.tasks import predictor
from weft.tasks.abilities import WeightedDecision
from weft.tasks.answer_list import AnswerList
from weft.tasks.classify.data import LabelData
from weft.tasks.classify.reader import BagItems, LabelDecision, LabelReader
from weft.tasks.contextual import not_in_a_graph
from weft.tasks.export import Graph, ModelExport, ragged_mask, random_texts, some_of
from weft.tasks.inspection import Inspection, TokenChoice, Words, vectors_of
from weft.tasks.labels.calibration import calibrated
from weft.tasks.predictor import Answer, Failure, Json, NoAnswer, ParsedInput, Place, Raw, as_text
from weft.tasks.reused import symbols
from weft.text.loading import portable
from weft.text.vocabulary import EOS, SOS, Word


class TableRow(NamedTuple):
    """A row of a table."""

    style: TableStyle
    cells: Sequence[str]  # those of the header are the names of the columns
    number: int  # from 1; 0 is the header


class ClassifyInput(NamedTuple):
    """A text to classify."""

    text: str
    row: TableRow | None = None  # of its table, if that has a header
    wrong: str = ""  # why the row cannot be read, with its place


@dataclass(eq=False)
class HeaderRow(Answer):
    """The header of a table, with the new columns."""

    row: TableRow
    classes: Sequence[str]  # those that get a column for their probability

    def text(self) -> str:
        """All columns; the name of the first new one is longer where the table has such a column already."""
        name = PREDICTED
        while name in self.row.cells:
            name += "_"
        return self.row.style.header([*self.row.cells, name, *(f"{name}={one}" for one in self.classes)])

    def json(self) -> Json:
        return None


@dataclass(eq=False)
class LabelAnswer(Answer):
    """The class of a text."""

    asked: ClassifyInput
    decided: LabelDecision
    classes: Sequence[str]  # all of them, in the order of the probabilities
    scores: bool
    explain: Callable[[str], WeightedDecision]  # how much each word of a text weighed

    def text(self) -> str:
        """The class; with scores also CLASS=PROBABILITY, the likeliest first; or the row of a table."""
        label, probs = self.decided.label, self.decided.probs
        if (row := self.asked.row) is not None:
            scores = (row.style.number(f"{prob:.4f}") for prob in probs if self.scores)
            return row.style.line([*row.cells, label, *scores])
        if not self.scores:
            return label
        best = np.argsort(-probs, kind="stable").tolist()
        return "\t".join([label, *(f"{self.classes[n]}={probs[n]:.4f}" for n in best)])

    def json(self) -> Json:
        """The class, its probability, and those of all classes; or the labels, where there are several."""
        probs: dict[str, Json] = dict(zip(self.classes, self.decided.probs.tolist(), strict=True))
        if self.decided.names is not None:
            return {"labels": list(self.decided.names), "probs": probs}
        return {"label": self.decided.label, "prob": self.decided.prob, "probs": probs}

    def figure(self) -> "Figure | None":
        """The words by their weights; None of a text without words."""
        from weft.figures.coloured import coloured_text  # imports matplotlib

        found = self.explain(self.asked.text) if self.asked.text.strip() else None
        if found is None or not found.words:
            return None
        title = f"{found.decision.label} ({100 * found.decision.prob:.0f} %)"
        return coloured_text(found.words, found.weights, title=title, note=found.shown)

    def figure_name(self) -> str:
        """The number of the row in a table, the header not counted."""
        return "" if self.asked.row is None else str(self.asked.row.number)


WINDOW = 2048  # texts that are sorted by length together
TOKENS = 8192  # of a batch, padding counted


def order(classes: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """The place of each wanted class among others."""
    if sorted(classes) != sorted(wanted):
        raise ConfigError(
            f"its classes are {', '.join(sorted(classes)[:8])}, here they are "
            f"{', '.join(sorted(wanted)[:8])}; an ensemble needs the same"
        )
    return [list(classes).index(name) for name in wanted]


class TextClassifier(predictor.Predictor[ClassifyInput]):
    """Classifies texts with a model and its reader.

    Args:
        model: in evaluation mode, on its device.
        reader: the model's.
        data: the recipe's section, which says how a table is read.
        others: classifiers that decide along, by the mean of all probabilities; each reads texts its own
            way, the classes are the same (in any order).
        scores: whether the text of an answer says all probabilities.

    Example:
        >>> from weft.tasks.classify.data import LabelData
        >>> from weft.tasks.classify.model import LabelModel
        >>> from weft.tasks.classify.reader import LabelReader
        >>> from weft.text.vocabulary import Vocabulary
        >>> words = Vocabulary.train(["a cat sat"], kind="word", size=None)
        >>> reader = LabelReader(words, ["bad", "good"], items=None, max_length=9)
        >>> model = LabelModel().build(len(words), num_classes=2).eval()
        >>> model.head.bias.data[1] = 9.0  # an untrained model that says good
        >>> TextClassifier(model, reader, LabelData(train="train.tsv", hold_out=10)).predict("a cat")
        'good'
    """

    draws = True
    window = WINDOW

    def __init__(
        self,
        model: Labeller,
        reader: LabelReader,
        data: LabelData,
        *,
        others: Sequence["TextClassifier"] = (),
        scores: bool = False,
    ) -> None:
        self.model = model
        self.reader = reader
        self._data = data
        self.columns, self.beside = (text_columns(data.text), (data.label,)) if data is not None else ((), ())
        self._others = [(other, order(other.reader.classes, reader.classes)) for other in others]
        self._scores = scores

    def parse(self, raw: Raw, place: Place) -> ClassifyInput:
        """A text, or several columns of one, by name; a `__label__x` in it is left out.

        Raises:
            DataError: the text is empty: training leaves such texts out, so a class would be a guess.
        """
        text = MARKED.sub("", as_text(raw, place, self.columns, self.reader.border))
        if not text.strip():
            raise place.refuse(EMPTY)
        return ClassifyInput(text)

    def inputs(self, source: Path | BinaryIO) -> Iterator[ParsedInput[ClassifyInput]]:
        """The lines of a file, or the header (where there is one) and the rows of a table."""
        if not isinstance(source, Path) or not is_table(source):
            yield from super().inputs(source)
            return
        name = name_of(source)
        table = self._data.read(source, label=text_columns(self._data.text)[0], unlabelled=True)
        assert table.table is not None
        style = style_of(table.table)
        if table.headed:
            yield ParsedInput(Place(name, 1), ClassifyInput("", TableRow(style, table.names, 0)))
        for number, one in enumerate(table.rows(every=True), 1):
            if isinstance(one, LabelledExample):
                given = self.given(one.text, Place(name, one.number))
                if table.headed:
                    wrong = given.place.why(given.value) if isinstance(given.value, DataError) else ""
                    asked = ClassifyInput(one.text, TableRow(style, one.row, number), wrong)
                    given = ParsedInput(given.place, asked)
                yield given
            elif one.kind == "file":  # the rest cannot be read
                raise one.error()
            elif table.headed:
                row = TableRow(style, [""] * len(table.names), number)
                yield ParsedInput(Place(name, one.line), ClassifyInput("", row, str(one._replace(file=name))))
            else:
                yield ParsedInput(Place(name, one.line), one.error())

    def lacking(self, value: ClassifyInput) -> list[str]:
        return self.reader.vocabulary.alphabet.unknown(value.text)

    def answers(self, inputs: Sequence[ClassifyInput]) -> Iterator[Answer]:
        texts = [one.text for one in inputs if not (one.wrong or _is_header(one))]
        decided = iter(self._decided(texts))
        for one in inputs:
            if one.row is not None and _is_header(one):
                yield HeaderRow(one.row, self.reader.classes if self._scores else ())
            elif one.row is not None and one.wrong:
                yield self._unclassified(one.wrong, one.row)
            else:
                classes = self.reader.classes
                yield LabelAnswer(one, next(decided), classes, self._scores, self.explain)

    def unanswered(self, given: ParsedInput[ClassifyInput], why: Failure) -> Answer:
        if isinstance(given.value, ClassifyInput) and given.value.row is not None:
            return self._unclassified(given.place.why(why), given.value.row)
        return super().unanswered(given, why)

    def value(self, answer: LabelAnswer) -> str:
        return answer.decided.label

    def labels(self) -> Sequence[str]:
        return self.reader.classes

    def classify(self, texts: Iterable[str], *, window: int = WINDOW) -> AnswerList[LabelDecision]:
        """Like `predict` of many texts, with the probabilities of each; in a DataFrame the labels.

        Args:
            texts: see `predict`.
            window: number of texts that are answered together; 1 answers each at once.
        """
        return self.listed(texts, lambda one: one.decided, lambda one: one.label, window)

    def _decided(self, texts: Sequence[str]) -> Iterable[LabelDecision]:
        own = self._window(texts)
        if not (self._others and own):
            return own
        probs = np.stack([one.probs for one in own])
        for other, places in self._others:
            probs = probs + np.stack([one.probs[places] for one in other._window(texts)])
        return map(self.reader.decide, probs / (1 + len(self._others)))

    @property
    def classes(self) -> Sequence[str]:
        """All classes, in the order of the probabilities."""
        return self.reader.classes

    @property
    def _temperature(self) -> float:
        """The temperature of the probabilities; 1 in an ensemble, whose members have their own."""
        return 1.0 if self._others else self.reader.temperature

    def explain(self, text: str) -> WeightedDecision:
        """Decide on a text, and weigh its words.

        The weights are the attention of a pool with learned queries (the mean over the queries). For any
        other model they are the share |dL/dx_j . x_j| of each position j, where L is the log-probability of
        the class and x its embedding.
        """
        model, reader = self.model, self.reader
        rows = reader.encode([text])
        device = next(model.parameters()).device
        source, mask = reader.source(rows, [text])
        with torch.enable_grad(), probe() as seen:
            x = model.embed(source.to(device)).detach().requires_grad_()
            memory = model.encoder(x, mask.to(device))
            assert model.pool is not None
            logp = model.head(model.pool(memory)[:, None])[0, 0]
            (slope,) = torch.autograd.grad(logp.max(), x)
        probs = logp.detach().exp().float().cpu().numpy()
        attention = [each for each in seen["attention"] if each.shape[2] == mask.shape[1]]
        if attention:
            weights, shown = attention[-1][0].mean(0), f"attention, mean of {attention[-1].shape[1]} queries"
        else:
            weights, shown = (slope * x)[0].sum(-1).abs(), "gradient times embedding"
        positions = weights.detach().float().cpu().numpy().astype(np.float64)
        found = reader.vocabulary.words(rows[0], text)
        if reader.items is not None:
            positions = _of_tokens(reader.items, reader.counted(rows[0], text), rows[0], found, positions)
        sums = np.array([positions[word.positions].sum() for word in found])
        shares = sums / max(float(sums.sum()), 1e-12)
        return WeightedDecision(reader.decide(probs), [word.text for word in found], shares, shown)

    def _unclassified(self, wrong: str, row: TableRow) -> NoAnswer:
        """The row of a table whose text has no class: its new cells are empty."""
        more = [""] * (1 + len(self.reader.classes) * self._scores)
        return NoAnswer(wrong, text=row.style.line([*row.cells, *more]))

    def _window(self, read: Sequence[str]) -> list[LabelDecision]:
        device = next(self.model.parameters()).device
        rows = self.reader.encode(read)
        results: dict[int, LabelDecision] = {}
        for group in length_groups([len(row) for row in rows], TOKENS):
            source, mask = self.reader.source([rows[n] for n in group], [read[n] for n in group])
            with torch.inference_mode():
                logp = self.model(source.to(device), mask.to(device))[:, 0].float()
                probs = calibrated(logp, self.reader.temperature).exp().cpu().numpy()
            results.update(zip(group, map(self.reader.decide, probs), strict=True))
        return [results[number] for number in range(len(read))]


def _is_header(asked: ClassifyInput) -> bool:
    return asked.row is not None and asked.row.number == 0


def inspect_text(classifier: TextClassifier, text: str, valid: Callable[[], Iterable[str]]) -> Inspection:
    """A text and its class: the weights of its words, and the probabilities of the classes."""
    reader, model = classifier.reader, classifier.model
    rows = reader.encode([text])
    explanation = classifier.explain(text)
    decided = explanation.decision
    device = next(model.parameters()).device
    batch = reader.batch(rows, [decided.label], [text]).to(device)
    order = decided.probs.argsort()[::-1][:12]
    others = [(reader.classes[int(n)], float(decided.probs[n])) for n in order]
    pieces = reader.vocabulary.pieces(rows[0])
    vectors, ordered = None, reader.items is None

    def context(line: str) -> Words | None:
        row = reader.encode([line])
        given = reader.batch(row, [reader.classes[0]], [line]).to(device)
        with torch.no_grad():
            memory = model.memory(given.source, given.source_mask)
        states = memory.states[0].float().cpu().numpy()
        return (reader.vocabulary.pieces(row[0]), states) if len(states) == len(row[0]) else None

    if ordered and rows[0]:
        own, names = context(text), reader.vocabulary.pieces(range(len(reader.vocabulary)))
        vectors = vectors_of(model.embed, names, rows[0], pieces, own and own[1], context, valid)
    return Inspection(
        text=text,
        answer=f"{decided.label} ({decided.prob:.1%})",
        source=pieces if ordered else (),
        batch=batch,
        choices=[TokenChoice("", decided.label, decided.prob, others)],
        chosen_what="the classes of the text",
        vectors=vectors,
        weights=(explanation.words, explanation.weights, explanation.shown),
    )


class TextClasses(nn.Module):
    """Tokens, or the items of a bag and their weights, to log-probabilities."""

    def __init__(self, model: Labeller, temperature: float) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature

    def forward(self, tokens: Tensor, mask: Tensor, weights: Tensor | None = None) -> Tensor:
        """[B, S] int64, [B, S] bool and [B, S] to [B, C]."""
        source = tokens if weights is None else Grams(tokens, weights)
        return calibrated(self.model(source, mask)[:, 0], self.temperature)


def export_classifier(classifier: TextClassifier, valid: Callable[[], Iterable[str]]) -> ModelExport:
    """A classifier as one graph: tokens, or the weighted items of a bag, to log-probabilities of classes."""
    reader, model = classifier.reader, classifier.model
    if isinstance(model.embed, InContext):
        raise not_in_a_graph()
    both = _inputs(reader, 3, 7), _inputs(reader, 2, 10)
    contents: dict[str, bytes] = {"tokenizer.json": portable(reader.vocabulary)}
    settings: dict[str, Any] = {
        "kind": "classifier",
        "vocabulary": "tokenizer.json",
        "classes": reader.classes,
        "columns": list(classifier.columns),
        "border": reader.border,
        "separator": reader.separator,
        "thresholds": None if reader.separator is None else list(reader.thresholds),
        "max_length": reader.max_length,
        "frame": symbols(reader.frame),
        "bag": None,
    }
    if reader.items is not None:
        bag = asdict(reader.items.bag)
        named = {name: bag[name] for name in ("ngrams", "edges", "weight")}
        letters = None if bag["letters"] is None else list(bag["letters"])
        settings["bag"] = {**named, "letters": letters, "items": "items.json"}
        items = {"items": reader.items.kept, "documents": reader.items.documents, "texts": reader.items.total}
        contents["items.json"] = files.to_json(items)
    graph = Graph("scores", TextClasses(model, reader.temperature), both, ["logp"])

    def examples(count: int) -> Sequence[str]:
        return some_of(valid, count, lambda: random_texts(reader.vocabulary, count, 1))

    return ModelExport([graph], settings, contents, examples, program="labels")


def _inputs(reader: LabelReader, rows: int, steps: int) -> dict[str, Tensor]:
    """Random tokens, or random items with weights."""
    draw, items = torch.Generator().manual_seed(rows), reader.num_items
    mask = ragged_mask(rows, steps)
    tokens = torch.randint(min(EOS + 1, items - 1), items, (rows, steps), generator=draw)
    found = {"tokens": tokens * mask, "mask": mask}
    if reader.items is not None:
        found["weights"] = torch.rand(rows, steps, generator=draw) * mask
    return found


def _of_tokens(
    items: BagItems,
    counted: Mapping[int, int],
    tokens: Sequence[int],
    words: Sequence[Word],
    weights: np.ndarray,
) -> np.ndarray:
    """Split the weight of each item of a bag into equal parts for its tokens.

    The weight of a letter n-gram goes to the tokens of the words that contain it.
    """
    share = np.zeros(max(1, len(tokens)))
    weight = {number: each / counted[number] for number, each in zip(counted, weights, strict=False)}
    padded = [SOS, *tokens, EOS] if items.bag.edges else list(tokens)
    first = int(items.bag.edges)  # place of the first token
    for size in range(1, items.bag.ngrams + 1):
        for at in range(len(padded) - size + 1):
            number = items.number(tuple(padded[at : at + size]))
            begin, end = max(0, at - first), min(len(tokens), at + size - first)
            share[begin:end] += weight.get(number, 0.0) / max(1, end - begin)
    for word in words:
        whole = sum(weight.get(number, 0.0) for number in items.of_word(word.text))
        share[word.positions] += whole / len(word.positions)
    return share


EMPTY = "the text is empty; write one"
PREDICTED = "predicted"
