"""What a search found, given back to `weft evaluate --score`: the same log-probability must come out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.commands.shell import weft


def scored_alike(
    run: Path, found: Sequence[Any], folder: Path, *options: object, labels: Sequence[str] = ()
) -> None:
    """Hypotheses that ended, with `text`, `logp` and `tokens`, and their scores as given answers.

    Args:
        run: that found them.
        found: the best hypothesis of each source, in order.
        folder: to write in.
        options: of the command, such as a split.
        labels: what each line begins with.
    """
    lines = [one.text for one in found]
    lines = [f"{label}\t{line}" for label, line in zip(labels, lines, strict=True)] if labels else lines
    (folder / "given.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    out = folder / "scores.tsv"
    weft("evaluate", run, *options, "--score", folder / "given.txt", "--output", out, code=0)
    rows = [line.split("\t", 2) for line in out.read_text("utf-8").splitlines()]
    assert [row[2] for row in rows] == lines
    assert [int(row[1]) for row in rows] == [len(one.tokens) + 1 for one in found]
    assert [float(row[0]) for row in rows] == pytest.approx([one.logp for one in found], abs=2e-4)
