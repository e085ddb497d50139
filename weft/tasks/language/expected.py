"""How much each token of given rows was expected: its log-probability, and the tokens that were likelier.

scoring.py computes the same log-probabilities without alternatives, for texts of any length.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from weft.data.batching import filled_groups
from weft.tasks.language.batch import ProseBatch
from weft.tasks.language.cache import Remembered
from weft.tasks.language.step import Reader
from weft.tasks.shared.writing.batch import pad

READ = 2048
"""Tokens read per step."""

SPREAD = 512
"""Positions whose distribution over the vocabulary is held at once."""


class Expected(NamedTuple):
    """A token, given those before it."""

    token: int
    logp: float  # nats
    best: list[tuple[int, float]]  # the likeliest tokens in its place and their log-probabilities, best first


class _Part(NamedTuple):
    """A stretch of a row that the model reads at once; its last `new` targets are wanted."""

    row: int
    begin: int  # of the inputs
    end: int
    new: int


def expected(
    reader: Reader, rows: Sequence[Sequence[int]], k: int, *, stride: int = 0
) -> list[list[Expected]]:
    """For each row, its tokens after the first.

    Args:
        reader: the model.
        rows: tokens, each row as the model reads it from its beginning.
        k: number of alternatives.
        stride: a row longer than the model's window is read in windows, of which the last `stride` tokens
            are new; 0 for the length of the window.
    """
    parts = [
        part
        for number, row in enumerate(rows)
        for part in _parts(number, len(row) - 1, reader.window, stride or reader.window or 1)
    ]
    found: dict[tuple[int, int], Expected] = {}
    lengths = [part.end - part.begin for part in parts]
    with torch.inference_mode():
        for chosen in filled_groups(lengths, READ) if parts else ():
            found |= _read(reader, rows, [parts[number] for number in chosen], k)
    return [[found[number, place] for place in range(1, len(row))] for number, row in enumerate(rows)]


def _parts(row: int, count: int, window: int | None, stride: int) -> Iterator[_Part]:
    """The stretches of a row with so many targets; as in scoring.py, the last one ends with the row."""
    if count < 1:
        return
    length = count if window is None else min(window, count)
    yield _Part(row, 0, length, length)
    done = length
    while done < count:
        end = min(done + stride, count)
        yield _Part(row, end - length, end, end - done)
        done = end


def _read(
    reader: Reader, rows: Sequence[Sequence[int]], parts: Sequence[_Part], k: int
) -> dict[tuple[int, int], Expected]:
    """By row and place."""
    model = reader.model
    device = next(model.parameters()).device
    before, mask = pad([rows[part.row][part.begin : part.end] for part in parts])
    after, _ = pad([rows[part.row][part.begin + 1 : part.end + 1] for part in parts])
    h = model.features(ProseBatch(before, after, mask, int(mask.sum())).to(device))  # [B, T, D]
    new = [
        (number, place)
        for number, part in enumerate(parts)
        for place in range(part.end - part.begin - part.new, part.end - part.begin)
    ]
    hidden = {part.row: h[number] for number, part in enumerate(parts)} if reader.cache else {}
    wanted = h[[number for number, _ in new], [place for _, place in new]]  # [P, D]
    targets = [(parts[number].row, parts[number].begin + place + 1) for number, place in new]
    found: dict[tuple[int, int], Expected] = {}
    for at in range(0, len(targets), SPREAD):
        here = targets[at : at + SPREAD]
        logp = _mixed(reader, model.head(wanted[at : at + SPREAD]), rows, here, hidden)  # [P, V]
        tokens = [rows[row][place] for row, place in here]
        own = logp.gather(1, torch.tensor(tokens, device=device)[:, None])[:, 0].tolist()
        values, numbers = (one.tolist() for one in logp.topk(min(k, logp.shape[1])))
        for target, token, value, best in zip(here, tokens, own, map(zip, numbers, values), strict=True):
            found[target] = Expected(token, value, list(best))
    return found


def _mixed(
    reader: Reader,
    logp: Tensor,
    rows: Sequence[Sequence[int]],
    targets: Sequence[tuple[int, int]],
    hidden: Mapping[int, Tensor],
) -> Tensor:
    """Log-probabilities [P, V] of targets (row, place); `hidden` has each row's features after each token."""
    if reader.cache is not None:
        found = []
        for one, (row, place) in zip(logp, targets, strict=True):
            tokens = torch.tensor([rows[row][:place]], device=logp.device)
            past = Remembered.of(hidden[row][None, :place], tokens, reader.cache.size)
            found.append(past.mixed(one[None], reader.cache))
        logp = torch.cat(found)
    if reader.ngrams is None:
        return logp
    recent = torch.tensor([reader.recent(rows[row][:place]) for row, place in targets], device=logp.device)
    return reader.with_ngrams(logp, recent)
