"""A text under a masked language model: its gaps filled, or each token predicted from all others."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from weft.errors import DataError
from weft.tasks.inspection import (
    Choice,
    Examples,
    Inspected,
    Vectors,
    around,
    checked,
    choices_of,
    sentences,
    table_of,
)
from weft.tasks.masked.model import SPECIALS, Hidden
from weft.tasks.masked.predictor import MASK, Filler
from weft.tasks.seq2seq.inspection import Called
from weft.text.vocabulary import EOS, SOS

if TYPE_CHECKING:
    from weft.tasks.masked.ready import MaskedPipeline

ROWS = 32


def inspected(
    pipeline: "MaskedPipeline", model: Any, text: str | None, examples: Examples, options: Mapping[str, Any]
) -> Inspected:
    """See Pipeline.inspected.

    With [MASK] in the text, these gaps are filled; without, each token is hidden in turn.
    """
    text = checked(examples.middle() if text is None else text)
    filler = pipeline.predictor(model)
    vocabulary, size = filler.vocabulary, len(filler.vocabulary)
    device = next(filler.model.parameters()).device
    tokens = filler.tokens(text)
    most = pipeline.task.data.length
    if len(tokens) > most + 2:
        raise DataError(
            f"expected at most {most} tokens, as in training, got {len(tokens) - 2}; shorten the text"
        )
    gaps = [place for place, token in enumerate(tokens) if token == size]
    source = torch.tensor([tokens], device=device)
    pieces = ["<sos>", *(_piece(filler, token) for token in tokens[1:-1]), "<eos>"]
    names = Called(vocabulary)
    if gaps:
        logp = _logp(filler, source)[0, :, :size]
        logp[:, :SPECIALS] = -torch.inf
        best = logp.argmax(1)
        target = torch.where(source == size, best[None], source)
        chosen = source == size
        choices = choices_of(logp[gaps], best[gaps].tolist(), names)
        answer, what = filler.fill(text, 1).text, "each gap, filled by itself"
    else:
        choices = _in_turn(filler, source)
        nats = -sum(math.log(max(one.prob, 1e-30)) for one in choices) / max(1, len(choices))
        answer = f"perplexity {math.exp(nats):.1f} of each token, given all others"
        target, chosen = source, torch.ones_like(source, dtype=torch.bool)
        chosen[:, [0, -1]] = False
        what = "each token of the text, hidden by itself, given all others"
    mask = torch.ones_like(source, dtype=torch.bool)
    return Inspected(
        text=text,
        answer=answer,
        source=pieces,
        batch=Hidden(source, mask, target, chosen, int(chosen.sum())),
        choices=choices,
        chosen_what=what,
        vectors=_vectors(pipeline, filler, tokens, pieces),
    )


def _piece(filler: Filler, token: int) -> str:
    return MASK if token == len(filler.vocabulary) else filler.vocabulary.pieces([token])[0]


def _logp(filler: Filler, source: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return filler.model(source, torch.ones_like(source, dtype=torch.bool)).float().cpu()  # type: ignore[no-any-return]


def _in_turn(filler: Filler, source: torch.Tensor) -> list[Choice]:
    """The probability of each token where it alone is hidden."""
    size, count = len(filler.vocabulary), source.shape[1] - 2
    rows = source.expand(count, -1).clone()
    places = torch.arange(1, count + 1)
    rows[places - 1, places] = size
    found = [
        _logp(filler, rows[at : at + ROWS])[torch.arange(len(rows[at : at + ROWS])), places[at : at + ROWS]]
        for at in range(0, count, ROWS)
    ]
    if not found:
        return []
    logp = torch.cat(found)[:, :size]
    return choices_of(logp, source[0, 1:-1].tolist(), Called(filler.vocabulary))


def _vectors(
    pipeline: "MaskedPipeline", filler: Filler, tokens: list[int], pieces: list[str]
) -> Vectors | None:
    predictor, vocabulary = filler.model.predictor, filler.vocabulary
    device = next(filler.model.parameters()).device
    most = pipeline.task.data.length
    table = table_of(predictor.embed, len(vocabulary) + 1)
    if table is None or len(tokens) < 3:
        return None

    def states(row: list[int]) -> np.ndarray:
        source = torch.tensor([row], device=device)
        with torch.no_grad():
            memory = predictor.memory(source, torch.ones_like(source, dtype=torch.bool))
        return memory.states[0, 1:-1].float().cpu().numpy()

    def context(line: str) -> tuple[list[str], np.ndarray] | None:
        row = vocabulary.encode(line)[:most]
        return (vocabulary.pieces(row), states([SOS, *row, EOS])) if row else None

    return Vectors(
        [*vocabulary.pieces(range(len(vocabulary))), MASK],
        table,
        tokens[1:-1],
        pieces[1:-1],
        states(tokens),
        around(sentences(lambda: pipeline.task.data.open("valid")), context),
    )
