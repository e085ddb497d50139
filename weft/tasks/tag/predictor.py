"""A trained tagger: sentences in, a tag for each word out, in order.

`inspect_words` is what `weft inspect` shows, `export_tagger` what `weft export` writes, `evaluate` the
scores beside the baseline: all words, unknown words, each tag, confusions, calibration; of tags that mark
names, as B-PER does, also whole names and each type of name.
Read next: ../../data/conllu.py, the format of both; ../../metrics/baseline.py.
"""

import copy
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from weft.data.batching import length_groups
from weft.data.conll import ReadAs, names_words, reading_of
from weft.data.conllu import Column, ConlluSentence, each_input
from weft.data.held import name_of
from weft.errors import ConfigError, DataError
from weft.figures.records import Figure
from weft.metrics.baseline import MostFrequentTag
from weft.metrics.f1 import F1, ClassRow, by_class, confusion, table
from weft.metrics.labels import classes_of
from weft.metrics.metric import ItemKind
from weft.metrics.probabilities import Ece
from weft.metrics.scored import ComparedOutputs, ScoreWithBaselines
from weft.metrics.span_f1 import SpanF1, are_spans, by_type, scheme
from weft.metrics.tags import TagAccuracy
from weft.models import Labeller
from weft.nn.embed.contextual import FirstPieces, Twice
from weft.nn.embed.grams import FeatureTable
from weft.nn.embed.words import Spelled, Words
from weft.nn.heads.crf import Crf
from weft.store import files
from weft.tasks import predictor
from weft.tasks.answer_list import AnswerList
from weft.tasks.contextual import not_in_a_graph
from weft.tasks.evaluation import unanswered
from weft.tasks.export import Graph, ModelExport, random_letters, random_sentences, some_of
from weft.tasks.inspection import FeatureWeights, Inspection, choices_of, vectors_of
from weft.tasks.labels.base import ClassEvaluation, LabelBatch, probabilities_of
from weft.tasks.labels.calibration import calibrated, confidence_of
from weft.tasks.predictor import (
    Answer,
    Failure,
    Json,
    NoAnswer,
    ParsedInput,
    Place,
    PredictedAnswers,
    Raw,
    predicted,
)
from weft.tasks.tag.features import SpelledWithFeatures, SummedTagger, WordFeatures
from weft.tasks.task import Progress, silent
from weft.tasks.vocabulary import LETTERS, Lexicon
from weft.wording import kind_of, plural

TOKENS = 4096  # words of a batch, padding counted
NOTHING = np.empty((0, 0), np.float32)


class SentenceTags(NamedTuple):
    """The tags of one sentence."""

    tags: list[str]
    probs: list[float]  # of these tags; empty unless asked for
    every: np.ndarray  # [T, C] of all tags, or empty too


@dataclass(eq=False)
class TagAnswer(Answer):
    """A sentence with its tags, in the format of the input."""

    sentence: ConlluSentence
    column: Column
    tagged: SentenceTags
    scores: bool  # whether `text` and `json` have the probability of each tag

    @property
    def probs(self) -> Sequence[float]:
        """Of the tags, where they are shown."""
        return self.tagged.probs if self.scores else ()

    def text(self) -> str:
        """CoNLL-U with the predicted column replaced, or word TAB tag; then an empty line."""
        lines = self.sentence.tagged(self.tagged.tags, self.column)
        for row, prob in zip(self.sentence.rows, self.probs, strict=False):
            lines[row] = _with_prob(lines[row], prob)
        return "\n".join(lines) + "\n"

    def json(self) -> Json:
        """A list of words, each with its tag and (with scores) the probability of that tag."""
        words = zip(self.sentence.forms, self.tagged.tags, strict=True)
        found: list[dict[str, Json]] = [{"word": word, "tag": tag} for word, tag in words]
        for one, prob in zip(found, self.probs, strict=False):
            one["prob"] = prob
        return list(found)

    def figure(self) -> "Figure | None":
        """The words with their tags; the likelier a tag, the darker."""
        from weft.figures.coloured import coloured_text  # imports matplotlib

        forms, tagged = self.sentence.forms, self.tagged
        if not forms:
            return None
        words = [f"{form}/{tag}" for form, tag in zip(forms, tagged.tags, strict=True)]
        note = "probability of each tag; white 0, dark 1"
        return coloured_text(words, np.array(tagged.probs), title=" ".join(forms)[:80], note=note, top=1.0)


