"""A task of the user's own, that of the guide with figures, init and check, goes through every command."""

import sys
from pathlib import Path

import pytest

import weft as library
from tests.commands.shell import refused, weft
from tests.plugins import PAIRS, package

TASK = """
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from mine_of_weft.pairs.task import PairTask
from weft.data.plain import check_plain_texts
from weft.tasks.plain import PlainPipeline, PlainPredictor
from weft.tasks.predictor import PlainAnswer
from weft.tasks.task import PredictionSettings


class Verdict(PlainAnswer):
    def figure(self):
        figure = Figure()
        figure.text(0.5, 0.5, self.text())
        return figure


class Judge(PlainPredictor):
    draws = True

    def answers(self, inputs):
        return (Verdict(one.text()) for one in super(Judge, self).answers(inputs))


class DrawnPipeline(PlainPipeline):
    def predictor(self, model, settings=None):
        return Judge(self, model)


@dataclass(frozen=True, kw_only=True)
class DrawnSettings(PredictionSettings):
    plot: Path | None = None


class Drawn(PairTask):
    prediction_settings = DrawnSettings

    @classmethod
    def init(cls, name):
        from mine_of_weft.drawn.init import DrawnInit

        return DrawnInit(name)

    def guess(self, answers):
        return "always same", "same"

    @classmethod
    def check(cls, files):
        return check_plain_texts(files)

    def open(self, run):
        return DrawnPipeline(self, super().open(run).words)
"""
RECIPE = """task: mine_of_weft.drawn.task.Drawn
data: {train: pairs.txt, valid: pairs.txt}
training: {optimiser: {use: adam, lr: 0.02}, max_updates: 30, metric: accuracy}
"""
INIT = f'''
from weft.tasks.init import TRAIN, Init, NewRecipe


class DrawnInit(Init):
    """Pairs."""

    about = "Pairs with pictures."
    examples = ("--train pairs.txt",)
    options = (TRAIN,)

    def write(self, given, say):
        say("looking at the pairs")
        return NewRecipe({RECIPE!r}.replace("pairs.txt", str(given["train"])), [self.check(given["train"])])
'''
PLUGIN = "--plugin", "mine_of_weft"
ASKED = b"a cat\tcat a\na cat\ta dog\n"
NAME = "mine_of_weft.drawn.task.Drawn"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a package, its data and a recipe in it."""
    home, files = tmp_path / "home", {"drawn/task.py": TASK, "drawn/init.py": INIT, "pairs/task.py": PAIRS}
    package(home, "mine_of_weft", files, monkeypatch)
    (home / "pairs.txt").write_text("a cat\tcat a\tsame\na cat\ta dog\tdifferent\n")
    (home / "my.yaml").write_text(RECIPE)
    return home


def test_it_goes_through_every_command(home: Path) -> None:
    weft("train", "my.yaml", "--run", "run", *PLUGIN, code=0)
    answered = weft("predict", "run", *PLUGIN, stdin=ASKED)
    assert (answered.code, answered.lines) == (0, ["same", "different"]), answered.err
    scored = weft("evaluate", "run", "--split", "valid", *PLUGIN, code=0)
    assert "accuracy" in scored.out and "baseline: always same" in scored.out
    shown = weft("show", "run", *PLUGIN)
    assert "mine_of_weft.drawn.task.Drawn" in shown.out and "encoder" in shown.out, shown.err
    Path("asked.txt").write_bytes(ASKED)
    weft("predict", "run", "asked.txt", "--output", "out.txt", *PLUGIN, code=0)
    assert Path("out.txt").read_text() == "same\ndifferent\n"
    assert library.load("run", plugins=["mine_of_weft"]).predict("a cat\tcat a") == "same"
    weft("train", "my.yaml", "--run", "run", *PLUGIN, code=0)


def test_its_answers_are_drawn(home: Path) -> None:
    assert weft("train", "my.yaml", "--run", "run", *PLUGIN).code == 0
    drawn = weft("predict", "run", "--pictures", "drawn", *PLUGIN, stdin=ASKED)
    assert (drawn.code, drawn.lines) == (0, ["same", "different"]), drawn.err
    assert {path.name for path in Path("drawn").iterdir()} == {"1.png", "1.svg", "2.png", "2.svg"}


def test_init_writes_its_recipe(home: Path) -> None:
    written = weft("init", NAME, "--train", "pairs.txt", *PLUGIN, code=0)
    assert Path("drawn.yaml").read_text() == RECIPE
    assert f"data check pairs.txt --task {NAME} --plugin mine_of_weft" in written.out
    assert "train drawn.yaml --plugin mine_of_weft" in written.out
    assert weft("train", "drawn.yaml", "--run", "run", *PLUGIN).code == 0
    checked = weft("data", "check", "pairs.txt", "--task", NAME, *PLUGIN)
    assert (checked.code, "pairs.txt" in checked.out) == (0, True), checked.err
    assert "Pairs with pictures." in weft("init", NAME, *PLUGIN, "--help").out
    assert "--train" in refused(weft("init", NAME, *PLUGIN))


def test_init_of_a_task_without_one_or_that_was_not_allowed(home: Path) -> None:
    assert "--plugin mine_of_weft" in refused(weft("init", NAME, "--train", "pairs.txt"))
    task = Path("mine_of_weft/drawn/task.py")
    task.write_text(task.read_text().replace("def init(", "def unused("))
    assert "method init" in refused(weft("init", NAME, "--train", "pairs.txt", *PLUGIN))


def test_what_it_has_not_is_said_in_one_sentence(home: Path) -> None:
    assert weft("train", "my.yaml", "--run", "run", *PLUGIN).code == 0
    said = refused(weft("evaluate", "run", "--split=valid", "--plot=x.svg", *PLUGIN))
    assert "--plot" in said and "mine_of_weft.drawn.task.Drawn" in said
    assert "--beam" in refused(weft("predict", "run", "--beam", 3, *PLUGIN, stdin=ASKED))


def test_a_task_that_was_not_allowed_is_not_imported(home: Path) -> None:
    said = refused(weft("train", "my.yaml", "--run", "run"))
    assert "my.yaml:1" in said and "--plugin mine_of_weft" in said
    assert not any(name.startswith("mine_of_weft") for name in sys.modules)
    assert not Path("run").exists()


def test_a_class_that_is_no_task_is_refused(home: Path) -> None:
    Path("my.yaml").write_text(RECIPE.replace("task.Drawn", "task.Verdict"))
    said = refused(weft("train", "my.yaml", "--run", "run", *PLUGIN))
    assert "my.yaml:1" in said and "weft.tasks.task.Task" in said
