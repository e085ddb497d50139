"""weft compare: variants are trained once, runs are measured once, and the report says who won."""

import csv
import json
import re
from pathlib import Path

import pytest

from tests.commands import corpus, labelled
from tests.commands.shell import refused, weft
from tests.slow import leading
from weft.commands.comparison import asked, planned
from weft.figures.picture import save
from weft.inspect.comparing.measured import Evidence, RunFacts
from weft.inspect.comparing.report import charts, markdown, page
from weft.inspect.comparing.tables import (
    figures,
    folder_name,
    latex,
    scores_csv,
    significance_csv,
    split,
    summary,
    variants,
)
from weft.inspect.comparing.variants import VariantRuns, columns, gathered, holm, significance

SMALL = ("training.max_updates=6", "training.validate_every=3", "training.schedule.warmup=1")


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the figures, which take half of the time; another test has them drawn by the command."""
    monkeypatch.setattr("weft.commands.comparison.figures", lambda *given: {})


def test_a_grid_is_trained_measured_and_compared_and_nothing_twice(undrawn: None, tmp_path: Path) -> None:
    recipe, output = corpus.make(tmp_path / "toy"), tmp_path / "out"
    wanted = ["compare", recipe, *SMALL, "--grid", "model.encoder.cell=elman,gru", "--folder", output]
    answer = weft(*wanted, code=0)
    assert max(len(line) for line in answer.lines if str(tmp_path) not in line) <= 80
    assert "BLEU, higher is better" in answer.out
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
    for part in (
        "BLEU",
        "parameters",
        "MiB",
        "## Significance",
        "## BLEU by words in the source sentence",
        "## Gradient reach",
    ):
        assert part in told
    assert "default-src 'none'" in page and len(page) < 3_000_000

    models = {path: path.stat().st_mtime_ns for path in output.rglob("model.safetensors")}
    facts = {path: path.stat().st_mtime_ns for path in (output / "measured").iterdir()}
    assert weft(*wanted).code == 0
    assert {path: path.stat().st_mtime_ns for path in (output / "measured").iterdir()} == facts
    assert set(models) == set(output.rglob("model.safetensors"))
    assert re.sub(r"[\d,.]+", "", (output / "report.md").read_text("utf-8")) == re.sub(r"[\d,.]+", "", told)


def test_runs_of_a_classifier_are_compared_and_other_tasks_are_refused(
    undrawn: None, trained: Path, tmp_path: Path
) -> None:
    recipe = labelled.make_texts(tmp_path / "t")
    for seed in (1, 2):
        run = tmp_path / f"s{seed}"
        assert weft("train", recipe, "--run", run, *SMALL[:2], f"training.seed={seed}").code == 0
    weft("compare", tmp_path / "s1", tmp_path / "s2", "--folder", tmp_path / "out", code=0)
    told = (tmp_path / "out" / "report.md").read_text("utf-8")
    assert "accuracy" in told and "| s1 | 2 |" in told and "## Each run" in told
    assert "## Significance" not in told  # two seeds of one recipe are no rivals
    kept = [json.loads((tmp_path / "out" / "measured" / f"s{n}.json").read_text("utf-8")) for n in (1, 2)]
    assert kept[0]["saved_bytes"] == kept[1]["saved_bytes"] > 0  # twins keep as much, whoever came first
    assert kept[0]["example"] == kept[1]["example"] != ""
    said = refused(weft("compare", tmp_path / "s1", trained, "--folder", tmp_path / "other"))
    assert "compare runs of one task" in said


def test_without_a_test_part_variants_are_compared_on_texts_that_they_did_not_learn(
    undrawn: None, tmp_path: Path
) -> None:
    recipe = labelled.make_texts(tmp_path / "t")
    solved = "model.bag={ngrams: 1, weight: tfidf, solve: true}", "training.refit=true"
    wanted = ["compare", recipe, *solved, "--grid", "model.bag.ngrams=1,2", "--folder"]
    answer = weft(*wanted, tmp_path / "out", "data.test=null", code=0)
    before, _, _ = answer.err.partition("1 of 2: ")
    assert "no test split (data.test): variants are compared on the validation split" in before
    assert "training.refit=false" in before and "not tested" not in answer.out
    assert "accuracy, higher is better" in answer.out
    assert "valid.tsv, 23 texts" in (tmp_path / "out/report.md").read_text()
    answer = weft(*wanted, tmp_path / "given", "data.test=null", "--test", tmp_path / "t/test.csv", code=0)
    assert "no test split" not in answer.err
    assert "test.csv, 29 texts" in (tmp_path / "given/report.md").read_text()
    assert "refit: true" in (tmp_path / "given/runs/ngrams=1/recipe.yaml").read_text()


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--grid", "cell=gru"], "a key of the recipe and its values"),
        (["--grid", "model.encoder.cell=gru,gru"], "expected each value once"),
        (["--grid", "model.encoder.cell=gru,grru"], "did you mean"),
        (["--grid", "model.encoder.cell"], "a key of the recipe and its values"),
        (["--grid", "training.seed=1,2", "--seeds", "3"], "the grid has training.seed already"),
        (["--budget", "minutes=3"], "expected updates, tokens, cpu-minutes or parameters"),
        (["--budget", "updates=0"], "and how many of them"),
        (["--budget", "updates=9", "--budget", "tokens=99"], "expected one end of the training"),
        (["--budget", "updates=9", "--budget", "updates=99"], "expected each kind once"),
        ([], "expected run directories, got a file"),
    ],
)
def test_mistakes_are_said_before_anything_is_trained(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    recipe = corpus.make(tmp_path / "toy")
    assert sentence in refused(weft("compare", recipe, *arguments, "--folder", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_one_run_or_none_is_refused(trained: Path, tmp_path: Path) -> None:
    assert "got one" in refused(weft("compare", trained, "--folder", tmp_path / "out"))
    assert "not a run directory" in refused(weft("compare", trained, tmp_path, "--folder", tmp_path / "out"))


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
        tokens=None,
        seconds=None,
        cpu_seconds=None,
        scores=[score],
        by_length=[],
        by_length_axes=["", ""],
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
    assert (accuracy.cells[0].low, accuracy.cells[0].high) == (0.0, 1.0)  # two seeds say next to nothing
    assert accuracy.winners() == set()
    assert verdicts(groups) == ["no clear difference between a and b"]
    told = markdown(runs, "t")
    assert "| a | 2 | 0.5000 ± 0.2263" in told and "| baseline: most frequent class |" in told
    assert "## Each run" in told and "| a66 |" in told


def test_models_below_a_baseline_are_tested_all_the_same() -> None:
    groups = gathered([run_of("bad", BAD, baseline=0.95), run_of("good", GOOD, baseline=0.95)])
    assert columns(groups)[0].winners() == set()
    (told,) = significance(groups)
    assert told.words.startswith("good is better than bad (p < 0.05); no model beats the best baseline")
    assert "0.95" in told.words and told.found is not None and told.found.value == pytest.approx(0.5)


def test_p_values_are_corrected_for_the_number_of_tests() -> None:
    assert holm([0.01, 0.04]) == [0.02, 0.04]
    assert holm([0.04, 0.01]) == [0.04, 0.02]  # in the order given
    assert holm([0.03, 0.03, 0.9]) == pytest.approx([0.09, 0.09, 0.9])
    assert holm([0.6, 0.7]) == [1.0, 1.0] and holm([]) == []


def test_tables_for_a_paper_hold_what_was_measured() -> None:
    runs = [
        run_of("a_b", GOOD, 1234, baseline=0.5)._replace(updates=10, tokens=100, cpu_seconds=60.0),
        run_of("50%", BAD, 1234, baseline=0.5)._replace(updates=10, tokens=300, cpu_seconds=6.0),
    ]
    rows = list(csv.DictReader(scores_csv(runs).splitlines()))
    found = {(row["variant"], row["quantity"]): row for row in rows}
    assert float(found["a_b", "accuracy"]["mean"]) == 0.9
    assert float(found["a_b", "accuracy"]["low"]) == pytest.approx(0.9 - 1.96 * 0.03)
    assert found["50%", "parameters"]["mean"] == "1234.0" and found["50%", "parameters"]["low"] == ""
    assert found["baseline: most frequent class", "accuracy"]["mean"] == "0.5"
    (test,) = csv.DictReader(significance_csv(runs).splitlines())
    assert (test["best"], test["other"]) == ("a_b", "50%") and float(test["difference"]) == pytest.approx(0.5)
    paper = latex(runs, "a_b, 50%", "10 updates")
    assert paper.count(r"\begin{tabular}") == paper.count(r"\end{tabular}") == 2
    assert r"a\_b & 1 & $\mathbf{0.9000" in paper and r"50\% & 1" in paper and "$1{,}234$" in paper
    assert "Budget of each run: 10 updates. Equal: 10 updates, 1,234 parameters." in paper
    assert r"Not equal: 100 to 300 target tokens, 0.100 to 1.000 CPU minutes." in paper
    widths = {line.count(" & ") for line in paper.split("\n") if " & " in line and r"\\" in line}
    assert widths == {6, 5}  # every row of a table has as many cells
    shown = summary([one._replace(name=one.name * 30) for one in runs], "t")
    assert max(map(len, shown.split("\n"))) <= 80


def test_the_heads_name_the_data_that_were_scored() -> None:
    run = run_of("a", GOOD)._replace(about="texts of train.csv", tested="test.csv, 100 texts")
    head = "classify, texts of train.csv; scores of test.csv, 100 texts"
    assert summary([run], "t").splitlines()[1] == head
    assert markdown([run], "t").splitlines()[2].startswith(f"Task {head}. ")


def test_the_summary_says_why_there_are_no_scores() -> None:
    runs = [run_of("a", GOOD), run_of("b", BAD)]
    why = "the recipe names no test set (data.test)"
    bare = [one._replace(scores=[], evidence=None, tested=why) for one in runs]
    assert f"no scores, and no figure of them: {why}" in summary(bare, "t")
    assert "no scores" not in summary(runs, "t")


def test_charts_have_a_line_for_each_variant_and_a_band_for_its_seeds() -> None:
    values = {"a": ([1.0, 2.0, 6.0], [3.0, 4.0, 5.0]), "b": ([7.0, 8.0, 9.0],)}
    runs = [
        run_of(f"{name}{seed}", GOOD, variant=name)._replace(
            curves={"loss": [[10.0, 20.0, 30.0][seed:], row[seed:]]},
            by_length=[["1-10", 5, float(seed), 0, 0], ["11-", 0, None, None, None]],
            by_length_axes=["characters said", "CER"],
        )
        for name, rows in values.items()
        for seed, row in enumerate(rows)
    ]
    (_, [length]), (_, [loss]) = charts(runs)
    assert length["bands"][0]["x"].tolist() == [0.0]  # no input has another length
    assert (length["title"], length["x"], length["y"]) == ("CER by characters said", "characters said", "CER")
    assert [one["name"] for one in loss["series"]] == ["a", "b"] and len(loss["bands"]) == 1
    assert loss["series"][0]["x"].tolist() == [20.0, 30.0]  # where both seeds were validated
    assert loss["series"][0]["y"].tolist() == [3.0, 5.5] and loss["series"][1]["y"].tolist() == [
        7.0,
        8.0,
        9.0,
    ]
    assert [loss["bands"][0][end].tolist() for end in ("low", "high")] == [[2.0, 5.0], [4.0, 6.0]]
    told = page(runs, "t")
    assert "Last validation" in told and "## Last validation" in markdown(runs, "t")
    assert "BLEU" not in markdown(runs, "t") and "## CER by characters said" in markdown(runs, "t")


@pytest.mark.parametrize("count", leading([2, 1, 7]))
def test_the_figures_show_every_variant(count: int, tmp_path: Path) -> None:
    curves = {"loss": [[1.0, 2.0], [0.5, 0.25]]}
    runs = [run_of(f"v{n}", GOOD, baseline=0.5)._replace(curves=curves) for n in range(count)]
    for name, figure in figures(runs, "t").items():
        for suffix, begins in (("svg", b"<?xml"), ("pdf", b"%PDF")):
            save(figure, path := tmp_path / f"{name}.{suffix}")
            assert path.read_bytes().startswith(begins)
        drawn = (tmp_path / f"{name}.svg").read_text("utf-8")
        assert all(f">v{n}<" in drawn for n in range(count))


@pytest.mark.slow
def test_missing_seeds_of_runs_are_trained_and_budgets_are_equal(tmp_path: Path) -> None:
    recipe, output = corpus.make(tmp_path / "toy"), tmp_path / "out"
    for cell in ("elman", "gru"):
        changes = [*SMALL, f"model.encoder.cell={cell}"]
        assert weft("train", recipe, "--run", tmp_path / cell, *changes).code == 0
    weft("compare", tmp_path / "elman", tmp_path / "gru", "--seeds", "2", "--folder", output, code=0)
    assert sorted(path.name for path in (output / "runs").iterdir()) == ["elman,seed=2", "gru,seed=2"]
    told = (output / "report.md").read_text("utf-8")
    assert "| elman | 2 |" in told and "| gru | 2 |" in told and "Equal: 6 updates" in told
    assert {path.suffix for path in output.iterdir() if path.is_file()} == {
        *(".md", ".html", ".csv", ".tex", ".svg", ".pdf")
    }


@pytest.mark.slow
def test_a_budget_ends_each_training_and_sets_its_width(undrawn: None, tmp_path: Path) -> None:
    recipe, output = corpus.make(tmp_path / "toy"), tmp_path / "out"
    wanted = ["compare", recipe, "training.max_updates=9", "--grid", "model.encoder.cell=elman,gru"]
    wanted += ["--budget", "tokens=900", "--budget", "parameters=9k", "--folder", output]
    answer = weft(*wanted, code=0)
    facts = [json.loads(path.read_text()) for path in (output / "measured").glob("cell=*.json")]
    assert len(facts) == 2
    for one in facts:
        assert 8_000 < one["parameters"] <= 9_000
        assert 900 <= one["tokens"] < 900 + 300  # a batch more at most
        assert one["updates"] < 9
    assert "Budget of each run: 900 tokens, at most 9,000 parameters." in answer.out.replace("\n", " ")
    before = {path: path.stat().st_mtime_ns for path in output.rglob("model.safetensors")}
    assert weft(*wanted).code == 0
    assert before == {path: path.stat().st_mtime_ns for path in output.rglob("model.safetensors")}


def test_recipes_and_runs_are_told_apart(trained: Path, tmp_path: Path) -> None:
    recipe = corpus.make(tmp_path / "toy")
    mixed = weft("compare", recipe, trained, "--seeds", "2", "--folder", tmp_path / "out")
    assert f"give {trained / 'recipe.yaml'}" in refused(mixed)
    grid = weft("compare", trained, "--grid", "training.seed=1,2", "--folder", tmp_path / "out")
    assert "--grid: changes recipes" in refused(grid)
    assert "before the settings" in refused(weft("compare", "training.seed=2"))


def test_recipes_of_the_same_name_have_names_and_folders_of_their_own(tmp_path: Path) -> None:
    paths = []
    for folder in ("a", "b"):
        paths.append(tmp_path / folder / "recipe.yaml")
        paths[-1].parent.mkdir()
        paths[-1].write_bytes(Path("recipes/memory/adding-elman.yaml").read_bytes())
    wanted = asked([*map(str, paths), "training.seed=0"], [], 2, [])
    runs = planned(wanted, tmp_path / "out", ())
    assert [one.recipe for one in runs] == [paths[0], paths[0], paths[1], paths[1]]
    assert len({folder_name(one.name) for one in runs}) == 4
    assert [one.changes[-1] for one in runs] == ["training.seed=0", "training.seed=1"] * 2