class WordTagger(predictor.Predictor[ConlluSentence]):
    """Tags sentences with a model and its lexicon.

    Args:
        model: in evaluation mode, on its device.
        lexicon: the model's.
        column: of CoNLL-U that is predicted.
        probs: whether answers contain the probability of each tag.
        plot: whether answers have figures.
        temperature: of the probabilities; see ../labels/calibration.py.
        read_as: how the lines of a file are read.
        progress: receives how they were read, if not as sentences.

    Example:
        >>> from weft.tasks.vocabulary import Lexicon
        >>> from weft.tasks.tag.task import TagModel
        >>> lexicon = Lexicon(["a", "cat"], [3, 1], list("act"), ["DET", "NOUN"], lowercase=True)
        >>> model = TagModel().build(lexicon.num_words, lexicon.num_letters, num_tags=2).eval()
        >>> model.head.bias.data[1] = 9.0  # an untrained model that says NOUN
        >>> WordTagger(model, lexicon).predict("a cat")
        [('a', 'NOUN'), ('cat', 'NOUN')]
    """

    draws = True
    linewise = False
    window = 512

    def __init__(
        self,
        model: Labeller,
        lexicon: Lexicon,
        column: Column = "upos",
        *,
        probs: bool = False,
        plot: bool = False,
        temperature: float = 1.0,
        read_as: ReadAs = "auto",
        progress: Progress = silent,
    ) -> None:
        self.model = model
        self.lexicon = lexicon
        self._temperature = temperature
        self._column = column
        self._probs = probs
        self._plot = plot
        self._read_as: ReadAs = read_as
        self._progress = progress

    def parse(self, raw: Raw, place: Place) -> ConlluSentence:
        """A sentence: a text with spaces between its words, or a list of words."""
        axes = getattr(raw, "ndim", 1)
        listed = axes > 0 and isinstance(raw, Iterable) and not isinstance(raw, dict | set)
        if not isinstance(raw, str) and not (listed and all(isinstance(one, str) for one in raw)):
            raise place.refuse(f"expected a text, or a list of words, got {kind_of(raw)}")
        words = raw.split() if isinstance(raw, str) else list(raw)
        if not words:
            raise place.refuse("the sentence is empty; write words")
        return ConlluSentence(words, place.line, list(range(len(words))), words, None)

    def is_one(self, raw: Raw) -> bool:
        """Whether Python gave one sentence: a text, or a tuple of its words; a list is many."""
        return super().is_one(raw) or isinstance(raw, tuple)

    def inputs(self, source: Path | BinaryIO) -> Iterator[ParsedInput[ConlluSentence]]:
        """The sentences of a file or stream, as conll.reading_of says."""
        name, lexicon = name_of(source), self.lexicon
        reading = reading_of(source, lexicon.form, {*lexicon.tags}, self._column, self._read_as)
        if reading.note:
            self._progress(reading.note, 0, None)
        for one in each_input(reading, name, column=self._column):
            place = Place(name, (one.line or 0) if isinstance(one, DataError) else one.first)
            yield self.given(one, place) if isinstance(one, DataError) else ParsedInput(place, one)

    def is_header(self, cells: Sequence[str]) -> bool:
        return names_words(cells) is not None  # such a table is refused, with a command that converts it

    def answers(self, inputs: Sequence[ConlluSentence]) -> Iterator[Answer]:
        found = self._tagged([one.forms for one in inputs], self._probs or self._plot)
        for sentence, tagged in zip(inputs, found, strict=True):
            yield TagAnswer(sentence, self._column, tagged, self._probs)

    def lacking(self, value: ConlluSentence) -> list[str]:
        return self.lexicon.alphabet.unknown(" ".join(value.forms))

    def unanswered(self, given: ParsedInput[ConlluSentence], why: Failure) -> Answer:
        """Each word keeps its line, with _ for its tag."""
        if not isinstance(given.value, ConlluSentence):
            return super().unanswered(given, why)
        lines = given.value.tagged(["_"] * len(given.value.forms), self._column)
        return NoAnswer(given.place.why(why), text="\n".join(lines) + "\n")

    def value(self, answer: TagAnswer) -> list[tuple[str, str]]:
        return list(zip(answer.sentence.forms, answer.tagged.tags, strict=True))

    def labels(self) -> Sequence[str]:
        return self.lexicon.tags

    def tag(self, sentences: Iterable[Sequence[str]], *, probs: bool = False) -> AnswerList[SentenceTags]:
        """Like `predict` of many sentences, with the tags without the words; in a DataFrame a list of tags.

        Args:
            sentences: texts with spaces between the words, or lists of words; see `predict`.
            probs: also the probabilities of the tags of each word, given the whole sentence.
        """
        other = copy.copy(self)
        other._probs = probs
        return other.listed(sentences, lambda one: one.tagged, lambda one: one.tags)

    def _tagged(self, sentences: Sequence[Sequence[str]], probs: bool) -> list[SentenceTags]:
        results = [SentenceTags([], [], NOTHING) for _ in sentences]
        filled = [number for number, words in enumerate(sentences) if words]
        for group in length_groups([len(sentences[number]) for number in filled], TOKENS):
            numbers = [filled[n] for n in group]
            found = self._batch([sentences[n] for n in numbers], probs)
            for number, one in zip(numbers, found, strict=True):
                results[number] = one
        return results

    def _batch(self, sentences: list[Sequence[str]], probs: bool) -> Iterator[SentenceTags]:
        device = next(self.model.parameters()).device
        spelled, mask = self.lexicon.read(sentences)
        with torch.inference_mode():
            h, mask = self.model.features(spelled.to(device), mask.to(device))
            best = self.model.head.best(h, mask).cpu()
            logps = self.model.head.marginals(h, mask).float().cpu() if probs else None
            for row, words in enumerate(sentences):
                numbers = best[row, : len(words)]
                sure, every = [], NOTHING
                if logps is not None:
                    logp = calibrated(logps[row, : len(words)], self._temperature)
                    sure = [math.exp(p) for p in logp.gather(1, numbers[:, None])[:, 0].tolist()]
                    every = logp.exp().numpy()
                yield SentenceTags([self.lexicon.tags[number] for number in numbers.tolist()], sure, every)


