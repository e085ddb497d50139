"""A trained model that writes a text for a text: lines in, the same number of answers out, in order.

Its attention is the alignment of the words. A translation keeps what a model that has seen few of them gets
wrong: text without letters, placeholders ("%s"), numbers, and characters that the vocabulary lacks.
Read next: batch_search.py; ../../search/beam.py; ../../text/kept.py; ../../figures/records.py,
which turns attention into pairs of words.
"""

import copy
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import regex
import torch

from weft.data.languages import CODE, SIDES, code_of
from weft.data.shortlist import Shortlist
from weft.errors import ConfigError, DataError, ShapeError
from weft.figures.records import Figure, merge, pharaoh
from weft.metrics.bleu import least_risk
from weft.models import Generator
from weft.probe import probe
from weft.search.hypotheses import Hypotheses, to_lists
from weft.search.offered import Decoding
from weft.search.trace import Trace
from weft.tasks.answer_list import AnswerList
from weft.tasks.predictor import (
    Answer,
    Failure,
    Json,
    Place,
    Predictor,
    Raw,
    answered,
    as_text,
    each,
    succeeded,
)
from weft.tasks.seq2seq.batch_search import (
    AnnotatingReader,
    Asked,
    BatchSearch,
    SourceVocabulary,
    Words,
    annotating,
    pad,
)
from weft.tasks.seq2seq.encoding import PairBatch, collate_pairs
from weft.tasks.seq2seq.glossary import Glossary, check_domain, read_glossary
from weft.tasks.seq2seq.sections import Keeps
from weft.text.characters import Alphabet, named
from weft.text.kept import (
    DIGITS,
    Languages,
    Number,
    became_words,
    codes,
    differing,
    expressions,
    missing,
    numbers,
    replaced,
    restored,
    spans,
    stand_ins,
    tagged,
    untagged,
    wrong_numbers,
)
from weft.text.segments import Links, Span, WrittenSentence, attended, proportional
from weft.text.terms import Term, begun, occurrences, rivals, with_terms, wrong_terms
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary
from weft.words import spans as words

_NO_PUNCTUATION = regex.compile(r"\P{P}")
_READS_ALL = Alphabet("", reads=lambda character: True)


class KeptParts(NamedTuple):
    """What the translation of a line keeps."""

    whole: bool  # the line as it is: it has no letters beside these parts
    placeholders: bool
    numbers: list[Number]  # with characters that the vocabulary lacks, which has digits
    unknown: list[Span]  # other words with characters that it lacks
    lacking: list[str]  # these characters, to be named; figures of a copied line are not


def kept_parts(line: str, alphabet: Alphabet) -> KeptParts:
    """The parts of a line that its translation keeps."""
    fixed = spans(line)
    lacking = [one for one in alphabet.lacking(line) if not _touches(one, fixed)]
    digits = lacking and not alphabet.lacking(DIGITS)
    held = [one for one in expressions(line) if _touches(one[:2], lacking)] if digits else []
    unknown: list[Span] = []
    for word in words(line) if lacking else ():
        if not _touches(word, lacking) or _touches(word, [*fixed, *(one[:2] for one in held)]):
            continue
        between = line[unknown[-1][1] : word[0]] if unknown else " "
        if not between or (len(between) == 1 and not between.isspace() and not between.isalnum()):  # 3.14
            unknown[-1] = unknown[-1][0], word[1]
        else:
            unknown.append(word)
    rest, at = "", 0
    for begin, end in sorted([*fixed, *unknown, *codes(line)]):
        rest, at = rest + line[at:begin], max(at, end)
    rest += line[at:]
    whole = not any(map(str.isalpha, rest))
    characters = [line[begin:end] for begin, end in lacking]
    named = [one for one in characters if not (whole and one.isascii())]
    return KeptParts(whole, bool(fixed), held, unknown, named)


