"""A folder of parts: a new file is found at once; one part per file, with the file's name."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from weft import rooms
from weft.errors import ConfigError
from weft.nn import cells, decoders, encoders, heads, pools, scores
from weft.nn.cells.cell import Cell
from weft.nn.cells.lstm import LSTM
from weft.nn.decoders.decoder import Decoder
from weft.nn.encoders.encoder import Encoder
from weft.nn.heads.head import Head
from weft.nn.pools import Pool
from weft.nn.scores import Score
from weft.train import feeding, optimisers, schedules
from weft.train.feeding import Feeding
from weft.train.optimisers import Optimiser
from weft.train.schedules import Schedule

ROOMS = [(cells, Cell), (encoders, Encoder), (decoders, Decoder), (heads, Head)]

PART = """
from weft.nn.cells.cell import Cell

class {name}(Cell):
    def start(self, like):
        return (like,)

    def step(self, x, state):
        return x, state
"""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ModuleType, Path]]:
    """A folder of parts outside the package."""
    folder = tmp_path / "guestroom"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("guestroom"), folder
    for name in [name for name in sys.modules if name.split(".")[0] == "guestroom"]:
        del sys.modules[name]


def test_a_file_is_found_the_moment_it_exists(room: tuple[ModuleType, Path]) -> None:
    package, folder = room
    assert rooms.parts(package, Cell) == {}
    (folder / "echo.py").write_text(PART.format(name="Echo") + "\nclass _Helper(Echo):\n    pass\n")
    (folder / "tools.py").write_text("from weft.nn.cells.lstm import LSTM\n\nclass Unrelated:\n    pass\n")
    importlib.invalidate_caches()
    assert {name: part.__name__ for name, part in rooms.parts(package, Cell).items()} == {"echo": "Echo"}
    assert rooms.find(package, Cell, "echo").__name__ == "Echo"


def test_to_find_one_part_no_other_file_is_read(room: tuple[ModuleType, Path]) -> None:
    package, folder = room
    (folder / "echo.py").write_text(PART.format(name="Echo"))
    (folder / "broken.py").write_text("raise RuntimeError('this file was read')")
    importlib.invalidate_caches()
    assert rooms.find(package, Cell, "echo").__name__ == "Echo"
    assert rooms.get(package, Cell, "nothing") is None
    with pytest.raises(RuntimeError, match="was read"):
        rooms.find(package, Cell, "broken")


def test_a_file_holds_one_part(room: tuple[ModuleType, Path]) -> None:
    package, folder = room
    (folder / "twins.py").write_text(PART.format(name="Castor") + PART.format(name="Pollux"))
    importlib.invalidate_caches()
    with pytest.raises(
        TypeError, match=r"guestroom.twins defines Castor and Pollux; a file must define only one"
    ):
        rooms.parts(package, Cell)


def test_a_part_is_found_by_the_name_of_its_file() -> None:
    assert rooms.find(cells, Cell, "lstm") is LSTM
    assert rooms.room_of(Cell) is cells and rooms.name_of(LSTM) == "lstm"


def test_small_parts_share_a_file_and_are_found_by_the_name_of_their_class() -> None:
    assert rooms.room_of(Score) is scores and rooms.room_of(Pool) is pools
    assert set(rooms.parts(scores, Score)) == {"additive", "bilinear", "cosine", "dot", "scaled", "uniform"}
    assert rooms.find(schedules, Schedule, "cosine_restarts") is schedules.CosineRestarts
    assert rooms.find(schedules, Schedule, "linear") is schedules.LinearSchedule
    assert rooms.get(schedules, Schedule, "schedule") is None
    for room, contract in [(schedules, Schedule), (optimisers, Optimiser), (feeding, Feeding)]:
        for name, part in rooms.parts(room, contract).items():
            assert rooms.name_of(part) == name


def test_a_wrong_name_is_answered_with_the_nearest_or_with_all() -> None:
    with pytest.raises(ConfigError, match=r"^unknown cell 'lsmt'; did you mean 'lstm'\?$"):
        rooms.find(cells, Cell, "lsmt")
    with pytest.raises(ConfigError, match=r"^unknown score 'zzz'; there is additive, bilinear, cosine, dot"):
        rooms.find(scores, Score, "zzz")


@pytest.mark.parametrize(("package", "contract"), ROOMS, ids=lambda value: getattr(value, "__name__", None))
def test_every_file_but_the_contract_holds_a_part(package: ModuleType, contract: type) -> None:
    files = {path.stem for path in Path(package.__path__[0]).glob("*.py")} - {"__init__", "initial"}
    if package is cells:
        files -= {"convolution", "matrix"}  # what several of them use
    found = rooms.parts(package, contract)
    for name, part in found.items():
        assert rooms.room_of(contract) is package and rooms.find(package, contract, name) is part
        assert rooms.name_of(part) == name
    homes = {part.__module__.rpartition(".")[2] for part in found.values()}
    assert homes | {contract.__module__.rpartition(".")[2]} == files
