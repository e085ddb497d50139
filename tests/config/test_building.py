"""Building objects from recipes; errors name file, line and key.

Read next: test_text.py, test_attacks.py.
"""

import dataclasses
import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
import torch

import weft
from weft.config import build, built, dump, parse, read_recipe
from weft.errors import ConfigError
from weft.nn.cells.cell import Cell
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.encoders.encoder import Encoder
from weft.tasks.embeddings.data import WordsData
from weft.tasks.pictures.data import CaptionModel, DrawModel
from weft.tasks.running_text.base import ProseData
from weft.train.settings import TrainingSettings

FACTORY = functools.partial(GRU, reset="before")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    lr: float = 0.5
    epochs: int
    name: str = "run"
    shuffle: bool = True
    loss: Literal["per_token", "per_sequence"] = "per_token"
    betas: tuple[float, float] = (0.9, 0.99)
    folder: Path = Path("runs")
    patience: int | None = None
    weights: dict[str, float] = dataclasses.field(default_factory=dict)
    words: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ConfigError(f"epochs: expected at least 1, got {self.epochs}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inner:
    bits: int = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outer:
    inner: Inner | None = None


GRU_DEFAULTS = {"candidate": "tanh", "forget_bias": 0.0, "normalised": False}


def network(in_size: int, *, cell: Callable[[int, int], Cell] = LSTM, ready: Cell | None = None) -> Cell:
    return ready or cell(in_size, 3)


def training(text: str) -> Training:
    return build(parse("\n" * 2 + text, "x.yaml", name="training"), Training)


# Valid recipes


def test_every_plain_kind_arrives_as_its_annotation_says() -> None:
    made = training(
        "{lr: 1, epochs: 2, name: no, shuffle: false, loss: per_sequence, betas: [0, 0.5], folder: a/b, "
        "patience: 4, weights: {en-de: 2}, words: [a, 'b']}"
    )
    kinds = (made.lr, type(made.lr), made.betas, made.folder, made.weights, made.words, made.patience)
    assert kinds == (1.0, float, (0.0, 0.5), Path("a/b"), {"en-de": 2.0}, ["a", "b"], 4)
    assert (made.name, made.shuffle, made.loss) == ("no", False, "per_sequence")


def test_a_part_is_named_by_its_file(recipe) -> None:
    encoder = build(recipe().section("model").section("encoder"), Encoder, in_size=3)
    assert encoder.size == 5
    assert {type(part) for part in encoder.modules() if isinstance(part, Cell)} == {GRU}


def test_a_contract_in_a_callable_is_a_factory_and_bare_a_ready_object(recipe) -> None:
    made = build(parse("{cell: {use: gru, reset: before}}", "x.yaml"), network, in_size=7)
    assert isinstance(made, GRU) and (made.in_size, made.size, made.reset) == (7, 3, "before")
    assert isinstance(build(parse("{cell: lstm}", "x.yaml"), network, in_size=7), LSTM)
    assert isinstance(build(parse("{ready: null}", "x.yaml"), network, in_size=7), LSTM)


def test_the_resolved_recipe_has_every_default_and_builds_the_same(recipe) -> None:
    section = recipe().section("model").section("encoder")
    plain = built(section, Encoder, in_size=3).plain
    assert plain["cell"] == {"use": "gru", "reset": "before", **GRU_DEFAULTS}
    assert {"sizes", "bidirectional", "join", "dropout"} < set(plain)
    torch.manual_seed(1)
    once = build(section, Encoder, in_size=3).state_dict()
    torch.manual_seed(1)
    again = build(parse(dump(plain), "recipe.yaml"), Encoder, in_size=3).state_dict()
    assert list(once) == list(again) and all(torch.equal(once[name], again[name]) for name in once)
    assert built(parse(dump(plain), "recipe.yaml"), Encoder, in_size=3).plain == plain


def two_factories(*, a: Callable[..., Cell] = FACTORY, b: Callable[..., Cell] = GRU) -> None:
    pass


def test_defaults_that_are_parts_are_written_by_name() -> None:
    assert built(parse("{}", "x.yaml"), two_factories).plain == {
        "a": {"use": "gru", "reset": "before", **GRU_DEFAULTS},
        "b": {"use": "gru", "reset": "after", **GRU_DEFAULTS},
    }


def test_a_plugin_is_used_only_if_the_command_line_names_it(recipe, tmp_path, monkeypatch) -> None:
    (tmp_path / "mycells.py").write_text(
        "from weft.nn.cells.gru import GRU\nclass Mine(GRU):\n    pass\nNothing = 3\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = parse("{cell: mycells.Mine}", "x.yaml", name="model")
    with pytest.raises(ConfigError, match=r"x.yaml:1: model.cell: 'mycells.Mine' is code.*--plugin mycells"):
        build(entry, network, in_size=3)
    assert type(build(entry, network, in_size=3, plugins=["mycells"])).__name__ == "Mine"
    for name, sentence in [
        ("mycells.Other", "cannot be imported"),
        ("mycells.Nothing", "Cell; it must extend"),
    ]:
        with pytest.raises(ConfigError, match=sentence):
            build(parse(f"{{cell: {name}}}", "x.yaml"), network, in_size=3, plugins=["mycells"])


def test_an_override_with_null_unsets_a_setting_that_cannot_be_null(tmp_path) -> None:
    (tmp_path / "x.yaml").write_text("training: {max_epochs: 3, max_updates: 7, patience: 2}\n")

    def built(*overrides: str) -> TrainingSettings:
        return build(read_recipe(tmp_path / "x.yaml", overrides).section("training"), TrainingSettings)

    assert (built().max_epochs, built("training.max_epochs=null").max_epochs) == (3, 0)
    with pytest.raises(ConfigError, match="expected an end, got none"):  # nothing ends this training
        built("training.max_epochs=null", "training.max_updates=null", "training.patience=null")
    with pytest.raises(ConfigError, match=r"x.yaml:1: max_epochs: expected a whole number, got nothing"):
        build(parse("{max_epochs: null}", "x.yaml"), TrainingSettings)


EARLIER = [  # of every class that has earlier names: its section, and settings that it needs
    (ProseData, "data", "train: a, valid_share: 0.1"),
    (WordsData, "data", "train: a"),
    (CaptionModel, "model", ""),
    (DrawModel, "model", ""),
]


@pytest.mark.parametrize(("kind", "section", "needed"), EARLIER)
def test_a_setting_is_read_by_its_earlier_name_too(kind: type, section: str, needed: str) -> None:
    for before, now in kind.renamed.items():  # type: ignore[attr-defined]
        texts = (f"{{{needed}{', ' * bool(needed)}{name}: 7}}" for name in (before, now))
        old, new = (built(parse(text, "x.yaml", name=section), kind).plain for text in texts)
        assert old == new and new[now] == 7 and before not in new
        both = parse(f"{{{needed}{', ' * bool(needed)}{before}: 7, {now}: 5}}", "x.yaml", name=section)
        with pytest.raises(
            ConfigError, match=rf"{section}\.{before}: is now called {now}, which is given too"
        ):
            build(both, kind)


def test_the_earlier_names_of_every_class_are_tried() -> None:
    source = [path.read_text("utf-8") for path in Path(weft.__file__).parent.rglob("*.py")]
    found = sum(text.count("    renamed: ClassVar[Mapping[str, str]] = ") for text in source)
    assert found == len(EARLIER)


# Errors


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "{epochs: 1, learning_rat: 2}",
            "training.learning_rat: training has no such setting; it has lr, epochs, name",
        ),
        ("{epochs: 1, epoch: 2}", "training.epoch: training has no such setting; did you mean 'epochs'?"),
        ("{lr: 1}", "training: training needs the setting 'epochs': a whole number"),
        ("{epochs: 1.5}", "training.epochs: expected a whole number"),
        ("{epochs: true}", "training.epochs: expected a whole number"),
        ("{epochs: '3'}", "training.epochs: expected a whole number"),
        ("{epochs: }", "training.epochs: expected a whole number"),
        ("{epochs: {a: 1}}", "training.epochs: expected a whole number"),
        ("{epochs: 1, lr: fast}", "training.lr: expected a number"),
        ("{epochs: 1, lr: .nan}", "training.lr: expected a finite number"),
        ("{epochs: 1, name: 3}", "training.name: expected text (in quotes)"),
        ("{epochs: 1, shuffle: no}", "training.shuffle: expected true or false"),
        ("{epochs: 1, loss: per_tokn}", "'per_token', 'per_sequence'"),
        (
            "{epochs: 1, betas: [1]}",
            "training.betas: expected a list of 2 numbers, got a list of 1",
        ),
        ("{epochs: 1, betas: 1}", "training.betas: expected a list of 2 numbers such as [1, 1], got 1"),
        ("{epochs: 1, betas: [1, a]}", "training.betas[1]: expected a number"),
        (
            "{epochs: 1, words: one}",
            "training.words: expected a list of texts such as [one]",
        ),
        ("{epochs: 1, betas: wide}", "training.betas: expected a list of 2 numbers, got 'wide'"),
        ("{epochs: 1, words: [[a]]}", "training.words[0]: expected text"),
        ("{epochs: 1, patience: x}", "training.patience: expected a whole number or null"),
        ("{epochs: 1, weights: 3}", "training.weights: expected a table of numbers"),
        ("{epochs: 1, weights: {a b: x}}", "training.weights.'a b': expected a number"),
        ("{epochs: 0}", "training.epochs: expected at least 1"),
        ("[1]", "training: expected a table of settings"),
    ],
)
def test_a_wrong_setting_is_told_with_place_and_need(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=r"^x\.yaml:3: .*" + re.escape(sentence)):
        training(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{cell: lstn}", "model.cell: unknown cell 'lstn'; did you mean 'lstm'?"),
        ("{cell: 'a. b'}", "model.cell: expected the name of a cell or package.module.Class"),
        ("{cell: {use: 3}}", "model.cell.use: expected the name of a cell"),
        ("{cell: {reset: after}}", "model.cell: the table does not say which cell; add use: and one of "),
        ("{cell: [gru]}", "model.cell: expected the name of a cell"),
        ("{cell: {use: gru, size: 3}}", "model.cell.size: set by the model itself"),
        (
            "{cell: {use: gru, rest: after}}",
            "model.cell.rest: GRU has no such setting; did you mean 'reset'?",
        ),
        ("{in_size: 3}", "model.in_size: set by the model itself"),
        ("{cell: }", "model.cell: expected the name of a cell"),
    ],
)
def test_a_wrong_part_is_told_with_place_and_need(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=r"^x\.yaml:1: " + re.escape(sentence)):
        build(parse(text, "x.yaml", name="model"), network, in_size=3)