def completed(
    line: str, parts: KeptParts, target: str, links: Callable[..., Links | None]
) -> tuple[str, str]:
    """A translation with what it lacks of its source, and what is wrong with its placeholders then."""
    lost, unplaced = missing(line, target, parts.unknown), list[str]()
    if lost:
        seen = links(guessed=False)
        if seen is None:  # a guess is no place for a word of which the model knows nothing
            lost, seen = missing(line, target), links()
        assert seen is not None
        loose = [  # a comma beside the wrong word would mislead
            one
            for one in lost
            if one in parts.unknown
            and not _NO_PUNCTUATION.search(line, *one)
            and not became_words(seen, *one)
        ]
        lost, unplaced = [one for one in lost if one not in loose], [line[slice(*one)] for one in loose]
        whole = restored(line, WrittenSentence(target, seen), lost)
        target = target if missing(line, whole) else whole
    why = f"the answer lacks {named(unplaced)}; correct it" if unplaced else ""
    return target, both(differing(line, target), why)


def known_languages(source: str, target: str) -> Languages:
    """The codes of two sides; "" for one that is not named by its language.

    Example:
        >>> known_languages("English", "pt-BR"), known_languages("source", "german")
        (('en', 'pt'), ('', 'de'))
    """
    names = [
        code_of(name) or (name if CODE.fullmatch(name) and name not in SIDES else "")
        for name in (source, target)
    ]
    return names[0], names[1]


def both(lost: str, more: str) -> str:
    """What is wrong with a translation, from two looks at it."""
    return "; ".join(filter(None, (lost, more)))


def _touches(one: Span, others: Sequence[Span]) -> bool:
    return any(begin < one[1] and one[0] < end for begin, end in others)


WINDOW = 2048  # lines per sort by length


class Alignment(NamedTuple):
    """The attention of a translation."""

    weights: np.ndarray  # [T, S] attention of each target token over the source tokens
    source: list[int]
    target: list[int]
    shown: str  # names the layer and heads, for a caption


def attention(model: Generator, batch: PairBatch, width: int) -> tuple[np.ndarray, str]:
    """The attention [T, S] while a target is written, and its layer and heads; S is `width`."""
    with torch.no_grad(), probe() as seen:
        model.features(batch.to(next(model.parameters()).device))
    if parts := [part for part in seen["attention"] if part.shape[2] == width]:
        weights, shown = torch.cat(parts, 1), "attention"
    elif layers := seen["cross_attention"]:
        layer = max(0, len(layers) - 2)  # Garg et al. 2019: the last layer but one aligns best
        weights = layers[layer].mean(1)
        shown = f"decoder, layer {layer + 1} of {len(layers)}, mean of {layers[layer].shape[1]} heads"
    else:
        raise ConfigError(
            "this model has no attention, so it has no alignment to show; "
            "leave that out, or train one whose decoder has attention"
        )
    return weights[0].float().cpu().numpy(), shown


def as_searched(answer: Answer) -> str:
    """The best text of an answer as the model wrote it, before it was completed from its source."""
    assert isinstance(answer, BestTexts)
    best = answer.found[0]
    return best.text if best.searched is None else best.searched


class SearchResult(NamedTuple):
    """One hypothesis for one source."""

    text: str
    score: float  # log-probability normalised by length; hypotheses are ranked by it
    logp: float  # nats
    tokens: list[int]  # as the model wrote them; none for a copy of the source
    lost: str = ""  # what is wrong with it: placeholders, numbers, a source longer than those of training
    searched: str | None = None  # the text as the model wrote it, if it was completed


NOTHING = SearchResult("", -math.inf, -math.inf, [])
"""Fills up the answers if there are fewer hypotheses than `nbest`."""


def results(
    found: Hypotheses, vocabularies: Iterable[Vocabulary], how: Decoding
) -> Iterator[list[SearchResult]]:
    """The hypotheses for each source as texts, best first; each source has a vocabulary of its own."""
    rows = zip(to_lists(found, EOS), found.score.tolist(), found.logp.tolist(), vocabularies, strict=False)
    for hypotheses, scores, logps, vocabulary in rows:
        every = zip(hypotheses, scores, logps, strict=False)
        texts = [
            SearchResult(vocabulary.decode(tokens), score, logp, tokens) for tokens, score, logp in every
        ]
        if how.mbr:
            texts = [texts[place] for place in least_risk([one.text for one in texts], how.nbest)]
        yield texts


