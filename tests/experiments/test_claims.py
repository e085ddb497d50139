"""Every experiment runs, its verdict follows from intervals, and docs/claims.md reports what was found."""

import json
import math
import runpy
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "experiments"
PUBLISHED = ROOT / "docs" / "pictures" / "claims"
SCRIPTS = sorted(FOLDER.glob("[0-9]*.py"))
FAST = {"06"}


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The scripts import study.py and problems.py, which are next to them."""
    monkeypatch.syspath_prepend(FOLDER)
    import study

    return study


def run(script: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr(sys, "argv", [str(script), *options])
    runpy.run_path(str(script), run_name="__main__")


def test_there_is_a_script_for_each_claim() -> None:
    assert [int(path.name[:2]) for path in SCRIPTS] == list(range(1, 15))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(path, marks=[] if path.name[:2] in FAST else pytest.mark.slow, id=path.stem)
        for path in SCRIPTS
    ],
)
def test_a_quick_run_draws_and_leaves_open_what_is_not_a_theorem(
    script: Path, tmp_path: Path, study: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(script, monkeypatch, "--quick", "--out", str(tmp_path))
    number = script.name[:2]
    found = json.loads((tmp_path / f"{number}.json").read_text("utf-8"))
    assert found["verdict"] == "undecided"
    assert all(part["verdict"] == ("undecided", "theorem")[part["theorem"]] for part in found["parts"])
    published = json.loads((PUBLISHED / f"{number}.json").read_text("utf-8"))
    assert [part["says"] for part in found["parts"]] == [part["says"] for part in published["parts"]]
    assert found["command"] == f"python experiments/{script.name}" and found["quick"]
    assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / f"{number}.svg").read_text("utf-8")


@pytest.mark.parametrize(
    ("larger", "least", "verdict"),
    [
        ([2.0, 3.0, 4.0, 5.0, 6.0], 0.0, "holds"),  # difference 4 ± 1.96: 2.776 · 1.581 / √5
        ([2.0, 3.0, 4.0, 5.0, 6.0], 2.1, "undecided"),
        ([2.0, 3.0, 4.0, 5.0, 6.0], 6.1, "contradicted"),
        ([-1.0, 1.0, -1.0, 1.0, 0.5], 0.0, "undecided"),
        ([-1.0, -2.0, -1.0, -2.0, -1.5], 0.0, "contradicted"),
        ([2.0, 2.0, 2.0, 2.0], 0.0, "undecided"),  # four seeds are too few
    ],
)
def test_a_verdict_follows_from_the_interval_of_paired_differences(
    larger: list[float], least: float, verdict: str, study: ModuleType, tmp_path: Path
) -> None:
    one = study.Study(3, "", {"a": study.Part("A is larger.", "", least)}, range(5), False, tmp_path)
    noise = np.arange(len(larger)) * 100.0  # shared by both quantities, so pairs remove it
    one.compare("a", larger + noise, noise)
    assert one.found["a"]["verdict"] == verdict
    assert one.found["a"]["difference"] == pytest.approx(np.mean(larger))


@pytest.mark.parametrize(
    ("verdicts", "claim"),
    [
        (["holds", "theorem"], "holds"),
        (["holds", "undecided"], "undecided"),
        (["holds", "undecided", "contradicted"], "contradicted"),
    ],
)
def test_a_claim_says_that_all_its_parts_are_true(verdicts: list[str], claim: str, study: ModuleType) -> None:
    assert study.overall(verdicts) == claim


def test_every_part_is_declared_and_judged_once(study: ModuleType, tmp_path: Path) -> None:
    parts = {"a": study.Part("A."), "b": study.Part("B.", theorem=True)}
    one = study.Study(3, "", parts, range(5), False, tmp_path)
    one.compare("a", [1.0] * 5, 0.0)
    with pytest.raises(AssertionError, match="every declared part"):
        one.finish(study.picture()[0])
    with pytest.raises(AssertionError, match="twice"):
        one.compare("a", [2.0] * 5, 0.0)
    with pytest.raises(KeyError):
        one.compare("an afterthought", [1.0] * 5, 0.0)
    with pytest.raises(AssertionError, match="has a bug"):
        one.check("b", 1e-3, 1e-5)


def test_an_interval_is_students(study: ModuleType) -> None:
    mean, half = study.interval(np.array([1.0, 2.0, 3.0]))
    assert mean == 2.0 and half == pytest.approx(4.303 / math.sqrt(3), rel=1e-3)
    assert math.isnan(study.interval(np.array([5.0]))[1])


@pytest.mark.parametrize("options", [["--seeds", "4"], ["--quick", "--publish"]])
def test_too_few_seeds_and_quick_results_are_refused(
    options: list[str], study: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit):
        run(SCRIPTS[5], monkeypatch, *options)


def test_a_run_writes_outside_of_docs_unless_asked(
    study: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["06_scale.py"])
    assert study.begin("Claim 6: So.", {}).out == ROOT / "build" / "claims"
    monkeypatch.setattr(sys, "argv", ["06_scale.py", "--publish"])
    assert study.begin("Claim 6: So.", {}).out == PUBLISHED


def test_the_page_says_what_was_found(study: ModuleType) -> None:
    import verdicts

    assert verdicts.PAGE.read_text("utf-8") == verdicts.page(), "run python experiments/verdicts.py"


def test_the_page_shows_complete_results() -> None:
    found = [json.loads(path.read_text("utf-8")) for path in sorted(PUBLISHED.glob("*.json"))]
    assert len(found) == 14
    for one, script in zip(found, SCRIPTS, strict=True):
        assert not one["quick"] and len(one["seeds"]) >= 5 and min(one["seeds"]) > 10
        assert script.read_text("utf-8").startswith(f'"""Claim {int(script.name[:2])}: {one["claim"]}\n')
