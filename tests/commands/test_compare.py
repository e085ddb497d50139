"""weft compare: variants are trained once, runs are measured once, and the report says who won."""

import json
import re
from pathlib import Path

import pytest

from tests.commands import corpus, labelled
from tests.commands.shell import refused, weft
from weft.inspect.comparing.evidence import Evidence
from weft.inspect.comparing.grid import folder_name, split, variants
from weft.inspect.comparing.measured import RunFacts
from weft.inspect.comparing.report import markdown
from weft.inspect.comparing.variants import VariantRuns, columns, gathered, significance

SMALL = ("training.max_updates=6", "training.validate_every=3", "training.schedule.warmup=1")


def test_a_grid_is_trained_measured_and_compared_and_nothing_twice(tmp_path: Path) -> None:
    recipe, output = corpus.make(tmp_path / "toy"), tmp_path / "out"
    wanted = ["compare", recipe, *SMALL, "--grid", "model.encoder.cell=elman,gru", "--output", output]
    answer = weft(*wanted)
    assert answer.code == 0, answer.err
    names = [path.name for path in sorted((output / "runs").iterdir())]
    assert names == ["cell=elman", "cell=gru"]
    told = (output / "report.md").read_text("utf-8")
    page = (output / "report.html").read_text("utf-8")
    for name in names:
        assert f"| {name} |" in told and name in page
        kept = json.loads((output / "measured" / f"{name}.json").read_text("utf-8"))
        for score in kept["scores"]:
            assert score["signature"] in told.replace("\\|", "|")
        assert kept["parameters"] > 0 and kept["saved_bytes"] > 0 and kept["reach"]
    for part in ("BLEU", "parameters", "MiB", "## Significance", "## BLEU by length", "## Gradient reach"):
        assert part in told
    assert "default-src 'none'" in page and len(page) < 3_000_000

    models = {path: path.stat().st_mtime_ns for path in output.rglob("model.safetensors")}
    facts = {path: path.stat().st_mtime_ns for path in (output / "measured").iterdir()}
    assert weft(*wanted).code == 0
    assert {path: path.stat().st_mtime_ns for path in (output / "measured").iterdir()} == facts
    assert set(models) == set(output.rglob("model.safetensors"))
    assert re.sub(r"[\d,.]+", "", (output / "report.md").read_text("utf-8")) == re.sub(r"[\d,.]+", "", told)