def _with_prob(line: str, prob: float) -> str:
    cells = line.split("\t")
    if len(cells) <= 2:
        return f"{line}\t{prob:.4f}"
    cells[-1] = f"Prob={prob:.4f}" if cells[-1] == "_" else f"{cells[-1]}|Prob={prob:.4f}"
    return "\t".join(cells)


def inspect_words(
    tagger: WordTagger,
    text: str,
    valid: Callable[[], Iterable[str]],
    known: WordFeatures | None = None,
) -> Inspection:
    """A sentence and a tag for each of its words, which stand between spaces."""
    words = text.split()
    lexicon, model = tagger.lexicon, tagger.model
    device = next(model.parameters()).device

    def features(forms: list[str]) -> tuple[Any, Tensor, Tensor]:
        given, mask = lexicon.read([forms])
        given, mask = given.to(device), mask.to(device)
        with torch.no_grad():
            return (given, *model.features(given, mask))

    spelled, h, mask = features(words)
    with torch.no_grad():
        best = model.head.best(h, mask)
        logp = model.head(h)[0]
    numbers = best[0].tolist()
    tags = [lexicon.tags[number] for number in numbers]
    vectors = None
    weights = None
    features_of = model.table if isinstance(model, SummedTagger) else model.embed
    if isinstance(features_of, FeatureTable) and known is not None:
        table = features_of.weight.detach().float().cpu().numpy()
        weights = FeatureWeights(known.kept, lexicon.tags, table[1:])
    own = spelled.own if isinstance(spelled, Twice) else spelled
    own = own.spelled if isinstance(own, SpelledWithFeatures) else own
    if isinstance(own, Spelled):
        vectors = vectors_of(
            model.embed,
            ["<pad>", "<unk>", *lexicon.words],
            own.words[0].tolist(),
            words,
            h[0].float().cpu().numpy(),
            lambda line: (line.split(), features(line.split())[1][0].float().cpu().numpy()),
            valid,
        )
    return Inspection(
        text=text,
        answer=" ".join(tags),
        source=words,
        batch=LabelBatch(spelled, mask, best, len(words)),
        choices=choices_of(logp, numbers, lexicon.tags.__getitem__, words),
        chosen_what="the tag of each word",
        vectors=vectors,
        features=weights,
    )


class TagScores(nn.Module):
    """Words, letters and their mask to the score of each tag."""

    def __init__(self, model: Labeller) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: Tensor, letters: Tensor, which: Tensor, mask: Tensor) -> Tensor:
        """[B, S], [N, L], [B, S] int64 and [B, S] bool to [B, S, C]."""
        h, _ = self.model.features(Spelled(words, letters, which), mask)
        head = self.model.head
        scores: Tensor = head.emit(h) if isinstance(head, Crf) else head(h)
        return scores


