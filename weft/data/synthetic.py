"""Filter back-translated pairs: which ones a training can use.

A human-written text and its machine translation become a pair with the text as target. Pairs that look wrong
are left out: without a translation, with two equal sides, with an unusual length ratio, or improbable to the
model itself. Read next: ../commands/backtranslate.py; check.py, which finds such pairs in parallel text.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import exp, inf, isnan, log, nan
from statistics import median
from typing import NamedTuple

LONG = 30
"""Lengths are compared if the longer side has at least this many characters; shorter ones vary by chance."""

KEPT, EMPTY, SAME, RATIO, SCORE, SHARE = range(-1, 5)


class PairLimits(NamedTuple):
    """Which pairs to keep."""

    least: float = -inf  # minimum score: log-probability divided by length, in nats
    share: float = 1.0  # of the remaining pairs, the best by score
    ratio: float = inf  # largest factor between a pair's length ratio and the median

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a pair is left out: EMPTY, SAME, RATIO, SCORE, SHARE."""
        return (
            "without a translation",
            "with a translation equal to the text",
            "with an unusual length ratio",
            f"with a score below {self.least:g}",
            f"not among the best {100 * self.share:g} %",
        )


class PairVerdicts(NamedTuple):
    """Which pairs are kept."""

    reasons: Sequence[int]  # of each pair: index into PairLimits.reasons, or KEPT
    usual: float  # median length ratio: characters of the translation / of its text
    lowest: float  # lowest score of a kept pair; inf if none is kept
    limits: PairLimits

    @property
    def kept(self) -> int:
        """Number of kept pairs."""
        return sum(reason == KEPT for reason in self.reasons)

    @property
    def dropped(self) -> dict[str, int]:
        """Number of pairs left out, by reason."""
        counts = Counter(self.reasons)
        return {name: counts[number] for number, name in enumerate(self.limits.reasons) if counts[number]}


def scored(line: str) -> tuple[float, str]:
    r"""The score and the text of a line of `weft predict --scores`."""
    score, _, text = line.partition("\t")
    return (float(score), text.strip()) if text.strip() else (-inf, "")


def judged(texts: Iterable[str], lines: Iterable[str], limits: PairLimits) -> PairVerdicts:
    r"""Judge all pairs; memory use is about 20 bytes per pair."""
    scores, ratios, reasons = array("d"), array("d"), array("b")
    for text, line in zip(texts, lines, strict=True):
        score, said = scored(line)
        long = said and max(len(text), len(said)) >= LONG
        scores.append(score)
        ratios.append(log(len(said) / len(text)) if long else nan)
        same = said == text and any(map(str.isalpha, said))
        reasons.append(EMPTY if not said else SAME if same else KEPT)
    known = [ratio for ratio in ratios if not isnan(ratio)]
    usual = median(known) if known else 0.0
    for place, reason in enumerate(reasons):
        if reason == KEPT and abs(ratios[place] - usual) > log(limits.ratio):  # never true of nan
            reasons[place] = RATIO
        elif reason == KEPT and scores[place] < limits.least:
            reasons[place] = SCORE
    left = [place for place, reason in enumerate(reasons) if reason == KEPT]
    best = sorted(left, key=lambda place: -scores[place])
    for place in best[round(limits.share * len(best)) :]:
        reasons[place] = SHARE
    lowest = min((scores[place] for place in left if reasons[place] == KEPT), default=inf)
    return PairVerdicts(reasons, exp(usual), lowest, limits)


def pairs(
    texts: Iterable[str], lines: Iterable[str], found: PairVerdicts, tag: str = ""
) -> Iterator[tuple[str, str]]:
    """The kept pairs: the tag with the model's translation, and the text."""
    for text, line, reason in zip(texts, lines, found.reasons, strict=True):
        if reason == KEPT:
            yield f"{tag} {scored(line)[1]}".strip(), text
