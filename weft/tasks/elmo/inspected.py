"""A sentence, or several a line each, under ELMo: what each word is without its sentence, and within."""

import math

import numpy as np
import torch

from weft.errors import DataError
from weft.nn.embed.contextual import BOUNDARY, Sentences
from weft.run import Opened
from weft.tasks.elmo.predictor import END, Comparer
from weft.tasks.shared.inspected.context import around, sentences
from weft.tasks.shared.inspected.inspected import Kind, Subject, Vectors, checked, choices_of, example

FREQUENT = 5000
"""Words of the training text that are looked among for neighbours."""


class ElmoSubject(Kind):
    """One word in two sentences, a line each: two points in context, one without."""

    def read(self, opened: Opened, text: str | None) -> Subject:
        """See Kind."""
        text = checked(example(opened) if text is None else text)
        comparer = opened.task.predictor(opened.model)
        lines = [line for line in text.splitlines() if line.strip()]
        found = [comparer.vectors(line) for line in lines]
        words = [word for one in found for word in one.words]
        first = found[0].words
        spelled, mask = comparer.lexicon.spell([first])
        logp = comparer.ahead(first)
        targets = [*spelled.words[0].tolist(), BOUNDARY]
        nats = -float(logp[torch.arange(len(targets)), targets].mean())
        return Subject(
            opened=opened,
            text=text,
            answer=f"forward perplexity {math.exp(nats):.1f} a word, its end counted",
            source=["<start>", *first, END],
            batch=Sentences(spelled, mask, len(first) + 1).to(comparer.model.ends.device),
            choices=choices_of(logp, targets, _Called(comparer), [*first, END]),
            chosen_what="each word of the sentence and its end, given those before it",
            vectors=Vectors(
                *_static(comparer, words),
                words,
                np.concatenate([one.layers[-1] for one in found]),
                around(
                    sentences(lambda: opened.task.data.open("valid")), lambda line: _within(comparer, line)
                ),
            ),
        )


class _Called:
    """The classes of the softmax by indexing."""

    def __init__(self, comparer: Comparer) -> None:
        self.comparer = comparer

    def __getitem__(self, number: int) -> str:
        return self.comparer.word(number)


def _within(comparer: Comparer, line: str) -> tuple[list[str], np.ndarray] | None:
    try:
        found = comparer.vectors(line)
    except DataError:
        return None
    return found.words, found.layers[-1]


def _static(comparer: Comparer, words: list[str]) -> tuple[list[str], np.ndarray, list[int]]:
    """Names, their vectors from letters alone [V, H], and which of them the words of the text are."""
    lexicon, model = comparer.lexicon, comparer.model
    order = np.argsort(-np.array(lexicon.counts), kind="stable")[:FREQUENT].tolist()
    names = list(dict.fromkeys([*words, *(lexicon.words[n] for n in order)]))
    table = []
    with torch.no_grad():
        for at in range(0, len(names), 500):
            spelled, _ = lexicon.spell([names[at : at + 500]])
            x = model.project(model.characters(spelled.letters.to(model.ends.device)))
            table.append(x[spelled.which[0].to(x.device)].float().cpu().numpy())
    place = {name: n for n, name in enumerate(names)}
    return names, np.concatenate(table), [place[word] for word in words]