def export_tagger(tagger: WordTagger, valid: Callable[[], Iterable[str]]) -> ModelExport:
    """A tagger as one graph: words and letters to the scores of all tags."""
    lexicon, model, head = tagger.lexicon, tagger.model, tagger.model.head
    if lexicon.reader is not None:
        reads = "model.embedding.pieces" if isinstance(model.embed, FirstPieces) else "model.features"
        raise ConfigError(f"{reads}: an exported program cannot compute them; serve the run with weft serve")
    if not isinstance(model.embed, Words):
        raise not_in_a_graph()
    inputs = _inputs(lexicon, 3, 7, 11), _inputs(lexicon, 2, 10, 6)
    crf: dict[str, Any] | None = None
    if isinstance(head, Crf):
        crf = {name: getattr(head, name).tolist() for name in ("begin", "end", "transitions")}
    settings: dict[str, Any] = {"kind": "tagger", "lexicon": "lexicon.json", "letters": LETTERS, "crf": crf}
    content = {name: getattr(lexicon, name) for name in ("words", "letters", "tags", "lowercase")}
    return ModelExport(
        [Graph("scores", TagScores(model), inputs, ["scores"])],
        settings,
        {"lexicon.json": files.to_json(content)},
        lambda count: some_of(
            valid, count, lambda: [" ".join(one) for one in random_sentences(lexicon.words, count)]
        ),
        program="labels",
    )


def _inputs(lexicon: Lexicon, rows: int, steps: int, length: int) -> dict[str, Tensor]:
    """Random sentences of words and letters."""
    words = torch.randint(lexicon.num_words, (rows, steps), generator=torch.Generator().manual_seed(rows))
    return {"words": words, **random_letters(lexicon.num_letters, rows, steps, length)}


SHOWN = 8  # confusions


@dataclass(frozen=True, kw_only=True)
class TagEvaluation(ClassEvaluation):
    """The scores of a tagger; `outputs` are the sentences as `weft predict` writes them."""

    words: int
    names: list[ClassRow]  # of the types of names, if tags mark some
    classes: ClassVar[str] = "tags"
    offers: ClassVar[tuple[ItemKind, ...]] = ("tags", "labels", "probabilities")

    def details(self) -> list[str]:
        rate = self.words / max(self.seconds, 1e-9)
        lines = [f"  {rate:,.0f} words/s with probabilities, {self.seconds:.1f} s"]
        wrong = [
            (int(self.matrix[i, j]), self.labels[i], self.labels[j])
            for i, j in zip(*np.nonzero(self.matrix), strict=True)
            if i != j
        ]
        lines += ["most frequent mistakes (reference, answer, count):"] if wrong else []
        lines += [f"  {one} {other} {count:,}" for count, one, other in sorted(wrong, reverse=True)[:SHOWN]]
        lines += [table(self.names, "whole names")] if self.names else []
        lines.append(table(self.rows))
        return lines

    def facts(self) -> dict[str, Any]:
        names = {"names": [row._asdict() for row in self.names]} if self.names else {}
        return {**super().facts(), **names, "words": self.words}


def tagged_at(
    tagger: WordTagger, sentences: Sequence[ConlluSentence], title: str
) -> PredictedAnswers[TagAnswer]:
    """The tags that prediction answers."""
    given = (ParsedInput(Place(title, one.first), one) for one in sentences)
    return predicted(tagger, given, TagAnswer).checked()


