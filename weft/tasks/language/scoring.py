"""The log-probability of each token of a text in its context, also mixed with a neural cache and n-grams.

    stream   the state is carried through the whole text: a token sees everything before it
    windows  the last `stride` tokens of each window are scored, so that a token sees at least
             length - stride tokens before it; stride = length cuts the text into windows (as in nanoGPT)
    lines    a token sees its own line; one that is too long for the model is read in windows

Every signature names the context: a streamed network sees more than a window.

    p(w | u) = (1 - λ) [(1 - μ) p_neural(w | u) + μ p_cache(w | u)] + λ p_ngram(w | u)
    p_cache(w | h_t)  ∝  sum over i < t with w_i = w of  exp(sharpness h_t · h_i / √D)

All read the same tokens, so that their probabilities may be mixed token by token. The cache makes recent
words more probable, most of all after similar states of the network: h_i are the features from which the
network predicted token i, of the last `size` tokens. Nothing is trained.
Source: Mikolov et al. 2011, section 3, for the mixture; Grave, Joulin & Usunier 2017, "Improving neural
language models with a continuous cache", equations 2 and 5, for the cache; the √D is ours.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.data.batching import filled_groups
from weft.models import Generator
from weft.ngram.kneser_ney import kneser_ney
from weft.ngram.model import NGram
from weft.nn.heads.head import Head
from weft.nn.positions import most_positions
from weft.tasks.language.data import ProseBatch, Stream, collate_lines, cut, lines_of
from weft.tasks.running_text.base import Batching
from weft.text.vocabulary import EOS, PAD, SOS

TOKENS = 2048  # scored per step


def token_logp(
    model: Generator, stream: Stream, batching: Batching, *, length: int, stride: int = 0, rows: int = 1
) -> np.ndarray:
    """Log-probabilities [N] of the tokens of a text in nats, in their order."""
    with torch.inference_mode():
        if batching == "stream":
            found = [picked(model.head, h, target) for h, target in streamed(model, stream.tokens, rows)]
            return np.concatenate(found, 1).reshape(-1)[: stream.size]
        if batching == "windows":
            return _windowed(model, stream.tokens, length, stride or length)
        if batching == "lines":
            return _by_lines(model, list(lines_of(stream)), stride)
    raise ValueError(f"batching {batching!r}")


def streamed(model: Generator, tokens: np.ndarray, rows: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The features [R, T, D] and targets [R, T] of a text in R parts, piece by piece, the state carried."""
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


class Window(NamedTuple):
    """A stretch of a text that is read at once; its last `new` targets are wanted."""

    begin: int  # of the inputs
    end: int
    new: int


def windows(count: int, length: int, stride: int) -> Iterator[Window]:
    """The windows over so many targets; the last one ends with them, and may have fewer new ones."""
    length = min(length, count)
    done = 0
    while done < count:
        end = min(done + stride, count) if done else length
        yield Window(end - length, end, end - done)
        done = end


