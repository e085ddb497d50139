"""Every experiment runs and prints a verdict, and docs/claims.md reports the finding."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "experiments"
SCRIPTS = sorted(FOLDER.glob("[0-9]*.py"))
FAST = {"06", "12", "14"}


@pytest.fixture
def neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts import study.py and problems.py, which are next to them."""
    monkeypatch.syspath_prepend(FOLDER)


def test_there_is_a_script_for_each_claim() -> None:
    assert [int(path.name[:2]) for path in SCRIPTS] == list(range(1, 15))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(path, marks=[] if path.name[:2] in FAST else pytest.mark.slow, id=path.stem)
        for path in SCRIPTS
    ],
)
def test_an_experiment_runs_to_a_verdict(
    script: Path,
    tmp_path: Path,
    neighbours: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", [str(script), "--quick", "--out", str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    number = script.name[:2]
    found = json.loads((tmp_path / f"{number}.json").read_text("utf-8"))
    assert found["verdict"] in {"holds", "holds in part", "does not hold here"}
    assert f"Claim {int(number)}: {found['verdict']}" in capsys.readouterr().out
    assert found["command"] == f"python experiments/{script.name}" and found["quick"]
    assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [([True, True], "holds"), ([True, False], "holds in part"), ([False, False], "does not hold here")],
)
def test_the_verdict_follows_from_what_was_expected(
    seen: list[bool], verdict: str, tmp_path: Path, neighbours: None, capsys: pytest.CaptureFixture[str]
) -> None:
    import study

    one = study.Study(3, "Water is wet.", range(1, 2), True, tmp_path)
    for true in seen:
        one.expect("it is", true)
    one.finish(study.picture()[0])
    assert f"Claim 3: {verdict}." in capsys.readouterr().out


def test_an_interval_is_students(neighbours: None) -> None:
    import study

    mean, half = study.interval([1.0, 2.0, 3.0])
    assert mean == 2.0 and half == pytest.approx(4.303 / 3**0.5, rel=1e-3)
    assert study.interval([5.0]) == (5.0, 0.0)


def test_the_page_says_what_was_found(neighbours: None) -> None:
    import verdicts

    assert verdicts.PAGE.read_text("utf-8") == verdicts.page(), "run python experiments/verdicts.py"


def test_no_result_on_the_page_is_a_quick_one() -> None:
    results = [json.loads(path.read_text("utf-8")) for path in (ROOT / "docs/pictures/claims").glob("*.json")]
    assert [one["command"] for one in results if one["quick"]] == []
    links = re.findall(r"\(pictures/claims/(\d\d)\.png\)", (ROOT / "docs/claims.md").read_text("utf-8"))
    assert len(links) == len(results)
