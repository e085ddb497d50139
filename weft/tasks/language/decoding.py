"""How a language model continues a text: the section `decoding`, and the model as the search sees it.

Three things are added to the model's own step. A model that reads windows of limited length forgets the older
half when its window is full, and a cache and an n-gram model may be mixed in. Each keeps what it needs in the
state. `expected` says how much each token of a row was expected, and which tokens were likelier; scoring.py
computes the same log-probabilities without alternatives, for texts of any length.
Read next: predictor.py; ../../search/step.py.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from weft.data.batching import filled_groups
from weft.errors import ConfigError
from weft.models import Generator
from weft.native import WholeStep
from weft.search.offered import (
    EVERY,
    GRAPHS,
    BatchRows,
    Offer,
    OneOrMore,
    SearchSettings,
    TokenCount,
    options,
    setting,
)
from weft.setting_types import Probability, Whole
from weft.tasks.language.data import ProseBatch
from weft.tasks.language.scoring import Cache, CacheMemory, CountedNGrams, Window, windows
from weft.tasks.seq2seq.batch_search import pad
from weft.tasks.task import ScoredSettings
from weft.text.vocabulary import EOS, SOS
from weft.tree import State, fan


@dataclass(frozen=True, kw_only=True)
class LanguageDecoding(SearchSettings):
    """How a text is continued, and how it is scored: a recipe's section `decoding`."""

    search: Literal["sample", "greedy", "beam"] = setting("sample", "sample, greedy or beam.", programs=EVERY)
    batch_rows: BatchRows = setting(32, "Lines written at once.", programs=EVERY)
    max_tokens: TokenCount = setting(
        100, "Maximum number of tokens written; 0 writes nothing.", programs=EVERY
    )
    max_lines: OneOrMore = setting(
        1,
        "Line ends after which writing stops, if max_tokens does not end it before.",
        programs={**GRAPHS, "ctranslate2": (1,), "huggingface": (1,)},
    )
    stop: tuple[str, ...] = setting((), "Texts before which writing stops.", programs=GRAPHS)
    mixture: Probability | Literal["tuned"] = setting(
        0.0,
        'Weight of an n-gram model of the training text next to the neural one, 0 to 1, or "tuned" on the '
        "validation text (each of its halves is scored with the weight tuned on the other).",
    )
    order: Whole = setting(
        0,
        "Order of the n-grams; 0 takes 7 for characters and 5 otherwise.",
        programs=EVERY,  # of mixture alone, which they refuse
    )
    cache: Whole = setting(
        0,
        "Mix in a cache of the last so many tokens, which makes repeated words more probable.",
        more="Its weight is tuned on the validation text, as with `mixture: tuned`. Needs data.batches: "
        "stream. 500 to 2000 is usual; 0 for none (scoring.py).",
    )
    stride: Whole = setting(
        0,
        "Stride of windows, when a text is scored; 0 takes their length. A smaller one gives more context.",
        programs=EVERY,
    )

    @property
    def ngram_weight(self) -> float | None:
        """The given weight of the n-grams; None if it is tuned."""
        return None if self.mixture == "tuned" else float(self.mixture)

    @property
    def tuned(self) -> bool:
        """Whether weights of a mixture are tuned on the validation text."""
        return self.ngram_weight is None or self.cache > 0

    def with_settings(self, asked: Mapping[str, Any]) -> "LanguageDecoding":
        found = super().with_settings(asked)
        if found.search != "beam" and "length_penalty" in asked:
            raise ConfigError(f"length_penalty: applies to beam search, but the search is {found.search}")
        return found


@dataclass(frozen=True, kw_only=True)
class ProseSettings(ScoredSettings):
    """What the user asks of continuations; scores are log-probabilities per token."""

    asks: ClassVar[Mapping[str, Offer]] = options(LanguageDecoding)


NONE = -1


class MixedModel(NamedTuple):
    """What is mixed into a model's probabilities."""

    counted: CountedNGrams | None  # an n-gram model
    weight: float  # of the n-gram model
    cache: Cache | None = None


class TextRows(NamedTuple):
    """How many texts are continued; a beam has several hypotheses for each."""

    rows: Tensor  # [B]
    per_source = True