def texts_of(found: Sequence[SearchResult]) -> str | list[str]:
    """The best text, or a list of the n best: the cell of a DataFrame."""
    texts = [one.text for one in found]
    return texts[0] if len(texts) == 1 else texts


class Translator(Predictor[str]):
    """Searches translations with a model and its vocabularies.

    Args:
        model: in evaluation mode, on its device.
        source, target: the vocabularies.
        decoding: search settings.
        banned: tokens that are never written, besides the special symbols.
        others: further members of an ensemble, with the same vocabularies and on the same device.
        scores: whether `weft predict` writes the score of each text before it.
        shortlist: for `decoding.shortlist`.
        keeps: what is kept of a source if `decoding.verbatim` is true.
        columns: of the sources in a table, one; beside: that of the targets.
        languages: their codes, for the forms of numbers; "" if they are not known.
        longest: tokens of the longest source in training; a longer one is named.
        domains: those that the model knows.

    Example:
        >>> from weft.models import Generator
        >>> from weft.nn import Categorical, RecurrentDecoder, RecurrentEncoder, Tokens
        >>> from weft.search.offered import Decoding
        >>> from weft.tasks.seq2seq.batch_search import SourceReader
        >>> from weft.text.vocabulary import Vocabulary
        >>> words = Vocabulary.train(["a cat sat"], kind="word", size=None)
        >>> encoder = RecurrentEncoder(3, sizes=(5,))
        >>> decoder = RecurrentDecoder(3, encoder, sizes=(5,))
        >>> size = len(words)
        >>> model = Generator(Tokens(size, 3), decoder, Categorical(5, size), encoder=encoder).eval()
        >>> model.head.bias.data[words.encode("a cat")[-1]] = 9.0  # an untrained model that writes "cat"
        >>> decoding = Decoding(search="greedy", max_ratio=0.0, max_extra=2)
        >>> reader = SourceReader(words, cut=9, copies=False)
        >>> translator = Translator(model, reader, words, decoding, keeps="parts")
        >>> translator.predict("a cat sat"), translator.predict("3.14")  # text without letters is copied
        ('cat cat', '3.14')
    """

    window = WINDOW
    piped = WINDOW

    def __init__(
        self,
        model: Generator,
        source: SourceVocabulary,
        target: Vocabulary,
        decoding: Decoding,
        *,
        banned: Sequence[int] = (),
        others: Sequence[Generator] = (),
        scores: bool = False,
        shortlist: Shortlist | None = None,
        keeps: Keeps = "nothing",
        columns: Sequence[str] = (),
        beside: Sequence[str] = (),
        languages: Languages = ("", ""),
        longest: int | None = None,
        domains: Sequence[str] = (),
    ) -> None:
        check_domain(decoding.domain, domains)
        self.model = model
        self.domains, self._unmarked = domains, source
        self._longest = longest
        self.columns, self.beside = columns, beside
        self.languages = languages
        self.source = annotating(source, decoding)
        self.target = target
        self.decoding = decoding
        self.banned = (PAD, UNK, SOS, *banned)
        self.lines = decoding.nbest
        self.scores = scores
        together = f", {1 + len(others)} runs together" if others else ""
        self._described = f"{decoding.describe()}{together}"
        path = decoding.glossary if decoding.terms == "require" else None
        self._glossary = None if path is None else read_glossary(path)
        how = replace(decoding, glossary=None)
        self._search = BatchSearch([model, *others], target, how, self.banned, shortlist)
        self._alphabet = source.base.alphabet
        self._keeps: Keeps = keeps if decoding.verbatim else "nothing"
        self._random: torch.Generator = self._search.seeded()  # shared by all answers

    def parse(self, raw: Raw, place: Place) -> str:
        """A text; an empty one has empty answers."""
        return as_text(raw, place, self.columns)

    def answers(self, inputs: Sequence[str]) -> Iterator["TranslationAnswer"]:
        return succeeded(self.attempts(inputs))

    def attempts(self, inputs: Sequence[str]) -> Iterator["TranslationAnswer | Failure"]:
        """Like Predictor.attempts, but searches only the failed lines again."""
        for line, found in zip(inputs, self._window(inputs, self._random), strict=True):
            if isinstance(found, DataError | ShapeError):
                yield found
            elif self.decoding.strict and found[0].lost:
                yield DataError(found[0].lost)
            else:
                yield TranslationAnswer(self, line, found)

    def check_figures(self, *, alignments: bool) -> None:
        """Raise an error if the model has no attention, or positions would not be those of the source."""
        if alignments and isinstance(self.source, AnnotatingReader):
            raise ConfigError(
                "decoding.terms, decoding.domain: alignments would count the words that they write into the "
                "source; leave one of them out"
            )
        self.align([EOS], [])

    def value(self, answer: "TranslationAnswer") -> str:
        return str(answer.found[0].text)

    def lacking(self, value: str) -> list[str]:
        parts = self._parts(value)
        if self._keeps == "parts" and parts is not None:
            return parts.lacking
        return [] if self._is_copied(value, parts) else self._alphabet.unknown(value)

    def _parts(self, line: str) -> KeptParts | None:
        if self._keeps == "parts":
            return kept_parts(line, self._alphabet)
        if self._keeps == "texts":
            return kept_parts(line, _READS_ALL)._replace(placeholders=False)
        return None

    @cached_property
    def lacked(self) -> str:  # type: ignore[override]
        """What becomes of such characters."""
        if self._keeps == "parts":
            with suppress(ConfigError):  # no attention
                self.align([EOS], [])
                how = self.decoding
                asked = self._glossary or how.require or how.prefix
                return f"the answers copy them{', except in place of required words' if asked else ''}"
        return self.unread

    def predict(self, raw: Any, domain: str | None = None) -> Any:
        """The best translation of one text, or those of many; see Predictor.predict.

        Args:
            raw: a text, or several.
            domain: of the texts, one of the recipe's `data.domains`; None for that of `decoding.domain`.
        """
        used = self if domain is None else self.in_domain(domain)
        return super(Translator, used).predict(raw)

    def translate(self, lines: Iterable[str]) -> AnswerList[list[SearchResult]]:
        """Like `predict` of many lines, with the n best translations of each and their scores."""
        return self.listed(lines, lambda one: one.found, texts_of)

    def pairs(
        self, lines: Iterable[str], *, window: int = WINDOW
    ) -> Iterator[tuple[str, list[SearchResult]]]:
        """Like `translate` of a stream, `window` lines at a time; a line without an answer ends it.

        Raises:
            DataError: a line cannot be translated.
        """
        given = (self.given(line, Place(f"lines[{number}]")) for number, line in enumerate(lines))
        for answer in answered(self.fresh(), given, window):
            if not isinstance(answer, TranslationAnswer):
                raise DataError(answer.wrong)
            yield answer.line, list(answer.found)

    def terms(self, line: str) -> Words:
        """The translations that the glossary requires for a source."""
        return () if self._glossary is None else self._glossary.required(line)

    def copying(self, line: str) -> "Translator":
        """The same for one source, with the words it may copy added to both vocabularies."""
        copyable = self.source.copyable(line)
        if not copyable:
            return self
        other = copy.copy(self)
        other.source, other.target = self.source.extended(copyable), self.target.extended(copyable)
        return other

    def align(self, source: Sequence[int], target: Sequence[int]) -> Alignment:
        """The attention while this target was written for this source."""
        batch = collate_pairs([list(source)], [list(target)])
        weights, shown = attention(self.model, batch, batch.source.shape[1])
        return Alignment(weights[: len(target) + 1], list(source), [*target, EOS], shown)

    def links(self, line: str, found: SearchResult, *, guessed: bool = True) -> Links | None:
        """Which words of a translation stand for which words of its source.

        Args:
            line: the source.
            found: one of its translations.
            guessed: whether words are linked by their position in the sentence if the model has no attention
                over the source, such as a decoder alone; otherwise None.
        """
        if found.tokens:
            self.model.pause()
            copying = self.copying(self.readable(line))
            with suppress(ConfigError):  # no attention
                seen = copying.align(copying.source.encode(self.readable(line)), found.tokens)
                pieces = copying.source.pieces(seen.source), copying.target.pieces(found.tokens)
                return attended(line, found.text, pieces, seen.weights)
        return proportional(line, found.text) if guessed or not found.tokens else None

    @property
    def device(self) -> torch.device:
        """The model's device."""
        return next(self.model.parameters()).device

    def _window(
        self,
        lines: Sequence[str],
        generator: torch.Generator,
        *,
        found: Sequence[list[SearchResult]] | None = None,
        correct: bool = True,
    ) -> list[list[SearchResult] | Failure]:
        """The n best translations of each line, with what `decoding.verbatim` keeps of it.

        A search may have `found` them already.
        """
        nothing = [SearchResult("", 0.0, 0.0, [])] * self.decoding.nbest
        results: list[list[SearchResult] | Failure] = [nothing for _ in lines]
        sources: dict[int, list[int]] = {}
        parts = [self._parts(line) for line in lines]
        read = [self.readable(line) for line in lines]
        for number, source in enumerate(each(read, self.source.encode_batch)):
            if isinstance(source, DataError | ShapeError):
                results[number] = source
            elif source and self._is_copied(lines[number], parts[number]):
                results[number] = [SearchResult(lines[number], 0.0, 0.0, [])] * self.decoding.nbest
            elif source:
                sources[number] = source
        search = partial(self._batch, sources=sources, lines=read, generator=generator)
        plain = self._searched(sources, dict.fromkeys(sources, ((), ())), search)
        for number, one in plain if found is None else ((number, found[number]) for number in sources):
            results[number] = one
        for number, one in self._with_terms(lines, results, sources, search):
            results[number] = one
        for number, part in enumerate(parts):
            one = results[number]
            if part is not None and number in sources and not isinstance(one, DataError | ShapeError):
                results[number] = self._kept(lines[number], part, one, generator)
        if correct and self._keeps == "parts" and self._alphabet.has_letters:
            self._correct_numbers(lines, parts, results, generator)
        for number, source in sources.items():
            one = results[number]
            if self._longest and len(source) > self._longest and not isinstance(one, DataError | ShapeError):
                why = f"expected at most {self._longest:,} tokens, as in training, got {len(source):,}"
                results[number] = [
                    each._replace(lost=both(each.lost, f"{why}; split the text")) for each in one
                ]
        return results

    def _searched(
        self, sources: Mapping[int, list[int]], asked: Mapping[int, Asked], search: Callable[..., Any]
    ) -> Iterator[tuple[int, list[SearchResult] | Failure]]:
        """The translations of lines, those that ask for the same terms together."""
        order = sorted(asked, key=lambda number: (asked[number], -len(sources[number])))
        for same, run in groupby(order, key=lambda number: asked[number]):
            numbers = list(run)
            for at in range(0, len(numbers), self.decoding.batch_rows):
                rows = numbers[at : at + self.decoding.batch_rows]
                yield from zip(rows, each(rows, partial(search, asked=same)), strict=True)

    def _with_terms(
        self,
        lines: Sequence[str],
        results: Sequence[list[SearchResult] | Failure],
        sources: Mapping[int, list[int]],
        search: Callable[..., Any],
    ) -> Iterator[tuple[int, list[SearchResult]]]:
        """The translations of lines that lack terms, searched again without the words in their places."""
        if self._glossary is None:
            return
        plain, asked = dict[int, list[SearchResult]](), dict[int, Asked]()
        for number in sources:
            one, terms = results[number], self._terms(lines[number])
            if isinstance(one, DataError | ShapeError):
                continue
            if any(not occurrences(term.target, each.text) for term in terms for each in one):
                plain[number] = one
                asked[number] = self.terms(lines[number]), rivals(terms, self._linked(lines[number], one[0]))
        for number, second in self._searched(sources, asked, search):
            again = [] if isinstance(second, DataError | ShapeError) else second
            yield (
                number,
                [
                    self._with_term(lines[number], one, again[rank : rank + 1])
                    for rank, one in enumerate(plain[number])
                ],
            )

    def _with_term(self, line: str, found: SearchResult, again: Sequence[SearchResult]) -> SearchResult:
        """The better of a search that requires the terms, and the terms in place of other words."""
        terms = self._terms(line)
        text = with_terms(line, terms, self._linked(line, found))
        tried = [*again, found._replace(text=text, searched=found.text)]
        wrong = [wrong_terms(line, terms, self._linked(line, one)) for one in tried]
        best = wrong.index("") if "" in wrong else 0
        one = tried[best]
        text, searched = begun(line, terms, one.text), one.searched or one.text
        return one._replace(text=text, lost=wrong[best], searched=searched)

    def _linked(self, line: str, found: SearchResult) -> WrittenSentence:
        return WrittenSentence(found.text, self.links(line, found, guessed=False))

    def _terms(self, line: str) -> list[Term]:
        return [] if self._glossary is None else self._glossary.found(line)

    def with_glossary(self, terms: Glossary | Mapping[str, str] | str | Path) -> "Translator":
        """The same with a glossary, whose terms count before those that it has.

        Args:
            terms: translations by their terms, or the file of a table TERM TAB TRANSLATION, .csv or .xlsx.

        Raises:
            ConfigError: it does not search with a beam, which needs one for terms.
            DataError: the file cannot be read, or is damaged.

        Example:
            translator = weft.load("runs/en-es").with_glossary({"chart": "gráfica"})
            translator.predict("Delete the chart.")
        """
        if isinstance(terms, str | Path):
            terms = read_glossary(Path(terms))
        elif not isinstance(terms, Glossary):
            terms = Glossary([*terms.items()])
        if self.decoding.search != "beam":
            raise ConfigError(f"glossary: expected search: beam, got {self.decoding.search}")
        other = copy.copy(self)
        other._glossary = terms.beside(self._glossary)
        return other

    def in_domain(self, domain: str) -> "Translator":
        """The same for texts of a domain; "" for none.

        Args:
            domain: one of the recipe's `data.domains`.

        Raises:
            ConfigError: the model does not know the domain.

        Example:
            weft.load("runs/en-es").in_domain("legal").predict("The lease ends.")
        """
        check_domain(domain, self.domains)
        other = copy.copy(self)
        other.decoding = replace(self.decoding, domain=domain)
        other.source = annotating(self._unmarked, other.decoding)
        return other

    def readable(self, line: str) -> str:
        """A source as the model reads it: what the vocabulary lacks is replaced by what is the same."""
        return self._alphabet.readable(line) if self._keeps == "parts" else line

    def _is_copied(self, line: str, parts: KeptParts | None) -> bool:
        """Whether a line is its own translation, because it has no letters to translate."""
        how = self.decoding
        asked = how.prefix or how.require or self.terms(line)
        return parts is not None and parts.whole and not asked and self._alphabet.has_letters

    def finished(self, line: str, found: list[SearchResult]) -> list[SearchResult]:
        """The translations of a search for a line, with what `decoding.verbatim` keeps of it."""
        (kept,) = self._window([line], self._search.seeded(), found=[found])
        return kept  # type: ignore[return-value]

    def _correct_numbers(
        self,
        lines: Sequence[str],
        parts: Sequence[KeptParts | None],
        results: list[list[SearchResult] | Failure],
        generator: torch.Generator,
    ) -> None:
        """Search lines whose translations have other numbers again, with numbers that the model knows."""
        wrong = {
            number: found
            for number, found in enumerate(results)
            if not isinstance(found, DataError | ShapeError)
            and any(self._wrong_numbers(lines[number], parts[number], one.text) for one in found)
        }
        if not wrong:
            return
        others = {
            number: stand_ins(lines[number], self.languages[0], lambda one: not self._alphabet.lacking(one))
            for number in wrong
        }
        asked = {number: other for number, other in others.items() if other is not None}
        several = copy.copy(self)
        if self.decoding.search == "beam":
            several.decoding = replace(self.decoding, nbest=self.decoding.beam)
            several._search = self._search.of_beam()
        searched = several._window([one.text for one in asked.values()], generator, correct=False)
        again = dict(zip(asked, searched, strict=True))
        for number, found in wrong.items():
            line, other, second = lines[number], others[number], again.get(number)
            read = list[SearchResult]()
            if other is not None and second is not None and not isinstance(second, DataError | ShapeError):
                put = (other.put_back(one.text, self.languages[1]) for one in second)
                read = [one._replace(text=text) for one, text in zip(second, put, strict=True) if text]
            results[number] = [
                self._with_numbers(line, parts[number], one, read[place :: len(found)])
                for place, one in enumerate(found)
            ]

    def _wrong_numbers(self, line: str, parts: KeptParts | None, text: str) -> str:
        """What is wrong with the numbers of a translation, and with their signs that are not read."""
        there = {one.value for one in numbers(text)}
        cut = [one.text for one in parts.numbers if one.value not in there] if parts is not None else []
        lost = named([one for one in cut if one not in text])
        return wrong_numbers(line, text, self.languages) or (
            lost and f"expected {lost}, got other signs; correct the translation"
        )

    def _with_numbers(
        self, line: str, parts: KeptParts | None, found: SearchResult, again: Sequence[SearchResult]
    ) -> SearchResult:
        """A translation with the numbers of its source, where they can be placed."""
        if not self._wrong_numbers(line, parts, found.text):
            return found
        for one in again:
            if not (differing(line, one.text) or self._wrong_numbers(line, parts, one.text)):
                text, lost = one.text, one.lost
                break
        else:
            links = self.links(line, found, guessed=False)
            text, guessed = replaced(line, WrittenSentence(found.text, links), self.languages)
            shown = named([one.text for one in guessed])
            lost = both(found.lost, shown and f"{shown} may not be in its place; check the translation")
        if differing(line, text) != differing(line, found.text) or self._displaced(line, found.text, text):
            text, lost = found.text, found.lost
        lost = both(lost, self._wrong_numbers(line, parts, text))
        return found._replace(text=text, lost=lost, searched=found.searched or found.text)

    def _displaced(self, line: str, before: str, text: str) -> bool:
        """Whether a required word is no longer in a translation."""
        asked = (*self.terms(line), *self.decoding.require, self.decoding.prefix)
        return any(word in before and word not in text for word in asked)

    def _kept(
        self, line: str, parts: KeptParts, found: list[SearchResult], generator: torch.Generator
    ) -> list[SearchResult]:
        """The translations of a line with what they lack of it."""
        if not (parts.placeholders or parts.unknown):
            return found
        bare = untagged(line) if differing(line, found[0].text) else None
        if bare is not None and bare.text.strip():
            (again,) = self._window([bare.text], generator)
            if not isinstance(again, DataError | ShapeError):
                texts = [tagged(bare, WrittenSentence(one.text, self.links(bare.text, one))) for one in again]
                if not differing(line, texts[0]):
                    searched = (one.text for one in found)
                    return [
                        one._replace(text=text, searched=first)
                        for one, text, first in zip(again, texts, searched, strict=True)
                    ]
        return [self._completed(line, parts, one) for one in found]

    def _completed(self, line: str, parts: KeptParts, found: SearchResult) -> SearchResult:
        """A translation with the placeholders and unknown words that it lacks."""
        text, lost = completed(line, parts, found.text, partial(self.links, line, found))
        if self._displaced(line, found.text, text):
            lacking = named([line[begin:end] for begin, end in missing(line, found.text, parts.unknown)])
            why = f"the answer lacks {lacking}, which would stand in place of a required word; correct it"
            return found._replace(lost=both(found.lost, differing(line, found.text) or why))
        return found._replace(text=text, lost=both(found.lost, lost), searched=found.searched or found.text)

    def _batch(
        self,
        numbers: Sequence[int],
        sources: Mapping[int, list[int]],
        lines: Sequence[str],
        generator: torch.Generator,
        asked: Asked,
    ) -> Iterator[list[SearchResult]]:
        """The n best translations of the lines of these numbers, which contain the terms."""
        try:
            found = self.search([sources[n] for n in numbers], generator=generator, asked=asked)
        except ConfigError as error:
            raise (DataError(f"glossary: {error}") if any(asked) else error) from error
        known = (self.target.extended(self.source.copyable(lines[n])) for n in numbers)
        return results(found, known, self.decoding)

    def search(
        self,
        sources: Sequence[Sequence[int]],
        trace: Trace | None = None,
        generator: torch.Generator | None = None,
        asked: Asked = ((), ()),
    ) -> Hypotheses:
        """Token sequences for a batch of sources, none of them empty.

        Args:
            sources: tokens.
            trace: records a beam search.
            generator: for sampling; by default it starts from the seed.
            asked: words that every output contains, and words that none contains.
        """
        tokens, mask = pad([list(source) for source in sources])
        search = self._search.requiring(*asked) if any(asked) else self._search
        return search(tokens, mask, trace, generator)


