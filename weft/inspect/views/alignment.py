"""The attention of each hypothesis over the source, for every layer and head."""

from collections.abc import Iterable, Sequence

import numpy as np

from weft.figures.records import Figure
from weft.inspect.views.view import Block, View, matrix, said
from weft.run import LoadedRun
from weft.tasks.inspection import Hypothesis, Inspection

ISOLATE, END = "\u2068", "\u2069"
"""Unicode isolates around a text that may run from right to left, to protect the text around it."""

WRITTEN, WORD, MOMENT = "an output token", "an input token", "a moment of the recording"
PLACE = "a region of the picture, by its row and column from the top left"


def soft_alignments(number: int, one: Hypothesis, source: Sequence[str], text: str) -> str:
    """A block in the format of SoftAlignments (Rikters, Fishel & Bojar 2017) and Nematus.

    number ||| target words ||| score ||| source words ||| source count, target count, then a row of weights
    for each target word.
    """
    ends = len(one.looks[0].weights[0]) if one.looks else 0
    head = (
        f"{number} ||| {' '.join(one.pieces)} ||| {one.score:.6f} ||| {' '.join(source)} ||| "
        f"{ends} {len(one.pieces)}"
    )
    rows = [" ".join(f"{weight:.6f}" for weight in row) for row in one.looks[0].weights.tolist()]
    return "\n".join([head, *rows, ""])


class AlignmentView(View):
    """Attention from each output to the inputs."""

    title = "Alignment"
    order = 10

    def __init__(
        self,
        source: Sequence[str],
        text: str,
        hypotheses: Sequence[Hypothesis],
        column: str = WORD,
        row: str = WRITTEN,
    ) -> None:
        self.source, self.text, self.hypotheses = source, text, hypotheses
        self.column, self.row = column, row

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "AlignmentView | None":
        attended = [one for one in subject.hypotheses if one.looks]
        if not attended:
            return None
        if subject.picture is not None and subject.picture.drawn:
            return cls(subject.source, subject.text, attended, row=PLACE)
        column = PLACE if subject.picture is not None else MOMENT if subject.heard is not None else WORD
        return cls(subject.source, subject.text, attended, column)

    def blocks(self) -> list[Block]:
        groups = [
            {
                "name": f"{number}. {ISOLATE}{one.text or '(nothing)'}{END}   ({one.score:.3f})",
                "items": [matrix(look.name, look.weights, one.pieces, self.source) for look in one.looks],
            }
            for number, one in enumerate(self.hypotheses, 1)
        ]
        soft = "\n".join(
            soft_alignments(number, one, self.source, self.text) for number, one in enumerate(self.hypotheses)
        )
        words = "\n".join(one.pharaoh for one in self.hypotheses)
        blocks: list[Block] = [
            said(f"Each row is {self.row}, each column {self.column}. A row sums to 1."),
            {"kind": "matrices", "pick": "hypothesis", "each": "attention", "groups": groups},
        ]
        if words.strip():
            blocks.append(_export("alignment.pharaoh", "Pharaoh (words)", words))
        return [*blocks, _export("alignment.soft.txt", "SoftAlignments (pieces)", soft)]

    def table(self) -> Iterable[Sequence[object]]:
        yield "hypothesis", "attention", "target position", "target", "source position", "source", "weight"
        for number, one in enumerate(self.hypotheses, 1):
            for look in one.looks:
                for (t, s), weight in np.ndenumerate(look.weights):
                    yield number, look.name, t + 1, one.pieces[t], s + 1, self.source[s], float(weight)

    def figure(self) -> "Figure":
        from weft.figures.alignment import heat_map

        best = self.hypotheses[0]
        look = best.looks[0]
        title = f"{self.text}\n{best.text}" + ("" if look.name == "attention" else f"\n({look.name})")
        return heat_map(look.weights, list(self.source), best.pieces, title=title)


def _export(name: str, label: str, text: str) -> Block:
    return {"kind": "export", "name": name, "label": label, "text": text}
