"""The settings that `weft tune` changes: ranges around a recipe, parameters, and overrides."""

import json
import random
from pathlib import Path

import pytest

from tests.commands import labelled
from tests.slow import leading
from weft.config import read_recipe
from weft.config.recipe import shipped
from weft.errors import ConfigError
from weft.run.training import check_recipe
from weft.tasks.space import Range, usual
from weft.tune import space as spaces
from weft.tune.plan import keep, plan

ONE_OF_EACH = sorted({path.parent.name: path for path in shipped()}.values())
RECIPE = {"model": {"sizes": [40, 40], "dropout": 0.7, "pool": {"use": "queries", "score": {"use": "dot"}}}}


@pytest.mark.parametrize("recipe", ONE_OF_EACH, ids=lambda path: path.parent.name)
def test_both_ends_of_every_range_of_every_task_are_recipes(recipe: Path) -> None:
    checked = check_recipe(read_recipe(recipe))
    space = spaces.around(checked.task.search_space(checked.plain), checked.plain)
    assert "training.optimiser.lr" in space or checked.plain["training"]["max_epochs"] == 0
    for settings in spaces.corners(space, checked.plain):
        check_recipe(read_recipe(recipe, spaces.overrides(settings)))


@pytest.mark.parametrize("name", ["trec-letters", "trec-filters"])
@pytest.mark.parametrize("changes", [["data.finer=fine"], ["data.finer=null", "data.separator='|'"]])
def test_subclasses_and_several_labels_leave_out_what_they_refuse(name: str, changes: list[str]) -> None:
    checked = check_recipe(read_recipe(name, changes))
    space = spaces.around(checked.task.search_space(checked.plain), checked.plain)
    for settings in spaces.corners(space, checked.plain):
        check_recipe(read_recipe(name, [*changes, *spaces.overrides(settings)]))


def test_a_range_contains_the_recipes_own_value_on_its_grid() -> None:
    space = {
        "model.sizes": Range(low=50, high=100, step=16, layers=1),
        "model.dropout": Range(low=0.0, high=0.5),
        "model.pool": Range(values=("mean", {"use": "queries"})),
    }
    found = spaces.around(space, RECIPE)
    assert (found["model.sizes"].low, found["model.sizes"].high) == (40, 88)  # 40 + 3 * 16
    assert found["model.sizes"].layers == 2
    wide = spaces.around({"model.sizes": Range(low=18, high=90, step=8, layers=1)}, RECIPE)["model.sizes"]
    assert (wide.low, wide.high) == (24, 88)  # 40 - 2 * 8, 40 + 6 * 8
    assert (found["model.dropout"].low, found["model.dropout"].high) == (0.0, 0.7)
    assert found["model.pool"].values == ("mean", {"use": "queries"})  # the recipe's own, shorter
    assert spaces.own(found, RECIPE) == {
        "model.sizes": 40,
        "model.sizes.layers": 2,
        "model.dropout": 0.7,
        "model.pool": '{"use": "queries"}',
    }


def test_a_trial_ends_by_its_minutes_alone(tmp_path: Path) -> None:
    recipe = labelled.make_texts(tmp_path / "toy")
    given = ["training.max_updates=20", "training.max_epochs=3", "training.max_minutes=9"]
    ready = plan(recipe, given, tmp_path / "study", trial_minutes=2.5)
    training = check_recipe(ready.table({})).settings
    ends = ("max_updates", "max_epochs", "max_tokens", "max_minutes", "max_cpu_minutes")
    assert [getattr(training, name) for name in ends] == [0, 0, 0, 0, 2.5]
    assert plan(recipe, given, tmp_path / "study").limits() == []


def test_parameters_become_settings_and_settings_overrides() -> None:
    space = {
        "a.sizes": Range(low=8, high=80, layers=3),
        "b.lr": Range(low=0.001, high=0.1, log=True, also=("c.lr",)),
        "d": Range(values=("mean", {"use": "queries", "num_queries": 4}, None)),
    }
    given = {
        "a.sizes": 24,
        "a.sizes.layers": 2,
        "b.lr": 0.0123456,
        "d": '{"use": "queries", "num_queries": 4}',
    }
    settings = spaces.changes(space, given)
    assert settings == {
        "a.sizes": [24, 24],
        "b.lr": 0.0123,
        "c.lr": 0.0123,
        "d": {"use": "queries", "num_queries": 4},
    }
    assert spaces.overrides(settings) == [
        "a.sizes=[24, 24]",
        "b.lr=0.0123",
        "c.lr=0.0123",
        'd={"use": "queries", "num_queries": 4}',
    ]


