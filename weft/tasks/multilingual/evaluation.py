"""How good one model is on each of its pairs, and on pairs that it never saw."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from weft.metrics.baseline import beside
from weft.metrics.bootstrap import mean_with_interval
from weft.metrics.scored import Scored, as_json, report
from weft.tasks.shared.writing.evaluation import COPIED, PairEvaluation


class ManyEvaluation(NamedTuple):
    """The evaluations of all pairs, trained ones first."""

    pairs: Mapping[str, PairEvaluation]
    unseen: Sequence[str]  # those that were never trained

    @property
    def outputs(self) -> list[str]:
        """Pair, tab, translation, a line each."""
        return [f"{pair}\t{line}" for pair, one in self.pairs.items() for line in one.outputs]

    @property
    def trained(self) -> list[PairEvaluation]:
        """Those of trained pairs."""
        return [one for pair, one in self.pairs.items() if pair not in self.unseen]

    @property
    def mean(self) -> Scored:
        """Mean BLEU of the trained pairs."""
        bleus = [one.scored[0] for one in self.trained]
        rows = [one.statistics for one in bleus if one.statistics is not None]
        assert bleus[0].metric is not None
        lowest = {
            name: sum(one.baselines[name] for one in bleus) / len(bleus)
            for name in bleus[0].baselines
            if all(name in one.baselines for one in bleus)
        }
        return Scored(mean_with_interval(bleus[0].metric, rows), lowest).renamed(
            f"mean BLEU of the {len(bleus)} trained pairs"
        )

    @property
    def scored(self) -> list[Scored]:
        """The mean, and every score of every pair."""
        every = [
            score.renamed(f"{pair} {score.score.name}")
            for pair, one in self.pairs.items()
            for score in one.scored
        ]
        return [self.mean, *every]

    def text(self) -> str:
        """The mean and a table of BLEU, and every score of every pair below it."""
        lines = [*self.mean.lines(), f"  {'pair':<8}{'BLEU':>8}{'95 %':>16}{'source copied':>16}"]
        for pair, one in self.pairs.items():
            bleu, copied = one.scored[0].score, one.scored[0].baselines[COPIED]
            told = "  never trained (zero-shot)" if pair in self.unseen else ""
            told += f"  {one.left_out:,} pairs with an empty side left out" if one.left_out else ""
            told += beside(bleu.value, copied)
            lines.append(
                f"  {pair:<8}{bleu.value:>8.2f}{f'{bleu.low:.2f}-{bleu.high:.2f}':>16}{copied:>16.2f}{told}"
            )
        for pair, one in self.pairs.items():
            lines += [f"{pair}: {one.title}", *report(one.scored)]
        return "\n".join(lines)

    def json(self) -> str:
        """For a program."""
        every = {pair: json.loads(one.json()) for pair, one in self.pairs.items()}
        whole = {"pairs": every, "unseen": list(self.unseen), "scores": as_json([self.mean])}
        return json.dumps(whole, indent=1) + "\n"
