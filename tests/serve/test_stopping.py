"""A search pauses at each of its steps, whatever the settings and the task."""

from dataclasses import replace
from pathlib import Path

import pytest

from weft.documents.segments import Sentence
from weft.search import whole
from weft.serve.batcher import ClientLeft
from weft.serve.limits import ServerLimits
from weft.serve.predicting import predicting
from weft.serve.served import ServedRun
from weft.serve.translation import translating


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_step_of_a_translation_pauses(
    library: None, runs: Path, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "SLICE_SECONDS", 0)  # a call of compiled code takes one step
    run = ServedRun(runs / "toy", "toy", "cpu", ())
    assert run.rewriter is not None
    decoding = replace(run.rewriter.decoding, precision=precision)
    pauses = []

    def stopped() -> bool:
        pauses.append(1)
        return len(pauses) > 100

    work = translating(run, "yy", decoding)
    found = work([Sentence("alpha beta gamma delta")], stopped)
    assert found[0][0].text == "uno due tre quattro"
    assert len(pauses) >= 5
    pauses += [1] * 100
    with pytest.raises(ClientLeft):
        work([Sentence("alpha beta gamma delta")], stopped)


def test_every_step_of_an_answer_of_predict_pauses(
    library: None, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "SLICE_SECONDS", 0)
    run = ServedRun(runs / "toy", "toy", "cpu", ())
    pauses: list[int] = []
    work = predicting(run, ServerLimits())
    assert (
        work(["alpha beta gamma delta"], lambda: bool(pauses.append(1)))[0]["text"] == "uno due tre quattro"
    )
    assert len(pauses) >= 5 + 2  # steps; and before the first and after each answer