@dataclass(eq=False)
class BestTexts(Answer):
    """The n best texts of a search."""

    found: Sequence[SearchResult]  # best first; empty texts fill up the rest
    count: int
    scores: bool  # whether to write the score before each text

    def text(self) -> str:
        """The n best texts, each on its own line, if wanted after its score and a tab."""
        filled = [*self.found, *[NOTHING] * (self.count - len(self.found))]
        return "\n".join(f"{one.score:.4f}\t{one.text}" if self.scores else one.text for one in filled)

    @property
    def lost(self) -> str:  # type: ignore[override]
        """What is wrong with the placeholders of the best text."""
        return self.found[0].lost

    def json(self) -> Json:
        return {"text": self.found[0].text, "score": self.found[0].score}


class TranslationAnswer(BestTexts):
    """The translations of a line, and the attention of the best one."""

    def __init__(self, translator: Translator, line: str, found: Sequence[SearchResult]) -> None:
        super().__init__(found, translator.decoding.nbest, translator.scores)
        self._translator = translator
        self.line = line

    def figure(self) -> "Figure | None":
        if not self.found[0].tokens:
            return None
        from weft.figures.alignment import heat_map

        copying, alignment = self._copying, self._alignment
        pieces = copying.source.pieces(alignment.source), copying.target.pieces(alignment.target)
        return heat_map(
            alignment.weights, *pieces, title=f"{self.line}\n{self.found[0].text}\n({alignment.shown})"
        )

    def alignment(self) -> str:
        best = self.found[0]
        if not best.tokens:  # empty, or a copy
            return " ".join(f"{number}-{number}" for number in range(len(best.text.split())))
        if best.text != self._copying.target.decode(best.tokens):  # with parts of the source
            return between_spaces(self.line, best.text, self._translator.links(self.line, best))
        return between_words(self._copying, self._alignment)

    @cached_property
    def _read(self) -> str:
        return self._translator.readable(self.line)

    @cached_property
    def _copying(self) -> Translator:
        return self._translator.copying(self._read)

    @cached_property
    def _alignment(self) -> Alignment:
        return self._copying.align(self._copying.source.encode(self._read), self.found[0].tokens)


def between_words(translator: Translator, alignment: Alignment) -> str:
    """The words of an alignment as Pharaoh pairs."""
    sides = (translator.source, alignment.source), (translator.target, alignment.target)
    words = [[word.positions for word in side.words(tokens)] for side, tokens in sides]
    return pharaoh(merge(alignment.weights, *words))


def between_spaces(source: str, target: str, links: Links | None) -> str:
    """Links as Pharaoh pairs of the words between spaces."""
    if links is None:
        return ""
    sides = (source, links.source), (target, links.target)
    words = [
        [
            [number for number, (begin, _) in enumerate(places) if word.start() <= begin < word.end()]
            for word in re.finditer(r"\S+", text)
        ]
        for text, places in sides
    ]
    return pharaoh(merge(links.weights, *words))