def test_a_vocabulary_is_searched_only_by_scores_that_do_not_depend_on_its_size() -> None:
    for name, wanted in (("help-lstm", False), ("help-demo", True)):
        checked = check_recipe(read_recipe(name))
        assert ("data.vocabulary.size" in checked.task.search_space(checked.plain)) == wanted


def test_a_vocabulary_searched_by_a_score_per_token_is_doubted(tmp_path: Path) -> None:
    space = tmp_path / "space.yaml"
    for text, metric, doubted in (
        ("data.vocabulary.size: [2000, 4000]", "loss", True),
        ("data.vocabulary.size: [2000, 4000]", "bleu", False),
        ("data.vocabulary.dropout: [0.0, 0.1]", "loss", False),
        ("data.max_length: {low: 50, high: 60, also: [data.vocabulary.min_count]}", "perplexity", True),
    ):
        space.write_text(text)
        ready = plan(Path("help-demo"), [f"training.metric={metric}"], tmp_path / "study", space=space)
        assert ("look better than they are" in ready.doubt()) == doubted, text


def test_filters_are_searched_by_number_and_widths() -> None:
    checked = check_recipe(read_recipe("trec-filters"))
    space = spaces.around(checked.task.search_space(checked.plain), checked.plain)
    features = space["model.encoder.features"]
    assert features.low is not None and features.high is not None
    assert features.low < 60 and features.high > 160
    assert checked.plain["model"]["encoder"]["widths"] in space["model.encoder.widths"].values


def test_a_batch_is_searched_only_if_a_larger_one_does_not_train_longer() -> None:
    recipe = {"data": {"batch_rows": 30}, "training": {"max_updates": 100, "max_epochs": 0}}
    assert "data.batch_rows" not in usual(recipe)
    recipe["training"] = {"max_updates": 0, "max_epochs": 3}
    found = usual(recipe)["data.batch_rows"]
    assert (found.low, found.high) == (15, 60)


def test_what_a_gpu_trains_with_is_searched_and_not_enlarged_again(tmp_path: Path) -> None:
    ready = plan(Path("adding-lstm"), ["training.scale=gpu"], tmp_path)
    assert ready.plain["data"]["batch_rows"] == 80  # 80 x 200 tokens instead of 50 x 200
    trial = {"training.optimiser.lr": 0.01, "data.batch_rows": 40}
    found = check_recipe(ready.table(trial)).plain
    assert found["training"]["optimiser"]["lr"] == 0.01 and found["data"]["batch_rows"] == 40


