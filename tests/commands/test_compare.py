"""weft compare: variants are trained once, runs are measured once, and the report says who won."""

import json
import re
from pathlib import Path

import pytest

from tests.commands import corpus, labelled
from tests.commands.shell import refused, weft
from weft.inspect.comparing.grid import folder_name, split, variants
from weft.inspect.comparing.measured import Measured
from weft.inspect.comparing.report import columns, significance

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
    assert "accuracy" in answer.out and "## Significance" in answer.out
    kept = [json.loads((tmp_path / "out" / "measured" / f"s{n}.json").read_text("utf-8")) for n in (1, 2)]
    assert kept[0]["saved_bytes"] == kept[1]["saved_bytes"] > 0  # twins keep as much, whoever came first
    assert kept[0]["example"] == kept[1]["example"] != ""
    said = refused(weft("compare", tmp_path / "s1", trained, "--output", tmp_path / "other"))
    assert "runs of one task can be compared" in said


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--grid", "cell=gru"], "a key of the recipe and its values are needed"),
        (["--grid", "model.encoder.cell=gru,gru"], "a value stands there twice"),
        (["--grid", "model.encoder.cell=gru,grru"], "did you mean"),
        (["--grid", "model.encoder.cell"], "a key of the recipe and its values are needed"),
        ([], "is a file; compare runs"),
    ],
)
def test_mistakes_are_said_before_anything_is_trained(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    recipe = corpus.make(tmp_path / "toy")
    assert sentence in refused(weft("compare", recipe, *arguments, "--output", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_one_run_or_none_is_refused(trained: Path, tmp_path: Path) -> None:
    assert "one run came" in refused(weft("compare", trained, "--output", tmp_path / "out"))
    assert "is no run directory" in refused(weft("compare", trained, tmp_path, "--output", tmp_path / "out"))


def test_a_grid_is_every_combination_in_order() -> None:
    found = variants(["model.encoder.sizes=[8,8],[4]", "training.seed=1,2,3"])
    assert len(found) == 6
    assert found[0].changes == ("model.encoder.sizes=[8,8]", "training.seed=1")
    assert len({folder_name(one.name) for one in found}) == 6
    assert split("a,{b: 1, c: 2},(d,e)") == ["a", "{b: 1, c: 2}", "(d,e)"]
    twins = variants(["model.encoder.cell=gru", "model.decoder.cell=gru"])
    assert twins[0].name == "model.encoder.cell=gru,model.decoder.cell=gru"


def run_of(name: str, right: list[int], parameters: int) -> Measured:
    score = {"name": "accuracy", "value": sum(right) / len(right), "signature": "s", "size": len(right)}
    score |= {"higher_is_better": True, "low": None, "high": None}
    rest = (None, None, None, 0, None)
    rows = [[float(one), 1.0] for one in right]
    return Measured(
        name,
        "classify",
        "",
        "",
        parameters,
        4 * parameters,
        *rest,
        [score],
        [],
        {},
        {},
        [],
        "x",
        "accuracy",
        rows,
        "",
    )


def test_winners_are_the_best_of_their_column_and_chance_is_called_chance() -> None:
    good, same, bad = [1] * 90 + [0] * 10, [1] * 89 + [0] * 10 + [1], [1] * 40 + [0] * 60
    runs = [run_of("bad", bad, 10), run_of("good", good, 30), run_of("same", same, 20)]
    table = {one.name: one for one in columns(runs)}
    assert table["accuracy"].winners() == {1, 2}
    assert table["parameters"].winners() == {0}
    words = [one.words for one in significance(runs)]
    assert words == ["good is better (p < 0.05) than bad", "good is not surely better than same"]
    other = runs[1]._replace(items="y")
    assert significance([runs[0], other])[0].p_value is None
