"""How good a tagger is, beside the floor: all words, unknown words, each tag, and what is mistaken for what.

Read next: ../../metrics/suffix.py, the floor.
"""

import json
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weft.data.conllu import Column, Sentence
from weft.metrics.bootstrap import confidence
from weft.metrics.confusion import classes, confusion
from weft.metrics.f1 import ClassRow, by_class, table
from weft.metrics.floor import beside
from weft.metrics.metric import Score
from weft.metrics.suffix import MostFrequentTag
from weft.metrics.tags import TagAccuracy
from weft.tasks.tags.tagger import Tagger

SHOWN = 8  # confusions


class TagEvaluation(NamedTuple):
    """A tagged text and all that is known of it."""

    title: str
    outputs: list[str]  # the sentences as predict writes them
    accuracy: Score
    unknown: Score | None  # on words that training never saw; None where there are none
    floor: float | None
    floor_unknown: float | None
    rows: list[ClassRow]
    labels: list[str]
    matrix: np.ndarray  # [C, C] reference by answer
    words: int
    unseen_tags: list[str]  # in this text, not in the training data
    seconds: float  # CPU

    def text(self) -> str:
        """For a reader."""
        lines = [self.title, f"  {self.accuracy}"]
        if self.floor is not None:
            below = beside(self.accuracy.value, self.floor)
            lines.append(f"    floor: most frequent tag and ending {self.floor:.4f}{below}")
        if self.unknown is not None:
            lines.append(f"  {self.unknown}")
            if self.floor_unknown is not None:
                below = beside(self.unknown.value, self.floor_unknown)
                lines.append(f"    floor: most frequent tag and ending {self.floor_unknown:.4f}{below}")
        if self.unseen_tags:
            lines.append(f"  tags that training never saw, always wrong: {', '.join(self.unseen_tags)}")
        rate = self.words / max(self.seconds, 1e-9)
        lines.append(f"  {rate:,.0f} words a CPU second, {self.seconds:.1f} s")
        wrong = [
            (int(self.matrix[i, j]), self.labels[i], self.labels[j])
            for i, j in zip(*np.nonzero(self.matrix), strict=True)
            if i != j
        ]
        lines += ["most frequent mistakes (reference, answer, times):"] if wrong else []
        lines += [f"  {one} {other} {count:,}" for count, one, other in sorted(wrong, reverse=True)[:SHOWN]]
        lines.append(table(self.rows))
        return "\n".join(lines)

    def json(self) -> str:
        """For a program."""
        unknown = self.unknown._asdict() if self.unknown else None
        everything = {
            "title": self.title,
            "scores": {"accuracy": self.accuracy._asdict(), "unknown": unknown},
            "floors": {"accuracy": self.floor, "unknown": self.floor_unknown},
            "classes": [row._asdict() for row in self.rows],
            "labels": self.labels,
            "confusion": self.matrix.tolist(),
            "words": self.words,
            "seconds": self.seconds,
        }
        return json.dumps(everything, indent=1, ensure_ascii=False) + "\n"


def evaluate(
    tagger: Tagger,
    sentences: Sequence[Sentence],
    *,
    title: str,
    column: Column,
    train: Sequence[Sentence] | None = None,
) -> TagEvaluation:
    """Tag and score.

    Args:
        tagger: at work.
        sentences: with the right tags.
        title: which data.
        column: where tags go in the outputs.
        train: for the floor.
    """
    begun = time.process_time()
    answers = [found.tags for found in tagger.tag([sentence.forms for sentence in sentences])]
    seconds = time.process_time() - begun
    references = [sentence.tags or [] for sentence in sentences]
    forms = [sentence.forms for sentence in sentences]
    new = [[not tagger.lexicon.knows(form) for form in words] for words in forms]
    accuracy = confidence(TagAccuracy(), _lines(answers), _lines(references))
    unknown = None
    if any(map(any, new)):
        score = confidence(TagAccuracy(), _lines(answers, new), _lines(references, new))
        known = "small letters" if tagger.lexicon.lowercase else "as written"
        signature = f"{score.signature}|words:{sum(map(sum, new))}|known:{known}"
        unknown = score._replace(name="tag accuracy, unknown words", signature=signature)
    floors: list[float | None] = [None, None]
    if train is not None:
        lowest = MostFrequentTag((sentence.forms, sentence.tags or []) for sentence in train)
        guessed = [lowest.tag(words) for words in forms]
        floors[0] = TagAccuracy().score(_lines(guessed), _lines(references)).value
        if unknown is not None:
            floors[1] = TagAccuracy().score(_lines(guessed, new), _lines(references, new)).value
    flat = [tag for tags in answers for tag in tags], [tag for tags in references for tag in tags]
    labels = classes(*flat)
    return TagEvaluation(
        title=f"{title}, {len(sentences):,} sentences, {len(flat[1]):,} gold words",
        outputs=[
            "\n".join(one.tagged(tags, column)) + "\n" for one, tags in zip(sentences, answers, strict=True)
        ],
        accuracy=accuracy._replace(signature=f"{accuracy.signature}|words:{len(flat[1])}"),
        unknown=unknown,
        floor=floors[0],
        floor_unknown=floors[1],
        rows=by_class(*flat),
        labels=labels,
        matrix=confusion(*flat, labels),
        words=len(flat[1]),
        unseen_tags=sorted(set(flat[1]) - set(tagger.lexicon.tags)),
        seconds=seconds,
    )


def _lines(rows: Sequence[Sequence[str]], chosen: Sequence[Sequence[bool]] | None = None) -> list[str]:
    """Tags of each sentence with spaces between, all of them or the chosen ones."""
    if chosen is None:
        return [" ".join(tags) for tags in rows]
    return [
        " ".join(tag for tag, take in zip(tags, takes, strict=True) if take)
        for tags, takes in zip(rows, chosen, strict=True)
    ]