def test_a_file_names_settings_with_ranges_or_values(tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    path.write_text("training.optimiser.lr: {low: 1e-4, high: 0.01, log: true}\nmodel.pool: [mean, max]\n")
    assert spaces.read_space(path) == {
        "training.optimiser.lr": Range(low=0.0001, high=0.01, log=True),
        "model.pool": Range(values=("mean", "max")),
    }
    path.write_text("model.sizes: {low: 8, high: 32}\n")
    assert spaces.read_space(path)["model.sizes"].whole
    path.write_text("model.sizes: {low: 8, hihg: 32}\n")
    with pytest.raises(ConfigError, match=r"space\.yaml:1: .*hihg.*did you mean 'high'"):
        spaces.read_space(path)
    path.write_text("\nmodel.pool: []\n")
    with pytest.raises(ConfigError, match=r"space\.yaml:2: .*at least 1 value"):
        spaces.read_space(path)


@pytest.mark.parametrize("name", ["training.metric", "training.seed", "data.hold_out", "data.test"])
def test_what_changes_the_score_itself_is_not_searched(name: str, tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    path.write_text(f"{name}: [a, b]\n")
    with pytest.raises(ConfigError, match=rf"space\.yaml:1: .*{name}.* cannot be compared"):
        spaces.read_space(path)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"low": 3, "high": 2}, "at most high"),
        ({"low": 0, "high": 2, "log": True}, "above 0"),
        ({"low": 1}, "neither"),
        ({"low": 1, "high": 2, "values": (1,)}, "both"),
        ({"low": 1, "high": 2, "log": True, "step": 1}, "no step|has none"),
    ],
)
def test_a_range_that_cannot_be_is_refused(given: dict[str, object], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        Range(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", r"space\.yaml:1: expected a table with settings and their ranges, got nothing"),
        ("- a", r"expected a table with settings and their ranges, got a list"),
        ("training.optimser.lr: [1.0]", r"space\.yaml: training\.optimser.*did you mean 'optimiser'"),
    ],
)
def test_a_mistake_in_a_space_is_found_in_its_file(text: str, word: str, tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(text)
    with pytest.raises(ConfigError, match=word):
        plan(Path("trec-letters"), [], tmp_path / "study", space=tmp_path / "space.yaml")


def test_a_folder_with_other_files_does_not_become_a_study(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not empty and has no study"):
        keep(plan(Path("trec-letters"), [], tmp_path))
    assert [one.name for one in tmp_path.iterdir()] == ["letter.txt"]


def test_a_space_that_is_not_there_is_not_looked_for_among_recipes(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--space .*gone\.yaml: no such file"):
        spaces.read_space(tmp_path / "gone.yaml")


def test_a_file_is_no_directory_of_a_study(tmp_path: Path) -> None:
    (tmp_path / "study").write_text("mine")
    with pytest.raises(ConfigError, match="got a file; choose another --study"):
        keep(plan(Path("trec-letters"), [], tmp_path / "study"))


class Drawn:
    """A trial of Optuna, as far as `proposed` asks it, that draws at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def suggest_categorical(self, name: str, values: list[str]) -> str:
        return self.random.choice(values)

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False, step: int = 1) -> int:
        return self.random.randrange(low, high + 1, step)

    def suggest_float(self, name: str, low: float, high: float, *, log: bool, step: float | None) -> float:
        return self.random.uniform(low, high)


@pytest.mark.parametrize(
    "recipe",
    leading(shipped()[::4] + [one for n, one in enumerate(shipped()) if n % 4], 17),
    ids=lambda path: path.stem,
)
def test_settings_drawn_together_are_a_recipe(recipe: Path) -> None:
    checked = check_recipe(read_recipe(recipe))
    space = spaces.around(checked.task.search_space(checked.plain), checked.plain)
    for seed in range(2):
        drawn = spaces.changes(space, spaces.proposed(Drawn(seed), space))
        check_recipe(read_recipe(recipe, spaces.overrides(drawn)))


def test_what_cannot_go_with_another_setting_is_0_beside_it(tmp_path: Path) -> None:
    space = {"a": Range(low=0.1, high=0.2, also=("c",), unless="b"), "b": Range(values=(False, True))}
    assert spaces.changes(space, {"a": 0.1, "b": "true"}) == {"a": 0, "c": 0, "b": True}
    assert spaces.changes(space, {"a": 0.1, "b": "false"}) == {"a": 0.1, "c": 0.1, "b": False}
    assert [list(one) for one in spaces.corners(space, {"b": True})] == [["b"], ["b"]]
    assert len(spaces.corners(space, {"b": False})) == 4
    path = tmp_path / "space.yaml"
    path.write_text("a: {low: 0.1, high: 0.2, unless: d}\n")
    with pytest.raises(ConfigError, match="a: unless: expected another setting of this file, got 'd'"):
        spaces.read_space(path)


def test_a_tagger_with_class_weights_is_tried_without_a_crf() -> None:
    for weights in ("none", "balanced"):
        checked = check_recipe(read_recipe(Path("ewt-bilstm"), [f"model.class_weights={weights}"]))
        assert ("model.crf" in checked.task.search_space(checked.plain)) == (weights == "none")


def test_a_study_goes_on_when_a_later_version_adds_a_setting(tmp_path: Path) -> None:
    checked = plan("help-lstm", [], tmp_path / "study")
    keep(checked)
    path = checked.folder / "plan.json"
    kept = json.loads(path.read_text("utf-8"))
    del kept["plain"]["training"]["clip_norm"]
    path.write_text(json.dumps(kept), "utf-8")
    keep(checked)
