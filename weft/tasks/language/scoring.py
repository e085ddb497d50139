"""The log-probability of each token of a text, in its context.

    stream   the state is carried through the whole text: a token sees everything before it
    windows  the last `stride` tokens of each window are scored, so that a token sees at least
             length - stride tokens before it; stride = length cuts the text into windows (as in nanoGPT)
    lines    a token sees its own line; one that is too long for the model is read in windows

Every signature names the context: a streamed network sees more than a window.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from weft.data.batching import filled_groups
from weft.models import Generator
from weft.nn.heads.head import Head
from weft.nn.positions import most_positions
from weft.tasks.language.stream import ProseBatch, Stream, collate_lines, cut, lines_of
from weft.tasks.running_text.data import Batching
from weft.text.vocabulary import EOS

TOKENS = 2048  # scored per step


def token_logp(
    model: Generator, stream: Stream, batching: Batching, *, length: int, stride: int = 0, rows: int = 1
) -> np.ndarray:
    """Log-probabilities [N] of the tokens of a text in nats, in their order.

    Args:
        model: in evaluation mode.
        stream: the text.
        batching: the context that a token is read in.
        length: of windows.
        stride: of windows; 0 for their length.
        rows: of a stream: parts that are read in parallel, each from an initial state; 1 is exact.
    """
    with torch.inference_mode():
        if batching == "stream":
            return _streamed(model, stream.tokens, rows)
        if batching == "windows":
            return _windowed(model, stream.tokens, length, stride or length)
        if batching == "lines":
            return _by_lines(model, list(lines_of(stream)), stride)
    raise ValueError(f"batching {batching!r}")


def _streamed(model: Generator, tokens: np.ndarray, rows: int) -> np.ndarray:
    found = [picked(model.head, h, target) for h, target in streamed(model, tokens, rows)]
    return np.concatenate(found, 1).reshape(-1)[: len(tokens) - 1]


def streamed(model: Generator, tokens: np.ndarray, rows: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The features [R, T, D] and targets [R, T] of a text, piece by piece, the state carried.

    Args:
        model: in evaluation mode.
        tokens: [1 + N].
        rows: R, parts that are read in parallel; the last one is padded.
    """
    count = len(tokens) - 1
    part = -(-count // rows)
    rows = -(-count // part)
    starts = np.arange(rows) * part
    padded = np.concatenate([tokens, np.zeros(rows * part - count, tokens.dtype)])
    state = None
    length = max(1, TOKENS // rows)
    for at in range(0, part, length):
        batch = cut(padded, starts + at, min(length, part - at)).to(_device(model))
        if state is None:
            state = model.start(batch.source, batch.source_mask)
        h, state = model.decoder(model.embed(batch.target_in), state)
        yield h, batch.target_out


def _windowed(model: Generator, tokens: np.ndarray, length: int, stride: int) -> np.ndarray:
    count = len(tokens) - 1
    length = min(length, count)
    first = token_rows(model, cut(tokens, np.zeros(1, int), length))[0]
    found = [first]
    # Window k ends after length + k stride tokens; the last one ends with the text and may score fewer.
    ends = np.arange(length + stride, count + stride, stride)
    ends = np.minimum(ends, count) if len(ends) else ends
    some = max(1, TOKENS // length)
    done = length
    for at in range(0, len(ends), some):
        part = ends[at : at + some]
        new = np.diff(part, prepend=done)
        logp = token_rows(model, cut(tokens, part - length, length))
        found += [row[length - n :] for row, n in zip(logp, new.tolist(), strict=True)]
        done = int(part[-1])
    return np.concatenate(found)


def too_long(model: Generator, lines: Sequence[np.ndarray]) -> list[int]:
    """The numbers of the lines for which a model has too few positions."""
    most = most_positions(model.decoder)
    return [] if most is None else [number for number, line in enumerate(lines) if len(line) >= most]


def _by_lines(model: Generator, lines: Sequence[np.ndarray], stride: int) -> np.ndarray:
    found: list[np.ndarray] = [np.zeros(0)] * len(lines)
    most, long = most_positions(model.decoder) or 0, too_long(model, lines)
    for number in long:
        found[number] = _windowed(
            model, np.array([EOS, *lines[number], EOS]), most, min(stride or most, most)
        )
    short = np.setdiff1d(np.arange(len(lines)), long).tolist()
    for chosen in filled_groups([len(lines[number]) + 1 for number in short], TOKENS):
        numbers = [short[place] for place in chosen]
        logp = token_rows(model, collate_lines([lines[number] for number in numbers]))
        for row, number in zip(logp, numbers, strict=True):
            found[number] = row[: len(lines[number]) + 1]
    return np.concatenate(found)


def token_rows(model: Generator, batch: ProseBatch) -> np.ndarray:
    """Log-probabilities [B, T] of the targets, each row from its start; padding is scored too."""
    batch = batch.to(_device(model))
    return picked(model.head, model.features(batch), batch.target_out)


def picked(head: Head, h: Tensor, target: Tensor) -> np.ndarray:
    """Log-probabilities [B, T] of targets [B, T] given features [B, T, D]."""
    logp: Tensor = head(h).gather(-1, target[..., None])[..., 0]
    found: np.ndarray = logp.double().cpu().numpy()
    return found


def _device(model: Generator) -> torch.device:
    return next(model.parameters()).device