def evaluate(
    tagger: WordTagger,
    sentences: Sequence[ConlluSentence],
    *,
    title: str,
    column: Column,
    train: Sequence[ConlluSentence] | None = None,
) -> TagEvaluation:
    """Tag and score; the words of a sentence that the model cannot read count as wrong, and it is named."""
    found = tagged_at(tagger, sentences, title)
    tagged = [None if one is None else one.tagged for one in found.answers]
    pairs = list(zip(tagged, sentences, strict=True))
    answers = [[""] * len(sentence.forms) if one is None else one.tags for one, sentence in pairs]
    read = [(one, sentence) for one, sentence in pairs if one is not None]
    known = [sentence.tags or [] for sentence in sentences]
    flat = list(chain(*answers)), list(chain(*known))
    labels = classes_of(*reversed(flat))
    scores, compared = _scores(tagger.lexicon, sentences, known, answers, train)
    sure = _sure(tagger.lexicon.tags, tagged, known, train)
    return TagEvaluation(
        title=f"{title}, {plural(len(sentences), 'sentence')}, {plural(len(flat[1]), 'gold word')}"
        f"{unanswered(found.wrong)}",
        outputs=[
            "\n".join(one.tagged([tag or "_" for tag in tags], column)) + "\n"
            for one, tags in zip(sentences, answers, strict=True)
        ],
        scores=[*scores, sure.scored(Ece())],
        compared=[*compared, sure],
        rows=by_class(*flat),
        labels=labels,
        matrix=confusion(*flat, labels),
        confidence=confidence_of(
            np.concatenate([one.every for one, _ in read]),
            np.array(list(chain(*(one.tags for one, _ in read)))),
            np.array(list(chain(*(sentence.tags or [] for _, sentence in read)))),
            tagger.lexicon.tags,
            tagger._temperature,
        ),
        words=len(flat[1]),
        unseen=sorted(set(flat[1]) - set(tagger.lexicon.tags)),
        seconds=found.seconds,
        wrong=found.wrong,
        names=by_type(answers, known) if are_spans(flat[1]) else [],
    )


def _scores(
    lexicon: Lexicon,
    sentences: Sequence[ConlluSentence],
    references: Sequence[Sequence[str]],
    answers: Sequence[Sequence[str]],
    train: Sequence[ConlluSentence] | None,
) -> tuple[list[ScoreWithBaselines], list[ComparedOutputs]]:
    """Accuracy, whole names, words that training never saw, and macro F1, beside the baseline."""
    new = [[not lexicon.knows(form) for form in sentence.forms] for sentence in sentences]
    guessed: dict[str, list[list[str]]] = {}
    if train is not None:
        most = MostFrequentTag((sentence.forms, sentence.tags or []) for sentence in train)
        guessed["most frequent tag and ending"] = [most.tag(sentence.forms) for sentence in sentences]
    words = f"words:{sum(map(len, references))}"
    tags = tags_of(answers, references, guessed)
    labels = ComparedOutputs(answers, references, baselines=guessed, reads="labels")
    scores = [tags.scored(TagAccuracy()).signed(words)]
    if are_spans(chain(*references)):
        scores.append(tags.scored(SpanF1()).signed(f"scheme:{scheme(references)}"))
    if any(map(any, new)):
        known = "small letters" if lexicon.lowercase else "as written"
        unknown = tags_of(answers, references, guessed, new).scored(TagAccuracy())
        unknown = unknown.renamed("tag accuracy, unknown words")
        scores.append(unknown.signed(f"words:{sum(map(sum, new))}|known:{known}"))
    return [*scores, labels.scored(F1()).signed(words)], [tags, labels]


def _sure(
    tags: Sequence[str],
    tagged: Sequence[SentenceTags | None],
    known: Sequence[Sequence[str]],
    train: Sequence[ConlluSentence] | None,
) -> ComparedOutputs:
    """The probabilities of the tags of each word; resamples draw whole sentences."""
    lengths = [len(one) for one in known]
    every = (
        [None] * length if one is None else one.every for one, length in zip(tagged, lengths, strict=True)
    )
    before = None if train is None else list(chain(*(sentence.tags or [] for sentence in train)))
    groups = np.repeat(np.arange(len(known)), lengths)
    return probabilities_of(tags, chain(*every), list(chain(*known)), before, groups)


def tags_of(
    answers: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    guessed: Mapping[str, Sequence[Sequence[str]]] = {},
    chosen: Sequence[Sequence[bool]] | None = None,
) -> ComparedOutputs:
    """The tags of all words, or of the chosen ones, as lines."""
    lowest = {name: _lines(rows, chosen) for name, rows in guessed.items()}
    return ComparedOutputs(
        _lines(answers, chosen), _lines(references, chosen), baselines=lowest, reads="tags"
    )


def _lines(rows: Sequence[Sequence[str]], chosen: Sequence[Sequence[bool]] | None = None) -> list[str]:
    """The tags of each sentence, all or the chosen ones, with spaces between them and none inside."""
    takes = chosen or [[True] * len(tags) for tags in rows]
    return [
        " ".join(re.sub(r"\s", "␣", tag) for tag, take in zip(tags, taken, strict=True) if take)
        for tags, taken in zip(rows, takes, strict=True)
    ]