def test_runs_of_a_classifier_are_compared_and_other_tasks_are_refused(trained: Path, tmp_path: Path) -> None:
    recipe = labelled.make_texts(tmp_path / "t")
    for seed in (1, 2):
        run = tmp_path / f"s{seed}"
        assert weft("train", recipe, "--run", run, *SMALL[:2], f"training.seed={seed}").code == 0
    answer = weft("compare", tmp_path / "s1", tmp_path / "s2", "--output", tmp_path / "out")
    assert answer.code == 0, answer.err
    assert "accuracy" in answer.out and "| s1 | 2 |" in answer.out and "## Each run" in answer.out
    assert "## Significance" not in answer.out  # two seeds of one recipe are no rivals
    kept = [json.loads((tmp_path / "out" / "measured" / f"s{n}.json").read_text("utf-8")) for n in (1, 2)]
    assert kept[0]["saved_bytes"] == kept[1]["saved_bytes"] > 0  # twins keep as much, whoever came first
    assert kept[0]["example"] == kept[1]["example"] != ""
    said = refused(weft("compare", tmp_path / "s1", trained, "--output", tmp_path / "other"))
    assert "compare runs of one task" in said


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--grid", "cell=gru"], "a key of the recipe and its values"),
        (["--grid", "model.encoder.cell=gru,gru"], "expected each value once"),
        (["--grid", "model.encoder.cell=gru,grru"], "did you mean"),
        (["--grid", "model.encoder.cell"], "a key of the recipe and its values"),
        ([], "expected run directories, got a file"),
    ],
)
def test_mistakes_are_said_before_anything_is_trained(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    recipe = corpus.make(tmp_path / "toy")
    assert sentence in refused(weft("compare", recipe, *arguments, "--output", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_one_run_or_none_is_refused(trained: Path, tmp_path: Path) -> None:
    assert "got one" in refused(weft("compare", trained, "--output", tmp_path / "out"))
    assert "not a run directory" in refused(weft("compare", trained, tmp_path, "--output", tmp_path / "out"))


def test_a_grid_is_every_combination_in_order() -> None:
    found = variants(["model.encoder.sizes=[8,8],[4]", "training.seed=1,2,3"])
    assert len(found) == 6
    assert found[0].changes == ("model.encoder.sizes=[8,8]", "training.seed=1")
    assert len({folder_name(one.name) for one in found}) == 6
    assert split("a,{b: 1, c: 2},(d,e)") == ["a", "{b: 1, c: 2}", "(d,e)"]
    twins = variants(["model.encoder.cell=gru", "model.decoder.cell=gru"])
    assert twins[0].name == "model.encoder.cell=gru,model.decoder.cell=gru"


def run_of(
    name: str, right: list[int], parameters: int = 1, variant: str = "", baseline: float = 0.0
) -> RunFacts:
    mean = sum(right) / len(right)
    half = 1.96 * (mean * (1 - mean) / len(right)) ** 0.5
    score = {"name": "accuracy", "value": mean, "signature": "s", "size": len(right)}
    score |= {"higher_is_better": True, "low": mean - half, "high": mean + half}
    score |= {"baselines": {"most frequent class": baseline}}
    proof = Evidence("accuracy", "accuracy", "mean", True, [[float(one), 1.0] for one in right], "x")
    return RunFacts(
        name=name,
        task="classify",
        about="",
        tested="",
        parameters=parameters,
        weight_bytes=4 * parameters,
        saved_bytes=None,
        tokens_a_second=None,
        tokens_a_cpu_second=None,
        updates=0,
        seconds=None,
        scores=[score],
        by_length=[],
        curves={},
        reach={},
        verdicts=[],
        evidence=proof,
        fingerprint="",
        variant=variant,
    )


GOOD, SAME, BAD = [1] * 90 + [0] * 10, [1] * 89 + [0] * 10 + [1], [1] * 40 + [0] * 60


def verdicts(groups: list[VariantRuns]) -> list[str]:
    return [one.words for one in significance(groups)]


def test_the_best_of_a_column_is_named_where_no_interval_overlaps() -> None:
    groups = gathered([run_of("bad", BAD, 10), run_of("good", GOOD, 30)])
    table = {one.name: one for one in columns(groups)}
    assert table["accuracy"].winners() == {1} and table["parameters"].winners() == {0}
    groups = gathered([run_of("bad", BAD, 10), run_of("good", GOOD, 30), run_of("same", SAME, 20)])
    assert columns(groups)[0].winners() == set()
    assert verdicts(groups) == [
        "good is better than bad (p < 0.05)",
        "no clear difference between good and same",
    ]
    other = groups[1].runs[0]
    assert other.evidence is not None
    moved = other._replace(evidence=other.evidence._replace(items="y"))
    (told,) = significance(gathered([groups[0].runs[0], moved]))
    assert "test data differ" in told.words and told.p_value == ""


def test_seeds_are_repetitions_and_their_spread_counts() -> None:
    plan = variants(["model.encoder.cell=elman,gru", "training.seed=1,2"])
    assert [one.group for one in plan] == ["cell=elman", "cell=elman", "cell=gru", "cell=gru"]
    assert variants(["training.seed=1,2"])[0].group == "the recipe"
    # 66 and 34 of 100 right with two seeds, 60 and 40: nobody knows; by items alone 66 beats 40
    runs = [
        run_of(f"{variant}{right}", [1] * right + [0] * (100 - right), variant=variant)
        for variant, rights in (("a", (66, 34)), ("b", (60, 40)))
        for right in rights
    ]
    groups = gathered(runs)
    assert [(group.name, len(group.runs)) for group in groups] == [("a", 2), ("b", 2)]
    accuracy = columns(groups)[0]
    assert accuracy.cells[0].value == pytest.approx(0.5)
    assert "± 0.2263" in accuracy.cells[0].shown  # 0.32 / sqrt(2)
    half = 1.96 * ((0.66 * 0.34 / 100) + 0.2263**2 / 2) ** 0.5
    assert accuracy.cells[0].high == pytest.approx(0.5 + half, abs=1e-3)
    assert accuracy.winners() == set()
    assert verdicts(groups) == ["no clear difference between a and b"]
    told = markdown(runs, "t")
    assert "| a | 2 | 0.5000 ± 0.2263" in told and "| baseline: most frequent class |" in told
    assert "## Each run" in told and "| a66 |" in told


def test_models_that_no_baseline_fears_are_not_compared() -> None:
    groups = gathered([run_of("bad", BAD, baseline=0.95), run_of("good", GOOD, baseline=0.95)])
    assert columns(groups)[0].winners() == set()
    (told,) = significance(groups)
    assert "not comparable" in told.words and "0.95" in told.words
