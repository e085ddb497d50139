"""Parsing recipes: scalars, overrides, sections, and writing them again.

Read next: test_building.py, building objects from them; test_attacks.py.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.config import dump, parse
from weft.config.text import edited
from weft.errors import ConfigError


def test_a_recipe_is_its_sections(recipe) -> None:
    plain = recipe().plain()
    assert list(plain) == ["task", "data", "model", "training"]
    assert plain["data"] == {"source": "no", "target": "en", "train": "path/train"}
    assert plain["training"] == {"lr": 0.001, "epochs": 3}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            (word, word)
            for word in ("no", "yes", "on", "off", "y", "N", "1_000", "2001-01-01", "1:30", "0b1", "<<")
        ),
        *(("null", None), ("~", None), ("", None), ("true", True), ("False", False)),
        *(("12", 12), ("-3", -3), ("010", 10), ("0o17", 15), ("0xff", 255)),
        *(("1e-3", 0.001), (".5", 0.5), ("1.", 1.0), ("-2E+2", -200.0), (".inf", float("inf"))),
        *(('"1e-3"', "1e-3"), ("'true'", "true"), ('""', ""), ("[1, [a]]", [1, ["a"]]), ("{}", {})),
    ],
)
def test_scalars_mean_what_yaml_1_2_says(text: str, value: object) -> None:
    read = parse(text, "x.yaml").plain()
    assert (read, type(read)) == (value, type(value))


plain_trees = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=20,
)


@given(plain_trees)
def test_what_is_written_is_read_back(plain: object) -> None:
    read = parse(dump(plain), "x.yaml").plain()
    assert read == plain
    assert repr(read) == repr(plain)  # 1, 1.0 and True are equal but different


def test_an_override_replaces_and_adds(recipe) -> None:
    read = recipe("", "training.lr=2", "training.lr=3", "data.new=[a, no]", "decoding.beam=5", "task=")
    assert read.plain()["training"] == {"lr": 3, "epochs": 3}
    assert read.plain()["data"]["new"] == ["a", "no"]
    assert (read.plain()["decoding"], read.plain()["task"]) == ({"beam": 5}, None)


def test_an_override_adds_to_a_part_named_in_short(recipe) -> None:
    read = recipe("cell: gru", "cell.reset=before")
    assert read.plain() == {"cell": {"use": "gru", "reset": "before"}}


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("training.lr", "override training.lr: expected section.key=value"),
        ("=3", "override =3: expected section.key=value"),
        ("a..b=3", "override a..b=3: expected section.key=value"),
        ("task.x.y=[", "override task.x.y=[: this is not YAML"),
        (
            "training.lr.x=3",
            "override training.lr.x=3: expected training.lr to be a table with keys",
        ),
    ],
)
def test_a_wrong_override_is_named(recipe, override: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match="^" + re.escape(sentence)):
        recipe("", override)


def test_sections_are_checked_by_name(recipe) -> None:
    with pytest.raises(
        ConfigError, match=r"^x\.yaml:8: training: a recipe has no such section; did you mean 'trai"
    ):
        recipe().check_keys(["task", "data", "model", "trainings"])
    with pytest.raises(ConfigError, match=r"^x\.yaml:1: the section 'modle' is missing; is it 'model'\?$"):
        recipe().section("modle")
    with pytest.raises(ConfigError, match=r"^x\.yaml:1: "):
        recipe().section("task")
    assert recipe().section("decoding", optional=True).plain() == {}


def test_aliases_of_other_programs_are_followed() -> None:
    text = "a: &x !T [1, 2]\nb: *x\nc: [*x, &y 3, *y]\n"
    assert parse(text, "x.yaml", tagged=True).plain() == {"a": [1, 2], "b": [1, 2], "c": [[1, 2], 3, 3]}


@pytest.mark.parametrize("text", ["a: &x [1, *x]", "a: *y", "*x", "a: &x b\n*x : 3"])
def test_an_alias_of_itself_of_nothing_or_as_a_key_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="alias"):
        parse(text, "x.yaml", tagged=True)


def test_aliases_that_multiply_are_refused() -> None:
    ones = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    text = ones + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30))
    with pytest.raises(ConfigError, match=r"x\.yaml:4: .*a2"):
        parse(text, "x.yaml", tagged=True)


TEXT = """\
# a tagger
task: tag
model:
  encoder: {use: recurrent, sizes: [7, 7], dropout: 0.4}   # two layers
  pool: mean
training:
  lr: 1e-3  # per update
"""


def test_values_change_and_comments_stay() -> None:
    changes = {"model.encoder.sizes": [5], "training.lr": 0.02, "training.seed": 3}
    assert edited(TEXT, changes).replace("      #", "   #").splitlines() == [  # comments keep their column
        "# a tagger",
        "task: tag",
        "model:",
        "  encoder: {use: recurrent, sizes: [5], dropout: 0.4}   # two layers",
        "  pool: mean",
        "training:",
        "  lr: 0.02  # per update",
        "  seed: 3",
    ]


def test_a_name_becomes_a_table_where_a_setting_inside_changes() -> None:
    changes = {"model.pool.dropout": 0.1, "decoding.beam": 2, "model.encoder": {"use": "bag", "none": None}}
    lines = edited(TEXT, changes).splitlines()
    assert "  pool: {use: mean, dropout: 0.1}" in lines
    assert lines[-1] == "decoding: {beam: 2}"
    assert any(line.startswith("  encoder: {use: bag, none: null} ") for line in lines)
