"""Sentences under ELMo, a line each: the vectors of each word without its sentence, and in it."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from weft.errors import DataError
from weft.nn.embed.contextual import BOUNDARY, Sentences
from weft.tasks.elmo.predictor import END, Comparer
from weft.tasks.inspection import Examples, Inspected, Vectors, around, checked, choices_of, sentences

if TYPE_CHECKING:
    from weft.tasks.elmo.ready import ElmoPipeline

FREQUENT = 5000
"""Words of the training text among which neighbours are searched."""


def inspected(
    pipeline: "ElmoPipeline", model: Any, text: str | None, examples: Examples, options: Mapping[str, Any]
) -> Inspected:
    """See Pipeline.inspected.

    A word that occurs in two of the sentences has two vectors in context, and one without.
    One word and two sentences with tabs between them, as `weft predict` reads them, are read too.
    """
    text = checked(examples.middle() if text is None else text)
    if text.count("\t") == 2:
        text = "\n".join(text.split("\t")[1:])
    comparer = pipeline.predictor(model)
    lines = [line for line in text.splitlines() if line.strip()]
    found = [comparer.vectors(line) for line in lines]
    words = [word for one in found for word in one.words]
    first = found[0].words
    spelled, mask = comparer.lexicon.spell([first])
    logp = comparer.ahead(first)
    targets = [*spelled.words[0].tolist(), BOUNDARY]
    nats = -float(logp[torch.arange(len(targets)), targets].mean())
    return Inspected(
        text=text,
        answer=f"forward perplexity {math.exp(nats):.1f} per word, including the end",
        source=["<start>", *first, END],
        batch=Sentences(spelled, mask, len(first) + 1).to(comparer.model.ends.device),
        choices=choices_of(logp, targets, _Called(comparer), [*first, END]),
        chosen_what="each word of the sentence and its end, given those before it",
        vectors=Vectors(
            *_static(comparer, words),
            words,
            np.concatenate([one.layers[-1] for one in found]),
            around(sentences(lambda: pipeline.task.data.open("valid")), lambda line: _within(comparer, line)),
        ),
    )


class _Called:
    """The names of the classes of the softmax, by number."""

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
    """Words, their vectors from letters alone [V, H], and the rows of the words of the text."""
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
