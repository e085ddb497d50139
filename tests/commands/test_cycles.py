"""A snapshot ensemble: the ends of the cycles of one training answer together."""

from pathlib import Path

import pytest

from tests.commands import labelled
from tests.commands.shell import refused, weft
from tests.commands.test_classify_together import probabilities

CYCLES = ("training.schedule={use: cosine_restarts, cycles: 3}", "training.validate_every=100")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cycles")
    weft("train", labelled.make_texts(folder / "toy"), "--run", folder / "run", *CYCLES, code=0)
    return folder / "run"


@pytest.mark.slow
def test_the_run_and_the_ends_of_its_cycles_are_averaged_each_once(run: Path) -> None:
    ends = sorted((run / "cycles").iterdir())
    assert [one.stem[-2:] for one in ends] == ["20", "40", "60"]
    alone = [probabilities(one) for one in ends]
    assert probabilities(run) in alone  # the best validation was at the end of a cycle
    for rows, both in zip(
        zip(*alone, strict=True), probabilities(run, "--ensemble", run / "cycles"), strict=True
    ):
        assert both == pytest.approx({name: sum(row[name] for row in rows) / 3 for name in both}, abs=2e-4)
    answer = weft("evaluate", ends[0], "--ensemble", ends[2])
    assert answer.code == 0 and "2 runs together" in answer.out
    assert "3 runs together" in weft("evaluate", run, "--ensemble", run / "cycles").out


def test_the_end_that_is_the_best_model_is_not_averaged_with_it(run: Path) -> None:
    own = probabilities(run)
    (best,) = (one for one in (run / "cycles").iterdir() if probabilities(one) == own)
    assert "is the model of" in refused(weft("predict", run, "--ensemble", best, stdin=b"fine\n"))


def test_what_has_no_cycles_is_refused(run: Path, tmp_path: Path) -> None:
    assert "has no cycles/step-00000021.safetensors" in refused(
        weft("predict", run / "cycles" / "step-00000021.safetensors", stdin=b"fine\n")
    )
    (tmp_path / "cycles").mkdir()
    said = refused(weft("predict", run, "--ensemble", tmp_path / "cycles", stdin=b"fine\n"))
    assert "expected weights of other cycles" in said
