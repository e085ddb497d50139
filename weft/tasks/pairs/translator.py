"""A trained model at work: lines in, the same number of translations out, in order.

Read next: ../search/beam.py for how a translation is found; ../inspect/alignment.py for where it looked.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np
import torch

from weft.errors import ConfigError
from weft.models import Generator
from weft.probe import probe
from weft.search.beam import beam
from weft.search.greedy import greedy
from weft.search.hypotheses import Hypotheses, to_lists
from weft.search.sampling import sample
from weft.search.trace import Trace
from weft.tasks.pairs.batch import collate_pairs, pad
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary

WINDOW = 2048  # lines that are sorted by length together
_LEAST = {
    "beam": 1,
    "nbest": 1,
    "batch_rows": 1,
    "length_penalty": 0,
    "max_ratio": 0,
    "max_extra": 1,
    "top_k": 0,
    "seed": 0,
}


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How a translation is searched: a recipe's section `decoding`.

    Args:
        search: beam, greedy or sample.
        beam: hypotheses kept; 1 is greedy.
        nbest: translations returned a line.
        length_penalty: a hypothesis's log-probability is divided by its length to this power; 0 favours
            short ones.
        max_ratio, max_extra: at most max_ratio * (source tokens) + max_extra tokens are written.
        temperature, top_k, top_p: of sampling; top_k 0 and top_p 1 leave every token in.
        seed: of sampling.
        batch_rows: sources decoded at once.
    """

    search: Literal["beam", "greedy", "sample"] = "beam"
    beam: int = 5
    nbest: int = 1
    length_penalty: float = 1.0
    max_ratio: float = 2.0
    max_extra: int = 10
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1
    batch_rows: int = 64

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not least <= value < math.inf:
                raise ConfigError(f"{name}: {value} came, at least {least} is needed")
        if not 0 < self.temperature < math.inf:
            raise ConfigError(f"temperature: {self.temperature} came, a number above 0 is needed")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p: {self.top_p} came, a number above 0 and at most 1 is needed")
        if self.search == "beam" and self.nbest > self.beam:
            raise ConfigError(
                f"nbest: {self.nbest} translations of a beam of {self.beam} were asked for; "
                f"raise beam to {self.nbest}"
            )
        if self.search == "greedy" and self.nbest > 1:
            raise ConfigError(
                f"nbest: greedy search gives 1 translation, {self.nbest} were asked for; use beam"
            )

    def describe(self) -> str:
        """For signatures, such as "beam 5, length penalty 1.0"."""
        if self.search == "greedy" or (self.search == "beam" and self.beam == 1):
            return "greedy"
        if self.search == "beam":
            return f"beam {self.beam}, length penalty {self.length_penalty:g}"
        return f"sampled, temperature {self.temperature:g}, top_k {self.top_k}, top_p {self.top_p:g}"


class Translation(NamedTuple):
    """One hypothesis for one line."""

    text: str
    score: float  # log-probability normalised by length, what hypotheses are ranked by
    logp: float  # nats
    tokens: list[int]


class Alignment(NamedTuple):
    """Where a translation looked."""

    weights: np.ndarray  # [T, S] attention for each target token over the source tokens
    source: list[int]
    target: list[int]
    shown: str  # which attention this is