def test_a_constructors_own_complaint_gets_the_line(recipe) -> None:
    section = recipe("", "model.encoder.sizes=[]").section("model").section("encoder")
    with pytest.raises(ConfigError, match=r"^x\.yaml:4: model\.encoder: a recurrent network needs a size"):
        build(section, Encoder, in_size=3)


def test_the_line_is_that_of_the_key(recipe) -> None:
    section = (
        recipe("model:\n  encoder:\n    use: recurrent\n    sizs: [7]\n").section("model").section("encoder")
    )
    sentence = (
        r"^x\.yaml:4: model\.encoder\.sizs: RecurrentEncoder has no such setting; did you mean 'sizes'\?$"
    )
    with pytest.raises(ConfigError, match=sentence):
        build(section, Encoder, in_size=3)


def test_an_override_is_the_place_of_its_mistake(recipe) -> None:
    section = recipe("", "training.epochs=many").section("training")
    sentence = r"^override training\.epochs=many: expected a whole number"
    with pytest.raises(ConfigError, match=sentence):
        build(section, Training)


def test_a_setting_of_an_inner_part_is_found_there() -> None:

    with pytest.raises(ConfigError, match=r"lr: .*did you mean 'optimiser\.lr'\?"):
        build(parse("lr: 1e-3", "x.yaml", name="training"), TrainingSettings)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{bits: many}", "model.inner.bits: expected a whole number"),
        ("true", "model.inner: expected a table"),
    ],
)
def test_a_mistake_inside_an_optional_table_is_told_with_its_own_name(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=rf"^x\.yaml:1: {sentence}"):
        build(parse(f"{{inner: {text}}}", "x.yaml", name="model"), Outer)


def test_a_bar_in_an_override_is_text(recipe) -> None:
    data = recipe("", "data.source=|", "data.target=||").section("data").plain()
    assert (data["source"], data["target"]) == ("|", "||")
