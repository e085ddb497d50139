"""A part of a user's own that lacks something: one sentence with its class, the mistake and the page."""

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.commands.shell import refused, weft
from tests.plugins import package
from tests.test_contributing import CLASSES, FILES
from weft import rooms
from weft.config.plugins import explained_failure, named_part
from weft.errors import ConfigError
from weft.inspect.views.view import View
from weft.metrics.metric import Metric
from weft.nn.cells.cell import Cell
from weft.nn.decoders.decoder import Decoder
from weft.nn.encoders.encoder import Encoder
from weft.nn.forecasters.forecaster import Forecaster
from weft.nn.heads.head import Head
from weft.nn.pools import Pool
from weft.nn.scores import Score
from weft.testing import check_cell
from weft.train.feeding import Feeding
from weft.train.objectives.objective import Objective
from weft.train.optimisers import Optimiser
from weft.train.schedules import Schedule
from weft.train.trackers import Tracker

PACKAGE = "mistaken_parts"
CONTRACTS = {
    "cell": Cell,
    "metric": Metric,
    "score": Score,
    "encoder": Encoder,
    "decoder": Decoder,
    "pool": Pool,
    "optimiser": Optimiser,
    "schedule": Schedule,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package in the working directory."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return package(tmp_path, PACKAGE, {}, monkeypatch) / PACKAGE


def changed(folder: Path, kind: str, old: str, new: str) -> Any:
    """The class of a kind of part, from the pages, after a change."""
    assert old in FILES[kind]
    (folder / f"{kind}.py").write_text(FILES[kind].replace(old, new))
    importlib.invalidate_caches()
    return named_part("--metric", f"{PACKAGE}.{kind}.{CLASSES[kind]}", CONTRACTS[kind], [PACKAGE])


@pytest.mark.parametrize(
    ("kind", "old", "new", "said"),
    [
        ("cell", "def step(", "def stepp(", "lacks the method step; see docs/guides/add-a-cell.md"),
        ("cell", "def start(", "def begun(", "lacks the method start"),
        (
            "cell",
            "in_size: int, size: int, *",
            "size: int, *",
            "expected a constructor that takes in_size, size",
        ),
        ("cell", "import torch\n", "import torch\nunknown\n", "cannot be imported: NameError"),
        ("cell", "import torch\n", "import no_such_library\n", "cannot be imported: No module named"),
        ("cell", "return h, (h,)", "return h, (h,", "cannot be imported: SyntaxError"),
        (
            "metric",
            '    name = "same length"\n',
            "",
            "lacks a value for name; see docs/guides/add-a-metric.md",
        ),
        ("metric", "def signature(", "def signed(", "lacks the method signature"),
        ("metric", "def statistics(", "def counted(", "lacks the method statistics"),
        (
            "score",
            "def forward(",
            "def forwards(",
            "lacks the method forward; see docs/guides/add-a-score.md",
        ),
        ("encoder", "def forward(", "def forwards(", "lacks the method forward; see CONTRIBUTING.md"),
        ("decoder", "def start(", "def begin(", "lacks the method start"),
        (
            "pool",
            "memory_size)",
            "memory_size, size)",
            "takes memory_size by position, got memory_size, size",
        ),
        ("optimiser", "def build(", "def built(", "lacks the method build"),
        ("schedule", "def factor(", "def rate(", "lacks the method factor"),
    ],
)
def test_what_a_class_lacks_is_said_when_it_is_named(
    kind: str, old: str, new: str, said: str, folder: Path
) -> None:
    with pytest.raises(ConfigError, match=rf"{PACKAGE}\.{kind}\.{CLASSES[kind]}") as error:
        changed(folder, kind, old, new)
    assert said in str(error.value)


def test_the_parts_of_the_pages_lack_nothing(folder: Path) -> None:
    for kind in CONTRACTS:
        assert changed(folder, kind, "class", "class").__name__ == CLASSES[kind]


def test_a_name_that_the_constructor_sets_is_one(folder: Path) -> None:
    begin = "def __init__(self, *, tolerance: int = 0) -> None:\n"
    old, new = f'name = "same length"\n\n    {begin}', f"{begin}        self.name = str(tolerance)\n"
    with_name = changed(folder, "metric", old, new)
    assert not hasattr(with_name, "name") and with_name(tolerance=2).name == "2"


@pytest.mark.parametrize(
    "contract", [*CONTRACTS.values(), Head, Feeding, Objective, Forecaster, Tracker, View]
)
def test_every_part_of_weft_is_complete(contract: type) -> None:
    room = rooms.room_of(contract)
    own = rooms.classes(room, View) if contract is View else rooms.parts(room, contract).values()
    assert len(own) > 1
    for part in own:
        rooms.check_complete(part)


def test_what_a_layer_returns_is_checked(folder: Path) -> None:
    x = torch.zeros(2, 3, 5)
    cell = changed(folder, "cell", "return h, (h,)", "return h")(5, 7)
    with pytest.raises(ConfigError, match=r"Leaky\.step: expected it to return two values.*\[2, 7\]"):
        cell(x, cell.start(x))
    encoder = changed(folder, "encoder", "return Memory(h, mask, masks.mean(h, mask))", "return h")(5)
    with pytest.raises(ConfigError, match=r"Wordwise\.forward: expected it to return a Memory, got a tensor"):
        encoder(x, torch.ones(2, 3, dtype=torch.bool))
    score = changed(folder, "score", "return self.factor *", "self.factor *")(5, 5)
    with pytest.raises(ConfigError, match=r"Doubled\.forward: expected it to return a tensor, got None"):
        score(x, score.prepare(x))


def test_what_a_metric_returns_is_checked(folder: Path) -> None:
    lines = ["a b", "c"]
    nothing = "    def value(self, totals):\n        pass\n\n    def signature("
    metric = changed(folder, "metric", "    def signature(", nothing)()
    with pytest.raises(ConfigError, match=r"SameLength\.value: expected it to return a number.*got None"):
        metric.score(lines, lines)


def test_the_checks_of_ones_own_parts_say_it_too() -> None:
    class Half(Cell):
        def start(self, like: torch.Tensor) -> tuple[torch.Tensor]:
            return (like.new_zeros(len(like), self.size),)

    with pytest.raises(ConfigError, match=r"Half: it lacks the method step; see docs/guides/add-a-cell\.md"):
        check_cell(Half)  # type: ignore[type-abstract]


def test_an_exception_inside_a_part_becomes_one_sentence(folder: Path) -> None:
    kind = changed(folder, "metric", "zip(hypotheses", "zzip(hypotheses")
    with pytest.raises(NameError) as error:
        kind().statistics(["a"], ["a"], None)
    said = explained_failure(error.value, [PACKAGE])
    assert f"{PACKAGE}/metric.py:" in said and "SameLength.statistics: NameError: " in said
    assert "docs/guides/add-a-metric.md" in said and "WEFT_TRACEBACK=1" in said
    with pytest.raises(TypeError) as wrong:
        kind(tolerance=1, other=2)
    assert f"{PACKAGE}.metric.SameLength: TypeError: " in explained_failure(wrong.value, [PACKAGE])
    with pytest.raises(AttributeError) as absent:
        print(kind().nothing)
    assert f"{PACKAGE}.metric.SameLength: " in explained_failure(absent.value, [PACKAGE])


def test_a_command_ends_with_that_sentence(folder: Path) -> None:
    (folder / "task.py").write_text(
        "from weft.tasks.task import Task\n"
        "class Lost(Task):\n"
        "    sections, better = {}, {'loss': 'lower'}\n"
        "    def about(self):\n        return 'nothing'\n"
        "    def rehearse(self):\n        return None\n"
        "    def open(self, run):\n        return None\n"
    )
    Path("my.yaml").write_text(f"task: {PACKAGE}.task.Lost\ntraining: {{max_updates: 1}}\n")
    said = refused(weft("train", "my.yaml", "--plugin", PACKAGE))
    assert f"{PACKAGE}.task.Lost: Lost: define small_model" in said and "docs/guides/add-a-task.md" in said
