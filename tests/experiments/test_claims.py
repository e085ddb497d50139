"""Every experiment runs, its verdict is corrected for the whole page, and docs/claims.md reports it."""

import json
import math
import re
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

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
    for part in study.judged({1: found})[1]["parts"]:
        assert part["verdict"] == (
            "theorem" if part["theorem"] else study.NOT_SHOWN if part["beyond"] else "undecided"
        )
    published = json.loads((PUBLISHED / f"{number}.json").read_text("utf-8"))
    assert [part["says"] for part in found["parts"]] == [part["says"] for part in published["parts"]]
    assert found["command"] == f"python experiments/{script.name}" and found["quick"]
    assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / f"{number}.svg").read_text("utf-8")


def claim(*differences: list[float], least: float = 0.0, beyond: str = "", tries: int = 1) -> dict[str, Any]:
    parts = [
        {"theorem": False, "least": least, "beyond": beyond, "differences": values} for values in differences
    ]
    return {"tries": tries, "parts": parts}


@pytest.mark.parametrize(
    ("seeds", "t", "p"),
    [
        (5, 2.776, 0.05),
        (6, 2.571, 0.05),
        (8, 2.365, 0.05),
        (20, 2.093, 0.05),
        (5, 8.610, 0.001),
        (6, 6.869, 0.001),
    ],
)
def test_a_p_value_is_that_of_the_printed_table(seeds: int, t: float, p: float, study: ModuleType) -> None:
    noise = np.arange(seeds) - (seeds - 1) / 2
    shift = t * noise.std(ddof=1) / math.sqrt(seeds)
    assert study.p_value(list(noise + shift), 0.0) == pytest.approx(p, rel=2e-3)
    assert study.p_value(list(noise - shift + 7), 7.0) == pytest.approx(p, rel=2e-3)


CLEAR, NOISE = [2.0, 3.0, 4.0, 5.0, 6.0], [-1.0, 1.0, -1.0, 1.0, 0.0]
"""t = 4 / (1.581 / √5) = 5.657 with 4 degrees of freedom, p = 0.0048; and t = 0, p = 1."""


@pytest.mark.parametrize(
    ("one", "verdict"),
    [
        (claim(CLEAR), "holds"),
        (claim(CLEAR, least=2.1), "undecided"),  # t = 2.69, p = 0.055
        (claim(CLEAR, least=8.0), "contradicted"),
        (claim(CLEAR, least=8.0, beyond="a GPU"), "not shown at this scale"),
        (claim(CLEAR, beyond="a GPU"), "holds"),
        (claim(NOISE, beyond="a GPU"), "not shown at this scale"),
        (claim(NOISE), "undecided"),
        (claim([2.0] * 4), "undecided"),  # four seeds are too few
        (claim([2.0] * 5), "holds"),  # no spread at all
        (claim(CLEAR, *[NOISE] * 9), "undecided"),  # as a claim; its first part holds: 10 · 0.0048 < 0.05
        (claim(CLEAR, tries=10), "holds"),
        (claim(CLEAR, tries=11), "undecided"),  # 11 · 0.0048 > 0.05
    ],
)
def test_a_verdict_follows_from_the_corrected_p_value(
    one: dict[str, Any], verdict: str, study: ModuleType
) -> None:
    assert study.judged({3: one})[3]["verdict"] == verdict


def test_all_parts_of_the_page_are_one_family(study: ModuleType) -> None:
    for others, verdict in ((9, "holds"), (10, "undecided")):  # 10 or 11 parts: 0.048 or 0.053
        page = study.judged({1: claim(CLEAR), 2: claim(*[NOISE] * others)})
        assert page[1]["verdict"] == verdict


def test_hardly_a_page_of_claims_without_any_effect_has_a_verdict(study: ModuleType) -> None:
    chance, pages, wrong = np.random.default_rng(3), 60, 0
    for _ in range(pages):
        parts = study.judged({1: claim(*chance.normal(size=(47, 6)).tolist())})[1]["parts"]
        wrong += any(part["verdict"] != "undecided" for part in parts)
    assert wrong <= 8  # 5 % of 60 is 3, and 3 standard deviations are 5; uncorrected it would be 55


@pytest.mark.parametrize(
    ("verdicts", "of_claim"),
    [
        (["holds", "theorem"], "holds"),
        (["theorem"], "holds"),
        (["holds", "undecided"], "undecided"),
        (["holds", "undecided", "not shown at this scale"], "not shown at this scale"),
        (["undecided", "not shown at this scale", "contradicted"], "contradicted"),
    ],
)
def test_a_claim_says_that_all_its_parts_are_true(
    verdicts: list[str], of_claim: str, study: ModuleType
) -> None:
    assert study.overall(verdicts) == of_claim


def test_a_rate_is_chosen_on_seeds_of_its_own(study: ModuleType, tmp_path: Path) -> None:
    one = study.Study(3, "", {}, range(11, 16), False, tmp_path)
    seen = set()

    def error(name: str, rate: float, seed: int) -> float:
        seen.add(seed)
        return math.nan if rate == 1.0 else abs(rate - {"a": 0.1, "b": 0.3}[name]) + seed

    assert one.best_rates("x", "ab", (0.1, 0.3, 1.0), error) == {"a": 0.1, "b": 0.3}
    assert seen and max(seen) < study.FIRST_SEED and one.numbers == {"learning rates, x": "a 0.1, b 0.3"}


def test_the_plain_control_does_not_start_orthogonal(study: ModuleType) -> None:
    from problems import started_plain
    from weft.nn import RecurrentEncoder
    from weft.nn.cells import LSTM, Elman

    for cell in (Elman, LSTM):
        weight = started_plain(RecurrentEncoder(3, sizes=(64,), cell=cell)).stack.forwards[0].weight_h
        assert weight.std().item() == pytest.approx(1 / 8, rel=0.05)
        assert 1.7 < torch.linalg.matrix_norm(weight[:64], ord=2).item() < 2.3  # 2 for large matrices


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
    votes = verdicts.VOTES.read_text("utf-8")
    assert votes.count("<details>") == 14
    assert votes == verdicts.votes(verdicts.page(), votes), "run python experiments/verdicts.py"


def test_the_page_shows_complete_results() -> None:
    found = [json.loads(path.read_text("utf-8")) for path in sorted(PUBLISHED.glob("*.json"))]
    assert len(found) == 14
    for one, script in zip(found, SCRIPTS, strict=True):
        assert not one["quick"] and len(one["seeds"]) >= 5 and min(one["seeds"]) > 10
        words = script.read_text("utf-8")
        assert words.startswith(f'"""Claim {int(script.name[:2])}: {one["claim"]}\n')
        assert ("\nTries: " in words) == (one["tries"] > 1)
        for setting, value, usual in (("tries", one["tries"], 1), ("first", one["seeds"][0], 11)):
            asked = re.search(rf"begin\(.*\b{setting}=(\d+)", words)
            assert value == (int(asked[1]) if asked else usual), f"{script.name}: run it with --publish"