class Translator:
    """Searches translations with a model and its vocabularies.

    Args:
        model: in evaluation mode, on its device.
        source, target: the vocabularies.
        decoding: how to search.
    """

    def __init__(self, model: Generator, source: Vocabulary, target: Vocabulary, decoding: Decoding) -> None:
        self.model = model
        self.source = source
        self.target = target
        self.decoding = decoding

    def translate(self, lines: Iterable[str]) -> Iterator[list[Translation]]:
        """For each line, in order, its n best translations; an empty line gives as many empty ones."""
        return (found for _, found in self.pairs(lines))

    def pairs(self, lines: Iterable[str], *, window: int = WINDOW) -> Iterator[tuple[str, list[Translation]]]:
        """Each line with its translations.

        Args:
            lines: read `window` at a time, so that a stream of any length takes the same memory; those of
                a window are sorted by length and decoded in batches.
            window: 1 answers each line at once.
        """
        lines = iter(lines)
        chance = torch.Generator(self._device).manual_seed(self.decoding.seed)
        while read := list(islice(lines, window)):
            yield from zip(read, self._window(self.source.encode_batch(read), chance), strict=True)

    def predict(self, text: str) -> str:
        """The best translation of one sentence; `pairs` and `translate` take many."""
        if not isinstance(text, str):
            raise TypeError(f"one text is needed, {type(text).__name__} came; for many: pairs(lines)")
        return next(self.translate([text]))[0].text

    def align(self, source: Sequence[int], target: Sequence[int]) -> Alignment:
        """What the attention did while this target was written.

        Raises:
            ConfigError: the model has no attention.
        """
        batch = collate_pairs([list(source)], [list(target)]).to(self._device)
        with torch.no_grad(), probe() as seen:
            self.model.features(batch)
        if seen["attention"]:
            parts = [part for part in seen["attention"] if part.shape[2] == batch.source.shape[1]]
            weights, shown = torch.cat(parts, 1), "attention"
        elif seen["cross_attention"]:
            layers = seen["cross_attention"]
            layer = max(0, len(layers) - 2)  # Garg et al. 2019: the last layer but one aligns best
            weights = layers[layer].mean(1)
            shown = f"layer {layer + 1} of {len(layers)}, mean of {layers[layer].shape[1]} heads"
        else:
            raise ConfigError(
                "this model has no attention, so there is no alignment to show; "
                "leave that out, or train one whose decoder looks back"
            )
        rows = len(target) + 1
        return Alignment(weights[0, :rows].float().cpu().numpy(), list(source), [*target, EOS], shown)

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _window(self, sources: list[list[int]], chance: torch.Generator) -> list[list[Translation]]:
        nothing = [Translation("", 0.0, 0.0, [])] * self.decoding.nbest
        results: list[list[Translation]] = [nothing for _ in sources]
        order = sorted((n for n, source in enumerate(sources) if source), key=lambda n: -len(sources[n]))
        rows = self.decoding.batch_rows
        for at in range(0, len(order), rows):
            numbers = order[at : at + rows]
            found = self.search([sources[n] for n in numbers], chance=chance)
            texts = to_lists(found, EOS)
            for row, number in enumerate(numbers):
                results[number] = [
                    Translation(
                        self.target.decode(tokens),
                        float(found.score[row, k]),
                        float(found.logp[row, k]),
                        tokens,
                    )
                    for k, tokens in enumerate(texts[row])
                ]
        return results

    def search(
        self,
        sources: Sequence[Sequence[int]],
        trace: Trace | None = None,
        chance: torch.Generator | None = None,
    ) -> Hypotheses:
        """Token sequences for a batch of sources, none of them empty.

        Args:
            sources: tokens.
            trace: records a beam search.
            chance: of sampling; begins with the seed unless given.
        """
        how = self.decoding
        tokens, mask = pad([list(source) for source in sources])
        tokens, mask = tokens.to(self._device), mask.to(self._device)
        limits = torch.tensor([math.ceil(how.max_ratio * len(s)) + how.max_extra for s in sources])
        first = torch.full((len(sources),), SOS, device=self._device)
        banned = (PAD, UNK, SOS)
        with torch.inference_mode():
            state = self.model.start(tokens, mask)
            step = self.model.step
            limits = limits.to(self._device)
            if how.search == "greedy":
                return self._ranked(greedy(step, state, first, eos=EOS, max_length=limits, banned=banned))
            if how.search == "beam":
                return beam(
                    step,
                    state,
                    first,
                    eos=EOS,
                    max_length=limits,
                    width=how.beam,
                    nbest=how.nbest,
                    length_penalty=how.length_penalty,
                    banned=banned,
                    trace=trace,
                )
            drawn = sample(
                step,
                state,
                first,
                eos=EOS,
                max_length=limits,
                temperature=how.temperature,
                top_k=how.top_k or None,
                top_p=how.top_p if how.top_p < 1 else None,
                count=how.nbest,
                banned=banned,
                generator=chance or torch.Generator(self._device).manual_seed(how.seed),
            )
            return self._ranked(drawn)

    def _ranked(self, found: Hypotheses) -> Hypotheses:
        """With the scores that a beam search would give; only that divides by length by itself."""
        lengths = found.lengths.clamp(min=1).to(found.logp.dtype)
        return found._replace(score=found.logp / lengths**self.decoding.length_penalty)
