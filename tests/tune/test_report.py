"""weft tune: what a search says, the best recipe and the pictures that it leaves."""

from pathlib import Path

import pytest

from tests.commands import labelled
from tests.commands.shell import refused, weft
from tests.tune.searches import needs_optuna
from weft.figures.charts import history_figure
from weft.metrics.intervals import MeanOfTrainings
from weft.tune.plan import keep, plan
from weft.tune.report import _compared, best_recipe
from weft.tune.study import Study


@needs_optuna
def test_the_best_recipe_names_only_what_changed(tmp_path: Path) -> None:
    recipe = labelled.make_texts(tmp_path / "toy")
    recipe.write_text("# Scored 7.\n" + recipe.read_text("utf-8"), "utf-8")
    (tmp_path / "space.yaml").write_text("training.optimiser.lr: [0.02, 0.05]\n")
    ready = plan(recipe, (), tmp_path / "study", space=tmp_path / "space.yaml")
    keep(ready)
    study = Study(ready, "", "study", 1)
    settings = {"training.optimiser.lr": 0.05, "model.pool": {"use": "queries", "num_queries": 2}}
    header, _, rest = best_recipe(study, settings, ["Told."]).partition(
        "# The header of the recipe as it was"
    )
    assert "# training.optimiser.lr: 0.05 (was 0.02)\n# Told.\n" in header and "model.pool" not in header
    assert rest.splitlines()[1] == "# Scored 7."
    assert "model.pool" in best_recipe(study, {"model.pool": "queries"}, [])  # 4 queries by default
    assert "(was" not in best_recipe(study, {}, [])


@needs_optuna
def test_it_announces_only_what_follows(tmp_path: Path) -> None:
    recipe = labelled.make_texts(tmp_path / "toy")
    words = ("tune", recipe, "training.max_updates=6", "training.validate_every=2", "--seeds", 1)
    answer = weft(*words, "--minutes", 1e-6, "--study", tmp_path / "late")
    assert answer.code == 0 and "are now retrained" not in answer.err
    assert answer.lines == [
        "no trial has reached a validation yet; the same command with more --minutes resumes"
    ]
    untested = (*words, "data.test=null", "--trials", 1, "--study", tmp_path / "untested")
    answer = weft(*untested)
    assert answer.code == 0 and "are now retrained" in answer.err
    assert "next: " in answer.lines[-1] and " show " in answer.lines[-1]
    assert answer.lines[-1].endswith("   # then weft evaluate --data with a file that no trial has seen")
    file = tmp_path / "toy" / "train.txt"
    file.write_text(file.read_text().replace("good", "fair"))
    assert f"{file}: has changed since this search began, so its scores" in refused(weft(*untested))


def test_a_trial_is_better_where_its_whole_interval_is(tmp_path: Path) -> None:
    ready = plan(labelled.make_texts(tmp_path / "toy"), (), tmp_path / "study")
    high, low = MeanOfTrainings(0.8, 0.7, 0.9, 3), MeanOfTrainings(0.5, 0.4, 0.6, 3)
    middle = MeanOfTrainings(0.65, 0.55, 0.75, 3)
    for higher, better, worse in ((True, high, low), (False, low, high)):
        asked = ready._replace(higher=higher)
        assert "do not overlap: better" in _compared(asked, better, worse)
        assert "may be luck" in _compared(asked, worse, better)
        assert "may be luck" in _compared(asked, better, middle)
    assert "more --seeds" in _compared(ready, MeanOfTrainings(0.9, 0.9, 0.9, 1), low)


def test_trials_far_behind_leave_the_others_room_in_the_picture() -> None:
    trials = [(0, 0.80, True), (1, 0.90, True), (2, 0.85, False), (3, 0.10, False)]
    (axes,) = history_figure(trials, metric="accuracy", higher=True).axes
    assert axes.get_ylim() == pytest.approx((0.70, 0.98))  # a range below the worst; a tenth of all above
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert drawn["ended early"] == [[2, 0.85]]
    assert drawn["ended early, below the picture"] == [pytest.approx([3, 0.70])]
    assert drawn["best so far"][-1] == [3, 0.90]


@pytest.mark.parametrize("trials", [[(0, 0.5, True)], [(0, 0.5, False), (1, 0.4, False)]])
def test_a_picture_of_few_trials_shows_them_all(trials: list[tuple[int, float, bool]]) -> None:
    (axes,) = history_figure(trials, metric="loss", higher=False).axes
    low, high = axes.get_ylim()
    assert all(low < score < high for _, score, _ in trials)
