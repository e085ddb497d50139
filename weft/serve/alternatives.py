"""The likeliest whole words in place of one of an answer, with their probabilities, for the page.

Read next: ../search/words.py; page/draw.js.
"""

from dataclasses import replace
from math import exp
from typing import Any

import torch

from weft.search.words import NextWord, WordEdges, next_words
from weft.serve.batcher import Stopped
from weft.serve.continuing import BANNED, writer_of
from weft.serve.limits import MAX_TOKENS, check_most
from weft.serve.schemas import ProbableWord
from weft.serve.served import ServedRun
from weft.serve.watching import reading, without
from weft.text.vocabulary import EOS, SOS, Vocabulary

WORDS = 8
"""Maximum number of words."""


def alternatives(run: ServedRun, given: dict[str, Any], stopped: Stopped) -> list[ProbableWord]:
    """The likeliest next words of an answer after its prefix, best first."""
    found = _continued(run, given) if run.continues else _translated(run, given, stopped)
    return [ProbableWord(text=text, prob=round(exp(one.logp), 4)) for text, one in found if text.strip()]


@torch.inference_mode()
def _translated(run: ServedRun, given: dict[str, Any], stopped: Stopped) -> list[tuple[str, NextWord]]:
    assert run.rewriter is not None
    plain = replace(run.rewriter.decoding, require=(), prefix="")
    found, _, source = reading(run, plain, given, stopped)
    target = found.target
    before = target.encode(given["prefix"]) or target.begin()
    check_most(len(before), MAX_TOKENS, "tokens", "prefix")
    tokens = torch.tensor([source], device=found.device)
    state = found.model.start(tokens, torch.ones_like(tokens, dtype=torch.bool))
    *past, last = torch.tensor([SOS, *before], device=found.device).split(1)
    for token in past:
        found.model.pause()
        _, state = found.model.step(token, state)
    inside = len(before) == len(target.begin())
    words = next_words(
        found.model.step,
        state,
        last,
        _edges(target),
        eos=EOS,
        count=WORDS,
        banned=found.banned,
        inside=inside,
    )
    return [(target.decode(one.tokens), one) for one in words]


@torch.inference_mode()
def _continued(run: ServedRun, given: dict[str, Any]) -> list[tuple[str, NextWord]]:
    writer = writer_of(run, without(run, given["edits"]))
    text = given["text"] + given["prefix"]
    row = writer.reading.row(text)
    state, last = writer.reader.start([row])
    inside = not text or text[-1].isspace()
    words = next_words(
        writer.reader.step,
        state,
        last,
        _edges(writer.vocabulary),
        eos=EOS,
        count=WORDS,
        banned=BANNED,
        inside=inside,
    )
    return [(writer.added(text, row, one.tokens), one) for one in words]


def _edges(vocabulary: Vocabulary) -> WordEdges:
    begins, ends = (torch.tensor(edge) for edge in vocabulary.edges())
    return WordEdges(begins, ends)
