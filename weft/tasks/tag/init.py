"""`weft init tag`: a recipe for a user's tagged sentences."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from weft.data.conll import form_of
from weft.data.conllu import Column, read_sentences
from weft.data.several import repeats
from weft.errors import DataError
from weft.metrics.span_f1 import are_spans
from weft.tasks.init import (
    START,
    TEST,
    TRAIN,
    VALID,
    ModelCandidate,
    Option,
    TemplateInit,
    Trial,
    each,
    files_of,
    only,
    planned,
    splits,
    started,
)

TRIAL = Trial(
    (
        ModelCandidate("linear", "a linear CRF over words, their beginnings, endings and shape"),
        ModelCandidate(
            "network", "a BiLSTM over words and their letters, in small files beside that CRF", updates=1000
        ),
    ),
    untried="network",
    fewest=100,
    unit="sentence",
    most=100_000,
    part="word",
)

HELD = 50
"""Sentences that choose a model or its checkpoint: a twentieth of them all, but a fifth of a small file."""

SMALL = 2_000
"""Sentences below which a network has a linear CRF beside it, and is trained once more on all sentences."""


class TagInit(TemplateInit):
    """Reads tagged sentences, in one file or three."""

    about: ClassVar[str] = "A tagger for words in sentences."
    examples: ClassVar = ("en_ewt-ud-train.conllu",)
    options: ClassVar = (
        TRAIN._replace(help="Training file: CoNLL-U, CoNLL-2003, lines WORD TAB TAG, or WORD/TAG."),
        VALID,
        TEST,
        Option(
            "column",
            "Column to learn: upos, xpos or feats of CoNLL-U; pos, chunk or ner (the last) of CoNLL-2003. "
            "Default: upos, or ner.",
            choices=("upos", "xpos", "feats", "pos", "chunk", "ner"),
        ),
        *TRIAL.options(),
        START,
    )
    reads: ClassVar = "sentences"
    trial: ClassVar = TRIAL
    several: ClassVar = True

    def values(self, given: Mapping[str, Any], say: Callable[[str], None]) -> Mapping[str, object]:
        train, valid, test = files_of(given)
        read = each(train)
        form = form_of(read[0])
        columned = form is not None and form.width > 2
        column: Column = given["column"] or ("ner" if columned else "upos")
        if columned and form and given["column"] is None:
            which = "the column behind the words" if form.word else "the last of its columns"
            others = "" if form.word else "; --column pos and chunk name others"
            say(f"{read[0]}: {which} is learnt (ner){others}")
        texts = [(str(path), read_sentences(path, column=column)) for path in read]
        again = (
            (name, ((*one.forms, *(one.tags or ())) for one in text if one.forms)) for name, text in texts
        )
        for note in repeats(again) if read[1:] else ():
            say(note)
        sentences = words = documents = 0
        tags: set[str] = set()
        for file, one in ((path, one) for path in read for one in read_sentences(path, column=column)):
            if one.forms and one.tags is None:
                from weft.tasks.tag.data import UNTAGGED  # here, as it imports torch

                raise DataError(UNTAGGED, path=file, line=one.first)
            sentences, words = sentences + bool(one.forms), words + len(one.forms)
            tags.update(one.tags or [])
            documents += any(line.startswith("# newdoc") for line in one.lines)
        if not words or tags == {"_"}:
            raise DataError(
                f"expected tags in column {column}, got none; give tagged sentences", path=read[0]
            )
        if valid is None and sentences < 2:
            why = f"expected 2 sentences or more, got {sentences}; give more, or --valid"
            raise DataError(why, path=read[0])
        linear, small = given["model"] == "linear", sentences < SMALL and not given["start"]
        return {
            "examples": sentences,
            "parts": words,
            "tags": len(tags),
            "sentences": f"{sentences:,}",
            "words": f"{words:,}",
            "column": column,
            "metric": "span_f1" if are_spans(tags) else "accuracy",
            **splits(train, valid, test),
            "every": f"{min(20, max(5, sentences // HELD)):<2}",
            "chosen": "penalty" if linear else "checkpoint",
            "refit": only(linear or small),
            "few": only(small and not linear),
            "many": only(not linear and not small),
            "documents": only(not valid and documents >= 20),
            "linear": only(linear),
            "network": only(not linear and not given["start"]),
            "trained": only(not linear),
            **started(given),
            "dropout": 0.4 if words < 500_000 else 0.25,
            **planned(words / 800, epochs=12, warmup=100)._asdict(),
        }