class ReaderState(NamedTuple):
    """The state between steps."""

    inner: State  # the model's
    past: Tensor | None  # [N, P] the tokens read so far, if the model reads windows
    recent: Tensor | None  # [N, n-1] the newest tokens for the n-grams, NONE before a line or text
    texts: TextRows
    cache: CacheMemory | None = None  # of the tokens before the newest one


class StepReader:
    """A model as `start` and `step`; when its window is full, the older half is forgotten."""

    def __init__(self, model: Generator, window: int | None = None, mixed: MixedModel | None = None) -> None:
        self.model = model
        self.window = window  # maximum number of tokens that it can read; None for no limit
        self.mixed = mixed
        self.ngrams = None if mixed is None else mixed.counted
        self.cache = None if mixed is None else mixed.cache

    def start(self, rows: Sequence[Sequence[int]]) -> tuple[ReaderState, Tensor]:
        """The state after texts of equal length without their last token, and that token."""
        device = next(self.model.parameters()).device
        tokens = torch.tensor(rows, device=device)
        past, first = tokens[:, :-1], tokens[:, -1]
        if self.window is not None:
            past = past[:, -(self.window - 1) :] if self.window > 1 else past[:, :0]
        recent = None
        if self.ngrams is not None:
            recent = torch.tensor([self.recent(row[:-1]) for row in rows], device=device)
        texts = TextRows(first.new_zeros(len(rows)))
        kept = past if self.window is not None else None
        inner, h = self._read(past, len(rows))
        cache = None if self.cache is None else CacheMemory.of(h, past, self.cache.size)
        return ReaderState(inner, kept, recent, texts, cache), first

    def step(self, token: Tensor, state: ReaderState) -> tuple[Tensor, ReaderState]:
        """Log-probabilities [N, V] of the next token, and the next state."""
        inner, past, recent, texts, cache = state
        if past is not None and self.window is not None:
            if past.shape[1] >= self.window:
                past = past[:, past.shape[1] - self.window // 2 :]
                inner, _ = self._read(past, texts.rows.shape[0])
            past = torch.cat([past, token[:, None]], 1)
        if cache is None or self.cache is None:
            logp, inner = self.model.step(token, inner)
        else:
            h, inner = self.model.decoder(self.model.embed(token[:, None]), inner)
            cache = cache.read(token, h[:, 0], self.cache.size)
            logp = cache.mixed(self.model.head(h[:, 0]), self.cache)
        if recent is not None:
            recent = self._newer(recent, token)
            logp = self.with_ngrams(logp, recent)
        return logp, ReaderState(inner, past, recent, texts, cache)

    def fixed(self, state: ReaderState, width: int, steps: int) -> tuple[ReaderState, int] | None:
        """As of the model, where it is plain; see search/captured.py."""
        found = self.model.fixed(state.inner, width, steps) if self._is_plain(state, steps) else None
        return None if found is None else (state._replace(inner=found[0], past=None), found[1])

    def whole_step(self, state: ReaderState, width: int, steps: int) -> WholeStep | None:
        """The model's own, where it is plain; see search/compiled.py."""
        return self.model.whole_step(state.inner, width, steps) if self._is_plain(state, steps) else None

    def _is_plain(self, state: ReaderState, steps: int) -> bool:
        """Whether nothing is forgotten or mixed in during these steps."""
        full = state.past is not None and state.past.shape[1] + steps > (self.window or 0)
        return not full and self.mixed is None

    def recent(self, row: Sequence[int]) -> list[int]:
        """The newest tokens of a row as the n-grams' context."""
        assert self.ngrams is not None
        size = max(1, self.ngrams.model.order - 1)
        if self.ngrams.bound and EOS in row:
            row = [SOS, *row[len(row) - list(row)[::-1].index(EOS) :]]
        kept = list(row[-size:])
        return [NONE] * (size - len(kept)) + kept

    def with_ngrams(self, logp: Tensor, recent: Tensor) -> Tensor:
        """Log-probabilities [N, V], mixed with the n-grams' after `recent` [N, n-1]."""
        assert self.mixed is not None and self.ngrams is not None
        model, weight = self.ngrams.model, self.mixed.weight
        if not weight:
            return logp
        rows = recent[:, recent.shape[1] - (model.order - 1) :] if model.order > 1 else recent[:, :0]
        other = torch.from_numpy(model.distribution(rows.cpu().numpy())).to(logp)
        if weight >= 1:
            return other
        return torch.logaddexp(logp + math.log1p(-weight), other + math.log(weight))

    def _read(self, past: Tensor, texts: int) -> tuple[State, Tensor]:
        """The state after tokens [N, P], N / `texts` hypotheses of each text, and the features [N, P, D]."""
        mask = torch.ones(texts, 1, dtype=torch.bool, device=past.device)
        state = fan(self.model.start(past, mask), len(past) // texts)
        h = next(self.model.parameters()).new_zeros(len(past), 0, self.model.decoder.size)
        if past.shape[1]:
            h, state = self.model.decoder(self.model.embed(past), state)
        return state, h

    def _newer(self, recent: Tensor, token: Tensor) -> Tensor:
        newer = torch.cat([recent[:, 1:], token[:, None]], 1)
        if self.ngrams is not None and self.ngrams.bound:
            fresh = torch.full_like(newer, NONE)
            fresh[:, -1] = SOS
            newer = torch.where((token == EOS)[:, None], fresh, newer)
        return newer


READ = 2048
"""Tokens read per step."""

SPREAD = 512
"""Positions whose distribution over the vocabulary is held at once."""


class ExpectedToken(NamedTuple):
    """A token, given those before it."""

    token: int
    logp: float  # nats
    best: list[tuple[int, float]]  # the likeliest tokens in its place and their log-probabilities, best first


def expected(
    reader: StepReader, rows: Sequence[Sequence[int]], k: int, *, stride: int = 0
) -> list[list[ExpectedToken]]:
    """For each row, its tokens after the first."""
    longest = max(map(len, rows), default=0) if reader.window is None else reader.window
    parts = [
        (number, part)
        for number, row in enumerate(rows)
        for part in windows(len(row) - 1, longest, stride or longest)
    ]
    found: dict[tuple[int, int], ExpectedToken] = {}
    lengths = [part.end - part.begin for _, part in parts]
    with torch.inference_mode():
        for chosen in filled_groups(lengths, READ) if parts else ():
            found |= _read(reader, rows, [parts[number] for number in chosen], k)
    return [[found[number, place] for place in range(1, len(row))] for number, row in enumerate(rows)]


def _read(
    reader: StepReader, rows: Sequence[Sequence[int]], parts: Sequence[tuple[int, Window]], k: int
) -> dict[tuple[int, int], ExpectedToken]:
    model = reader.model
    device = next(model.parameters()).device
    before, mask = pad([rows[row][part.begin : part.end] for row, part in parts])
    after, _ = pad([rows[row][part.begin + 1 : part.end + 1] for row, part in parts])
    h = model.features(ProseBatch(before, after, mask, int(mask.sum())).to(device))  # [B, T, D]
    new = [
        (number, place)
        for number, (_, part) in enumerate(parts)
        for place in range(part.end - part.begin - part.new, part.end - part.begin)
    ]
    hidden = {row: h[number] for number, (row, _) in enumerate(parts)} if reader.cache else {}
    wanted = h[[number for number, _ in new], [place for _, place in new]]  # [P, D]
    targets = [(parts[number][0], parts[number][1].begin + place + 1) for number, place in new]
    found: dict[tuple[int, int], ExpectedToken] = {}
    for at in range(0, len(targets), SPREAD):
        here = targets[at : at + SPREAD]
        logp = _mixed(reader, model.head(wanted[at : at + SPREAD]), rows, here, hidden)  # [P, V]
        tokens = [rows[row][place] for row, place in here]
        own = logp.gather(1, torch.tensor(tokens, device=device)[:, None])[:, 0].tolist()
        values, numbers = (one.tolist() for one in logp.topk(min(k, logp.shape[1])))
        for target, token, value, best in zip(here, tokens, own, map(zip, numbers, values), strict=True):
            found[target] = ExpectedToken(token, value, list(best))
    return found


def _mixed(
    reader: StepReader,
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
            past = CacheMemory.of(hidden[row][None, :place], tokens, reader.cache.size)
            found.append(past.mixed(one[None], reader.cache))
        logp = torch.cat(found)
    if reader.ngrams is None:
        return logp
    recent = torch.tensor([reader.recent(rows[row][:place]) for row, place in targets], device=logp.device)
    return reader.with_ngrams(logp, recent)