def _windowed(model: Generator, tokens: np.ndarray, length: int, stride: int) -> np.ndarray:
    count = len(tokens) - 1
    length = min(length, count)
    every, found = list(windows(count, length, stride)), []
    some = max(1, TOKENS // length)
    for at in range(0, len(every), some):
        part = every[at : at + some]
        logp = token_rows(model, cut(tokens, np.array([one.begin for one in part]), length))
        found += [row[length - one.new :] for row, one in zip(logp, part, strict=True)]
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


SHARPNESS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""The values that are tried; 0 counts the words and ignores the states."""

BLOCK = 512  # queries at a time


class Cache(NamedTuple):
    """The settings of a cache."""

    size: int  # tokens
    sharpness: float
    weight: float  # in the mixture with the network


class CacheMemory(NamedTuple):
    """What a cache holds while a text is read."""

    keys: Tensor  # [N, P, D] the features after each token of the text
    tokens: Tensor  # [N, P] those tokens

    @classmethod
    def of(cls, features: Tensor, tokens: Tensor, size: int) -> "CacheMemory":
        """The cache of so many tokens after a text: tokens [N, P], and features [N, P, D] after each."""
        # The newest features predict the next token, and the oldest token's own are not needed.
        return cls(features[:, -(size + 1) :], tokens[:, -(size + 1) :])

    def read(self, token: Tensor, h: Tensor, size: int) -> "CacheMemory":
        """The cache after another token [N], with the features [N, D] after it."""
        keys = torch.cat([self.keys.to(h.dtype), h[:, None]], 1)
        return self.of(keys, torch.cat([self.tokens, token[:, None]], 1), size)

    def mixed(self, logp: Tensor, cache: Cache) -> Tensor:
        """The network's log-probabilities [N, V] of the next token, mixed with the cache's."""
        if self.tokens.shape[1] < 2 or not cache.weight:
            return logp
        energies = _energies(self.keys[:, :-1], self.keys[:, -1, :, None])[..., 0]
        weights = (energies * cache.sharpness).softmax(1).to(logp.dtype)
        found = torch.zeros_like(logp).scatter_add_(1, self.tokens[:, 1:], weights).log()
        if cache.weight >= 1:
            return found
        return torch.logaddexp(logp + math.log1p(-cache.weight), found + math.log(cache.weight))


def cached_logp(
    model: Generator, stream: Stream, size: int, sharpness: Sequence[float] = SHARPNESS
) -> "MixtureParts":
    """Read a text once, with the network and the cache; for the first token that is the network's too."""
    neural, found = [], []
    keys = tokens = None
    with torch.inference_mode():
        for h, target in streamed(model, stream.tokens, 1):
            neural.append(picked(model.head, h, target))
            for at in range(0, h.shape[1], BLOCK):
                query, new = h[0, at : at + BLOCK], target[0, at : at + BLOCK]
                keys = query if keys is None else torch.cat([keys[-size:], query])
                tokens = new if tokens is None else torch.cat([tokens[-size:], new])
                found.append(_block(query, keys, tokens, size, sharpness))
    logp, cache = np.concatenate(neural, 1)[0], np.concatenate(found, 1)
    cache[:, 0] = logp[0]  # nothing to remember yet
    return MixtureParts(logp, cache=cache)


def _block(query: Tensor, keys: Tensor, tokens: Tensor, size: int, sharpness: Sequence[float]) -> np.ndarray:
    """Log-probabilities [K, T] of the last T of P tokens, from queries [T, D] and keys [P, D]."""
    count, last = len(keys), torch.arange(len(keys) - len(query), len(keys), device=keys.device)
    back = last[:, None] - torch.arange(count, device=keys.device)  # [T, P]
    hidden = (back < 1) | (back > size)
    same = tokens[last][:, None] == tokens
    energies = _energies(keys, query.mT).mT
    found = [
        ((energies * factor).masked_fill(hidden, -torch.inf).softmax(1) * same).sum(1).log()
        for factor in sharpness
    ]
    logp: np.ndarray = torch.stack(found).double().cpu().numpy()
    return logp


def _energies(keys: Tensor, query: Tensor) -> Tensor:
    """[.., P, T] from keys [.., P, D] and queries [.., D, T]."""
    wide = torch.promote_types(keys.dtype, torch.float32)
    return keys.to(wide) @ query.to(wide) / math.sqrt(keys.shape[-1])


STEPS = 40  # of a search that narrows an interval by 0.618 each
ROUNDS = 4  # in which the weights of the cache and of the n-grams are tuned in turn


class CountedNGrams(NamedTuple):
    """An n-gram model of the training text."""

    model: NGram
    bound: bool  # whether contexts end at line ends

    @property
    def name(self) -> str:
        """Such as "KN5, contexts within a line"."""
        reach = "within a line" if self.bound else "over line ends"
        guessed = ", some discounts guessed" if self.model.fallback else ""
        return f"KN{self.model.order}, contexts {reach}{guessed}"


def counted(train: Stream, *, size: int, kind: str, batching: Batching, order: int = 0) -> CountedNGrams:
    """The model of a training text."""
    bound = batching == "lines" or kind in ("space", "word")
    order = order or (7 if kind == "character" else 5)
    tokens = with_starts(train.tokens, bound=bound)
    return CountedNGrams(kneser_ney(tokens, size=size, order=order, start=SOS, never=(PAD,)), bound)


def with_starts(tokens: np.ndarray, *, bound: bool) -> np.ndarray:
    """Tokens with <s> where contexts begin: before each line, for the </s> before it, or at the front."""
    tokens = np.asarray(tokens, np.int64)
    if not bound:
        return np.concatenate([[SOS], np.where(tokens == SOS, EOS, tokens)])
    ends = tokens == EOS
    twice = np.repeat(tokens, np.where(ends, 2, 1))
    twice[np.cumsum(np.where(ends, 2, 1))[ends] - 1] = SOS
    return twice[1:-1] if ends[-1] else twice[1:]


def ngram_logp(counted: CountedNGrams, stream: Stream) -> np.ndarray:
    """Log-probabilities [N] of the tokens of a text, as `scoring.token_logp` gives them."""
    tokens = with_starts(stream.tokens, bound=counted.bound)
    found: np.ndarray = counted.model.score(tokens)[tokens != SOS]
    return found if counted.bound else found[1:]  # of the leading </s>


def mixed(neural: np.ndarray, ngram: np.ndarray, weight: float) -> np.ndarray:
    """Log-probabilities of the mixture; `weight` is that of the n-gram model."""
    with np.errstate(divide="ignore"):
        found: np.ndarray = np.logaddexp(neural + np.log1p(-weight), ngram + np.log(weight))
    return found


def tuned(neural: np.ndarray, ngram: np.ndarray) -> float:
    """The weight that maximises the likelihood of these tokens, by golden-section search."""
    low, high, ratio = 0.0, 1.0, (math.sqrt(5) - 1) / 2
    for _ in range(STEPS):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if mixed(neural, ngram, left).sum() >= mixed(neural, ngram, right).sum():
            high = right
        else:
            low = left
    return (low + high) / 2


class MixtureWeights(NamedTuple):
    """The weights of a mixture; those of parts that it does not have are 0."""

    ngram: float = 0.0
    cache: float = 0.0
    sharpness: float = 0.0


class MixtureParts(NamedTuple):
    """Log-probabilities of the same tokens under the parts of a mixture."""

    neural: np.ndarray  # [N]
    ngram: np.ndarray | None = None  # [N]
    cache: np.ndarray | None = None  # [K, N], a row for each of SHARPNESS

    def part(self, some: slice) -> "MixtureParts":
        """Those of some tokens."""
        return MixtureParts(*(None if one is None else one[..., some] for one in self))  # type: ignore[arg-type]

    def mixed(self, weights: MixtureWeights) -> np.ndarray:
        """Log-probabilities [N] of the mixture."""
        found = self.neural
        if self.cache is not None:
            found = mixed(found, self.cache[SHARPNESS.index(weights.sharpness)], weights.cache)
        return found if self.ngram is None else mixed(found, self.ngram, weights.ngram)

    def tuned(self, ngram: float | None = None) -> MixtureWeights:
        """The weights that maximise the likelihood of these tokens."""
        if self.cache is None:
            return MixtureWeights(self._ngram(self.neural, ngram))
        found = []
        for sharpness, cache in zip(SHARPNESS, self.cache, strict=True):
            share, weight = 0.0 if ngram is None else ngram, 0.0
            for _ in range(ROUNDS if ngram is None and self.ngram is not None else 1):
                with_ngram = (self.neural, cache)
                if self.ngram is not None:
                    with_ngram = tuple(mixed(one, self.ngram, share) for one in with_ngram)  # type: ignore[assignment]
                weight = tuned(*with_ngram)
                share = self._ngram(mixed(self.neural, cache, weight), ngram)
            found.append(MixtureWeights(share, weight, sharpness))
        return max(found, key=lambda weights: float(self.mixed(weights).sum()))

    def _ngram(self, other: np.ndarray, given: float | None) -> float:
        if self.ngram is None:
            return 0.0
        return tuned(other, self.ngram) if given is None else given


def halves(
    parts: MixtureParts, ngram: float | None = None
) -> tuple[np.ndarray, tuple[MixtureWeights, MixtureWeights]]:
    """Mix each half of a text with the weights tuned on the other half, and give both weights."""
    cut = len(parts.neural) // 2
    first, second = parts.part(slice(cut)), parts.part(slice(cut, None))
    weights = second.tuned(ngram), first.tuned(ngram)
    return np.concatenate([first.mixed(weights[0]), second.mixed(weights[1])]), weights
