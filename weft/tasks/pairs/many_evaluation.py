"""How good one model is on each of its pairs, and on pairs that it never saw."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from weft.metrics.floor import beside
from weft.tasks.pairs.evaluation import PairEvaluation


class ManyEvaluation(NamedTuple):
    """The evaluations of all pairs, trained ones first."""

    pairs: Mapping[str, PairEvaluation]
    unseen: Sequence[str]  # those that were never trained

    @property
    def outputs(self) -> list[str]:
        """Pair, tab, translation, a line each."""
        return [f"{pair}\t{line}" for pair, one in self.pairs.items() for line in one.outputs]

    @property
    def mean(self) -> float:
        """Mean BLEU of the trained pairs."""
        seen = [one.scores[0].value for pair, one in self.pairs.items() if pair not in self.unseen]
        return sum(seen) / len(seen)

    def text(self) -> str:
        """A table, and the signatures below it."""
        lines = [f"{'pair':<8}{'BLEU':>8}{'95 %':>16}{'chrF':>8}{'perplexity':>12}{'copying':>9}"]
        for pair, one in self.pairs.items():
            bleu, chrf = one.scores[0], one.scores[1]
            low, high = bleu.low or bleu.value, bleu.high or bleu.value
            copied = one.floors[0].bleu
            told = "  never trained (zero-shot)" if pair in self.unseen else ""
            told += f"  {one.left_out:,} pairs with an empty side left out" if one.left_out else ""
            told += beside(bleu.value, copied).replace("this floor", "the floor (source copied)")
            lines.append(
                f"{pair:<8}{bleu.value:>8.2f}{f'{low:.2f}-{high:.2f}':>16}{chrf.value:>8.2f}"
                f"{one.perplexity:>12.2f}{copied:>9.2f}{told}"
            )
        first = next(iter(self.pairs.values()))
        lines.append(f"mean BLEU of the {len(self.pairs) - len(self.unseen)} trained pairs: {self.mean:.2f}")
        lines.append(
            f"  {first.title.split(',')[-2].strip()}, {first.title.split(',')[-1].strip()} (each pair alike)"
        )
        lines += [f"  {score.name}: {score.signature}" for score in first.scores[:2]]
        return "\n".join(lines)

    def json(self) -> str:
        """For a program."""
        every = {pair: json.loads(one.json()) for pair, one in self.pairs.items()}
        return (
            json.dumps({"pairs": every, "unseen": list(self.unseen), "mean_bleu": self.mean}, indent=1) + "\n"
        )
