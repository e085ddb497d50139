"""Compares an exported Transformer with Weft: probabilities of the same texts, and what both write.

The texts are those of the run's validation data, or random pieces where it is missing.
Read next: network.py; formats/ctranslate2.py, which calls it.
"""

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice, zip_longest
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from weft.errors import DataError, ExportError
from weft.export.network import TransformerNetwork
from weft.run import LoadedRun
from weft.search.offered import SearchSettings
from weft.tasks.export import random_texts
from weft.tasks.running_text.base import ProseData
from weft.tasks.seq2seq.base import PairPipeline
from weft.text.vocabulary import EOS

COUNT = 20
"""Texts on which an export is compared with Weft."""

TIE = 1e-3
"""Nats: two tokens whose log-probabilities differ by less may change places by rounding."""


class ExportedModel(Protocol):
    """The exported model, run by its own program."""

    def search(self, row: Sequence[int], how: SearchSettings, limit: int) -> list[int]:
        """The tokens written for a row, without the end; see Network.search."""

    def logp(self, rows: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Tensor]:
        """For each target, computed in one batch: log-probabilities [T + 1, V], or [T + 1] of its tokens."""


class Agreement(NamedTuple):
    """How an export compares with Weft."""

    texts: int
    nats: float  # the largest difference of a log-probability
    greedy: int  # texts on which greedy outputs are equal
    own: int | None  # texts on which the outputs of the run's own search are equal; None if it samples
    cut: int  # texts of the others on which an output has the maximum length
    outputs: list[list[int]]  # the export's, greedy
    expected: list[list[int]]  # Weft's, greedy

    def lines(self, how: SearchSettings) -> list[str]:
        """Two lines for the report of an export; `how` is the run's search."""
        found = f"equal outputs: greedy {self.greedy} of {self.texts}"
        if self.own is not None and how.width() > 1:
            cut = f", {self.cut} of the others cut at the maximum length" if self.cut else ""
            found += f", beam {how.width()}: {self.own} of {self.texts}{cut}"
        return [
            f"log-probabilities of {self.texts} texts in one batch: at most {self.nats:.1e} nats from Weft's",
            found,
        ]


def compare(
    network: TransformerNetwork, texts: Sequence[str], other: ExportedModel, *, exact: bool = True
) -> Agreement:
    """Run both programs on the same texts."""
    rows = [row[: network.length // 2] for row in network.encode(texts) if row][:COUNT]
    limits = [min(2 * len(row) + 10, network.length - 1 - len(row)) for row in rows]
    plain, how = SearchSettings(search="greedy"), network.how
    pairs = list(zip(rows, limits, strict=True))
    expected = [network.search(row, plain, limit) for row, limit in pairs]
    outputs = [other.search(row, plain, limit) for row, limit in pairs]
    nats = _largest(network, rows, expected, other)
    if exact and nats > TIE:
        raise ExportError(
            f"the exported model's log-probabilities differ from Weft's by {nats:.1e} nats, expected at most "
            f"{TIE}; please report this run's recipe"
        )
    if exact:
        for row, ours, theirs in zip(rows, expected, outputs, strict=True):
            _check_tie(network, row, ours, theirs)
    equal = cut = 0
    for row, limit in pairs if how.search != "sample" else ():
        ours, theirs = network.search(row, how, limit), other.search(row, how, limit)
        equal += ours == theirs
        cut += ours != theirs and limit in (len(ours), len(theirs))
    same = sum(ours == theirs for ours, theirs in zip(expected, outputs, strict=True))
    own = None if how.search == "sample" else equal
    return Agreement(len(rows), nats, same, own, cut, outputs, expected)


def _largest(
    network: TransformerNetwork,
    rows: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    other: ExportedModel,
) -> float:
    """The largest difference of a log-probability, in nats."""
    most = 0.0
    for row, target, theirs in zip(rows, targets, other.logp(rows, targets), strict=True):
        ours = network.logp(row, target)
        if theirs.dim() == 1:
            ours = ours.gather(1, torch.tensor([*target, EOS])[:, None])[:, 0]
        most = max(most, float((ours - theirs).abs().max()))
    return most


def _check_tie(
    network: TransformerNetwork, row: Sequence[int], ours: Sequence[int], theirs: Sequence[int]
) -> None:
    """Where greedy outputs part, the two tokens must be equally probable."""
    if list(ours) == list(theirs):
        return
    place = next(n for n, pair in enumerate(zip_longest(ours, theirs)) if pair[0] != pair[1])
    logp = network.logp(row, ours)[place]
    here, there = (side[place] if place < len(side) else EOS for side in (ours, theirs))
    if float(logp[here] - logp[there]) > TIE:
        raise ExportError(
            f"the exported model writes token {there} where Weft writes {here}, which is "
            f"{float(logp[here] - logp[there]):.1e} nats more probable; please report this run's recipe"
        )


def sources(opened: LoadedRun) -> list[str]:
    """Texts that the model translates, continues or fills."""
    pipeline: Any = opened.pipeline
    if isinstance(pipeline, PairPipeline):
        return list(pipeline.examples(COUNT))
    data = getattr(opened.task, "data", None)
    if isinstance(data, ProseData):
        with suppress(DataError):
            lines = [line for line in islice(data.open("valid"), 10 * COUNT) if line.strip()]
            if lines:  # the beginning of a line, to be continued
                return [line[: len(line) // 2 + 1] for line in lines[:COUNT]]
    return random_texts(pipeline.vocabulary, COUNT, 3)
