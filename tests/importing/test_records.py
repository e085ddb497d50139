"""Objects of toolkits in a torch.save file become records; no class is imported, made or called."""

import enum
import sys
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from weft.errors import CheckpointError
from weft.importing.pickled import Name, Record
from weft.importing.torchfile import content, read_torch_file, settings, value_of


class Node:
    """An object with attributes, such as a node of omegaconf."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Slotted:
    """An object with slots."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 7


class Meters(OrderedDict[str, Any]):
    """A dict with attributes, such as fairseq's meters."""


class Choice(enum.Enum):
    """A choice among settings."""

    SOFT = "soft"

    def __reduce_ex__(self, protocol: Any) -> Any:  # Python 3.11.0 to 3.11.3 would write a call of getattr
        return type(self), (self.value,)


class Trap:
    """Unpickling this touches a file, in every way that a class has."""

    def __new__(cls, *args: Any) -> "Trap":
        Path(sys.modules["fairseq"].trap).touch()
        return super().__new__(cls)

    def __setstate__(self, state: Any) -> None:
        Path(sys.modules["fairseq"].trap).touch()


CLASSES = (Node, Slotted, Meters, Choice, Trap)


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A function that saves a value with the classes above as classes of a package, which then is gone."""

    def save(value: Any, package: str = "fairseq.logging", protocol: int = 2) -> Path:
        with monkeypatch.context() as patch:
            module = ModuleType(package)
            patch.setitem(sys.modules, package, module)
            patch.setitem(sys.modules, package.partition(".")[0], module)
            for one in CLASSES:
                patch.setattr(one, "__module__", package)
                patch.setattr(module, one.__name__, one, raising=False)
            torch.save(value, tmp_path / "a.pt", pickle_protocol=protocol)
        return tmp_path / "a.pt"

    return save


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_attributes_are_items_of_a_record(saved, protocol):
    meters = Meters(loss=Node(sum=3.5, count=2))
    meters.round = 3
    found = read_torch_file(
        saved({"m": meters, "s": Slotted(), "c": Choice.SOFT, "k": Node}, protocol=protocol)
    )
    assert found["m"].kind == "fairseq.logging.Meters" and found["m"]["round"] == 3
    assert found["m"]["loss"] == {"sum": 3.5, "count": 2} and isinstance(found["m"]["loss"], Record)
    assert found["s"] == {"size": 7} and found["c"].args == ("soft",)
    assert found["k"] == Name("fairseq.logging", "Node")
    assert "fairseq" not in sys.modules and "fairseq.logging" not in sys.modules


def test_counts_and_defaults_are_dicts(saved):
    counts = defaultdict(int, a=1)
    found = read_torch_file(
        saved({"counter": Counter("abba"), "default": counts, "nodes": defaultdict(Node, b=2)})
    )
    assert found == {"counter": {"a": 2, "b": 2}, "default": {"a": 1}, "nodes": {"b": 2}}


def test_settings_are_read_from_containers_nodes_and_choices(saved):
    parent = Node()
    nodes = {
        "layers": Node(_val=6, _parent=parent),
        "kind": Node(_val=Choice.SOFT),
        "later": Node(_val="${model.layers}"),
        "missing": "???",
        "rates": [0.1],
        "inner": Node(_content={"size": 5}),
    }
    parent.__dict__.update(_content=nodes, _parent=None)
    found = read_torch_file(saved({"cfg": parent}, "omegaconf.dictconfig"))["cfg"]
    assert settings(found) == {"layers": 6, "kind": "soft"}
    assert settings(content(found)["inner"]) == {"size": 5}
    assert len(str(found)) < 60  # though it contains itself
    assert value_of(read_torch_file(saved(Choice.SOFT))) == "soft"
    assert settings([1, 2]) == {} and settings(None) == {}


def test_an_omegaconf_container_gives_its_settings(tmp_path):
    omegaconf = pytest.importorskip("omegaconf", reason="omegaconf is not installed")
    made = omegaconf.OmegaConf.create({"model": {"layers": 6, "path": None, "size": "${model.layers}"}})
    torch.save({"cfg": made}, tmp_path / "a.pt")
    found = content(read_torch_file(tmp_path / "a.pt")["cfg"])
    assert settings(found["model"]) == {"layers": 6, "path": None}


@pytest.mark.parametrize("protocol", [2, 4])
def test_no_class_of_a_toolkit_is_imported_or_made(saved, tmp_path, monkeypatch, protocol):
    path = saved({"x": object.__new__(Trap), "y": Node(inner=object.__new__(Trap))}, protocol=protocol)
    (tmp_path / "fairseq").mkdir()
    trap = tmp_path / "trap"
    (tmp_path / "fairseq" / "__init__.py").write_text(f"open({str(trap)!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    assert read_torch_file(path)["x"].kind == "fairseq.logging.Trap"
    assert "fairseq" not in sys.modules and not trap.exists()


class Calls:
    """Pickled as a call."""

    def __init__(self, call: Any, *args: Any) -> None:
        self.call = call, args

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_record_smuggles_in_no_call_and_no_other_name(saved, tmp_path, protocol):
    import os

    trap = tmp_path / "trap"
    for number, value in enumerate(
        [
            Node(state=Calls(os.system, f"touch {trap}")),
            Node(state=os.system),
            Node(state=[eval]),
            Node(state=getattr),
            defaultdict(os.getcwd),
            defaultdict(eval),
            Calls(Counter, Calls(eval, f"open({str(trap)!r}, 'w')")),
            Calls(type, "A", (), {}),
            Node(state=torch.nn.Linear(2, 3)),
        ]
    ):
        with pytest.raises(CheckpointError, match=r"a\.pt") as refused:
            read_torch_file(saved({number: value}, protocol=protocol))
        assert "\n" not in str(refused.value)
    assert not trap.exists()


@pytest.mark.parametrize("package", ["omegaconf_", "fairseqs.logging", "os", "torch.nn", "builtins"])
def test_objects_of_other_packages_are_refused(tmp_path, package):
    for opcodes in (b")\x81", b"(tR", b")\x81}X\x01\x00\x00\x00aK\x01sb"):
        program = b"\x80\x02c" + package.encode() + b"\nThing\n" + opcodes + b"."
        with zipfile.ZipFile(tmp_path / "a.pt", "w") as made:
            made.writestr("archive/data.pkl", program)
        with pytest.raises(CheckpointError, match="nothing was run"):
            read_torch_file(tmp_path / "a.pt")
