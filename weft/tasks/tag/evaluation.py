"""How good a tagger is, beside the baseline: all words, unknown words, each tag, confusions, calibration.

If the tags mark names, as B-PER does, whole names are counted, too, and each type of name.
Read next: ../../metrics/span_f1.py; ../../metrics/suffix.py, the baseline.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from weft.data.conllu import Column, ConlluSentence
from weft.metrics.confusion import classes, confusion
from weft.metrics.f1 import ClassRow, by_class, macro_f1, table
from weft.metrics.metric import Metric
from weft.metrics.scored import ScoreWithBaselines, scored
from weft.metrics.span_f1 import SpanF1, are_spans, by_type, scheme
from weft.metrics.suffix import MostFrequentTag
from weft.metrics.tags import TagAccuracy
from weft.tasks.evaluation import unanswered
from weft.tasks.labels.base import ClassEvaluation
from weft.tasks.labels.calibration import Confidence, confidence_of
from weft.tasks.lexicon import Lexicon
from weft.tasks.predictor import Place, separated
from weft.tasks.tag.predictor import WordTagger
from weft.wording import plural

SHOWN = 8  # confusions


@dataclass(frozen=True, kw_only=True)
class TagEvaluation(ClassEvaluation):
    """The scores of a tagger: accuracy, F1 of whole names if tags mark some, unknown words, macro F1.

    `outputs` are the sentences as `weft predict` writes them, `seconds` those of the CPU, `names` the rows of
    the types of names.
    """

    confidence: Confidence
    words: int
    unseen_tags: list[str]  # in this text, not in the training data
    wrong: list[str]
    names: list[ClassRow]

    def details(self) -> list[str]:
        """Tags never seen, calibration, speed, confusions, each tag."""
        lines = []
        if self.unseen_tags:
            lines.append(f"  tags that training never saw (always wrong): {', '.join(self.unseen_tags)}")
        lines += self.confidence.lines(self.accuracy.value)
        rate = self.words / max(self.seconds, 1e-9)
        lines.append(f"  {rate:,.0f} words per CPU second with probabilities, {self.seconds:.1f} s")
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
        """Tags, confusions, calibration."""
        return {
            **super().facts(),
            **self.confidence.facts(),
            **({"names": [row._asdict() for row in self.names]} if self.names else {}),
            "words": self.words,
            "seconds": self.seconds,
        }


def evaluate(
    tagger: WordTagger,
    sentences: Sequence[ConlluSentence],
    *,
    title: str,
    column: Column,
    train: Sequence[ConlluSentence] | None = None,
) -> TagEvaluation:
    """Tag and score; the words of a sentence that the model cannot read count as wrong, and it is named.

    Args:
        tagger: with a trained model.
        sentences: with the right tags.
        title: which data.
        column: of the outputs that takes the tags.
        train: for the baseline.

    Raises:
        DataError, ShapeError: the model can read none of them.
    """
    begun = time.process_time()
    found = tagger.attempts_at((sentence.forms for sentence in sentences), probs=True)
    tagged, wrong = separated(found, (Place(title, sentence.first) for sentence in sentences))
    seconds = time.process_time() - begun
    pairs = list(zip(tagged, sentences, strict=True))
    answers = [[""] * len(sentence.forms) if one is None else one.tags for one, sentence in pairs]
    read = [(one, sentence) for one, sentence in pairs if one is not None]
    flat = list(chain(*answers)), list(chain(*(sentence.tags or [] for sentence in sentences)))
    labels = classes(*flat)
    known = [sentence.tags or [] for sentence in sentences]
    return TagEvaluation(
        title=f"{title}, {plural(len(sentences), 'sentence')}, {plural(len(flat[1]), 'gold word')}"
        f"{unanswered(wrong)}",
        outputs=[
            "\n".join(one.tagged([tag or "_" for tag in tags], column)) + "\n"
            for one, tags in zip(sentences, answers, strict=True)
        ],
        scores=_scores(tagger.lexicon, sentences, answers, train),
        rows=by_class(*flat),
        labels=labels,
        matrix=confusion(*flat, labels),
        confidence=confidence_of(
            np.concatenate([one.every for one, _ in read]),
            np.array(list(chain(*(one.tags for one, _ in read)))),
            np.array(list(chain(*(sentence.tags or [] for _, sentence in read)))),
            tagger.lexicon.tags,
            tagger.temperature,
        ),
        words=len(flat[1]),
        unseen_tags=sorted(set(flat[1]) - set(tagger.lexicon.tags)),
        seconds=seconds,
        wrong=wrong,
        names=by_type(answers, known) if are_spans(flat[1]) else [],
    )


def _scores(
    lexicon: Lexicon,
    sentences: Sequence[ConlluSentence],
    answers: Sequence[Sequence[str]],
    train: Sequence[ConlluSentence] | None,
) -> list[ScoreWithBaselines]:
    """Accuracy, whole names, words that training never saw, and macro F1, beside the baseline."""
    references = [sentence.tags or [] for sentence in sentences]
    forms = [sentence.forms for sentence in sentences]
    new = [[not lexicon.knows(form) for form in words] for words in forms]
    guessed: dict[str, list[list[str]]] = {}
    if train is not None:
        most = MostFrequentTag((sentence.forms, sentence.tags or []) for sentence in train)
        guessed["most frequent tag and ending"] = [most.tag(words) for words in forms]
    words = f"words:{sum(map(len, references))}"
    scores = [_scored(answers, references, guessed).signed(words)]
    if are_spans(chain(*references)):
        found = _scored(answers, references, guessed, metric=SpanF1())
        scores.append(found.signed(f"scheme:{scheme(references)}"))
    if any(map(any, new)):
        known = "small letters" if lexicon.lowercase else "as written"
        unknown = _scored(answers, references, guessed, new).renamed("tag accuracy, unknown words")
        scores.append(unknown.signed(f"words:{sum(map(sum, new))}|known:{known}"))
    lowest = {name: list(chain(*rows)) for name, rows in guessed.items()}
    flat, lengths = (list(chain(*answers)), list(chain(*references))), [*map(len, references)]
    return [*scores, macro_f1(*flat, baselines=lowest, lengths=lengths).signed(words)]


def _scored(
    answers: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    guessed: Mapping[str, Sequence[Sequence[str]]],
    chosen: Sequence[Sequence[bool]] | None = None,
    metric: Metric | None = None,
) -> ScoreWithBaselines:
    """A metric, the accuracy by default, of all words or of the chosen ones."""
    lowest = {name: _lines(rows, chosen) for name, rows in guessed.items()}
    rows = _lines(answers, chosen), _lines(references, chosen)
    return scored(metric or TagAccuracy(), *rows, baselines=lowest)


def _lines(rows: Sequence[Sequence[str]], chosen: Sequence[Sequence[bool]] | None = None) -> list[str]:
    """The tags of each sentence, all or the chosen ones, with spaces between them and none inside."""
    takes = chosen or [[True] * len(tags) for tags in rows]
    return [
        " ".join(re.sub(r"\s", "␣", tag) for tag, take in zip(tags, taken, strict=True) if take)
        for tags, taken in zip(rows, takes, strict=True)
    ]
