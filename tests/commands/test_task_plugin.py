"""A task of the user's own, in one package of the working directory, goes through every command."""

import sys
from pathlib import Path

import pytest

import weft as library
from tests.commands.shell import refused, weft
from tests.plugins import package

TASK = '''
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import nn

from weft.data.plain import check_plain_texts
from weft.metrics.accuracy import Accuracy
from weft.nn.heads.head import Loss
from weft.tasks.plain import PlainData, PlainPipeline, PlainPredictor, PlainTask
from weft.tasks.predictor import PlainAnswer
from weft.tasks.task import PredictionSettings

LETTERS = "abcdefg"


class Batch(NamedTuple):
    letters: torch.Tensor
    sizes: list

    def to(self, device):
        return Batch(self.letters.to(device), self.sizes)

    @property
    def target_tokens(self):
        return len(self.letters)


class Table(nn.Module):
    """A row of logits for each letter."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.logits = nn.Embedding(len(LETTERS), len(LETTERS))
        nn.init.normal_(self.logits.weight, std=scale)

    def loss(self, batch):
        logp = self.logits(batch.letters).log_softmax(-1)
        total = -logp.gather(1, batch.letters[:, None]).sum()
        return Loss(total, torch.tensor(float(len(batch.letters))))


@dataclass(frozen=True)
class Parts:
    """The model. Args: scale: of the first weights."""

    scale: float = 0.1

    def build(self, num_words):
        return Table(self.scale)


class Word(PlainAnswer):
    def figure(self):
        figure = Figure()
        figure.text(0.5, 0.5, self.text())
        return figure


class Speaker(PlainPredictor):
    """Says words again, and draws them."""

    draws = True

    def answers(self, inputs):
        return (Word(one.text()) for one in super(Speaker, self).answers(inputs))


class EchoPipeline(PlainPipeline):
    def predictor(self, model, settings=None):
        return Speaker(self, model)


@dataclass(frozen=True, kw_only=True)
class EchoSettings(PredictionSettings):
    plot: Path | None = None


class Echo(PlainTask):
    """Words to themselves."""

    sections = {"data": PlainData, "model": Parts}
    metric = Accuracy()
    prediction_settings = EchoSettings

    @classmethod
    def init(cls, name):
        from mine_of_weft.echo.init import EchoInit

        return EchoInit(name)

    def read_input(self, text):
        if set(text) - set(LETTERS):
            raise ValueError(f"expected letters of {LETTERS}")
        return text

    def read_example(self, line):
        return self.read_input(line), line

    def batch(self, words, inputs, answers=None):
        letters = [LETTERS.index(letter) for word in inputs for letter in word]
        return Batch(torch.tensor(letters), [len(word) for word in inputs])

    def answer(self, model, batch):
        said = model.logits(batch.letters).argmax(-1).split(batch.sizes)
        return ["".join(LETTERS[n] for n in word.tolist()) for word in said]

    def guess(self, answers):
        return "always a", "a"

    @classmethod
    def check(cls, files):
        return check_plain_texts(files)

    def open(self, run):
        return EchoPipeline(self, super().open(run).words)
'''
RECIPE = """task: mine_of_weft.echo.task.Echo
data: {train: words.txt, valid: words.txt}
training: {optimiser: {use: adamw, lr: 0.3}, max_updates: 30, max_epochs: 30, metric: accuracy}
"""
INIT = f'''
from weft.tasks.init import TRAIN, Init, NewRecipe


class EchoInit(Init):
    """Words."""

    about = "Words to themselves."
    examples = ("--train words.txt",)
    options = (TRAIN,)

    def write(self, given, say):
        say("looking at the words")
        return NewRecipe({RECIPE!r}.replace("words.txt", str(given["train"])), [self.check(given["train"])])
'''
PLUGIN = "--plugin", "mine_of_weft"
NAME = "mine_of_weft.echo.task.Echo"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a package, its data and a recipe in it."""
    home, files = tmp_path / "home", {"echo/task.py": TASK, "echo/init.py": INIT}
    package(home, "mine_of_weft", files, monkeypatch)
    (home / "words.txt").write_text("abc\ndefg\ngab\n")
    (home / "my.yaml").write_text(RECIPE)
    return home


def test_it_goes_through_every_command(home: Path) -> None:
    weft("train", "my.yaml", "--run", "run", *PLUGIN, code=0)
    answered = weft("predict", "run", *PLUGIN, stdin=b"bad\nface\n")
    assert (answered.code, answered.lines) == (0, ["bad", "face"]), answered.err
    scored = weft("evaluate", "run", "--split", "valid", *PLUGIN, code=0)
    assert "accuracy" in scored.out and "baseline: always a" in scored.out
    shown = weft("show", "run", *PLUGIN)
    assert "mine_of_weft.echo.task.Echo" in shown.out and "logits" in shown.out, shown.err
    weft("predict", "run", "words.txt", "--output", "out.txt", *PLUGIN, code=0)
    assert Path("out.txt").read_text() == Path("words.txt").read_text()
    assert library.load("run", plugins=["mine_of_weft"]).predict("cab") == "cab"
    weft("train", "my.yaml", "--run", "run", *PLUGIN, code=0)


def test_its_answers_are_drawn(home: Path) -> None:
    assert weft("train", "my.yaml", "--run", "run", *PLUGIN).code == 0
    drawn = weft("predict", "run", "--pictures", "drawn", *PLUGIN, stdin=b"bad\nface\n")
    assert (drawn.code, drawn.lines) == (0, ["bad", "face"]), drawn.err
    assert {path.name for path in Path("drawn").iterdir()} == {"1.png", "1.svg", "2.png", "2.svg"}


def test_init_writes_its_recipe(home: Path) -> None:
    written = weft("init", NAME, "--train", "words.txt", *PLUGIN, code=0)
    assert Path("echo.yaml").read_text() == RECIPE
    assert f"data check words.txt --task {NAME} --plugin mine_of_weft" in written.out
    assert "train echo.yaml --plugin mine_of_weft" in written.out
    assert weft("train", "echo.yaml", "--run", "run", *PLUGIN).code == 0
    checked = weft("data", "check", "words.txt", "--task", NAME, *PLUGIN)
    assert (checked.code, "words.txt" in checked.out) == (0, True), checked.err
    assert "Words to themselves." in weft("init", NAME, *PLUGIN, "--help").out
    assert "--train" in refused(weft("init", NAME, *PLUGIN))


def test_init_of_a_task_without_one_or_that_was_not_allowed(home: Path) -> None:
    assert "--plugin mine_of_weft" in refused(weft("init", NAME, "--train", "words.txt"))
    task = Path("mine_of_weft/echo/task.py")
    task.write_text(task.read_text().replace("def init(", "def unused("))
    assert "method init" in refused(weft("init", NAME, "--train", "words.txt", *PLUGIN))


def test_what_it_has_not_is_said_in_one_sentence(home: Path) -> None:
    assert weft("train", "my.yaml", "--run", "run", *PLUGIN).code == 0
    said = refused(weft("evaluate", "run", "--split=valid", "--plot=x.svg", *PLUGIN))
    assert "--plot" in said and "mine_of_weft.echo.task.Echo" in said
    assert "--beam" in refused(weft("predict", "run", "--beam", 3, *PLUGIN, stdin=b"abc\n"))


def test_a_task_that_was_not_allowed_is_not_imported(home: Path) -> None:
    said = refused(weft("train", "my.yaml", "--run", "run"))
    assert "my.yaml:1" in said and "--plugin mine_of_weft" in said
    assert not any(name.startswith("mine_of_weft") for name in sys.modules)
    assert not Path("run").exists()


def test_a_class_that_is_no_task_is_refused(home: Path) -> None:
    Path("my.yaml").write_text(RECIPE.replace("task.Echo", "task.Table"))
    said = refused(weft("train", "my.yaml", "--run", "run", *PLUGIN))
    assert "my.yaml:1" in said and "weft.tasks.task.Task" in said
