"""A file of torch.save is read as torch.load reads it; hostile ones are refused, and nothing runs."""

import argparse
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch

from weft.errors import CheckpointError
from weft.importing.torchfile import read_torch_file

TYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]


def saved(path: Path, value: Any, protocol: int = 2, *, old: bool = False) -> Path:
    """A file of torch.save; an old one is that of PyTorch before 1.6."""
    torch.save(value, path, pickle_protocol=protocol, _use_new_zipfile_serialization=not old)
    return path


def archive(path: Path, program: bytes, **storages: bytes) -> Path:
    """An archive as torch.save writes it, around a pickle of our own."""
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("archive/data.pkl", program)
        made.writestr("archive/byteorder", b"little")
        for name, content in storages.items():
            made.writestr(f"archive/data/{name.removeprefix('s')}", content)
    return path


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", TYPES)
def test_tensors_equal_those_of_torch_load(tmp_path, kind, protocol, old):
    whole = torch.arange(30).reshape(5, 6).remainder(2 if kind == "bool" else 100).to(getattr(torch, kind))
    value = {
        "whole": whole,
        "part": whole[1:4, ::2],
        "turned": whole.T,
        "one": whole[2, 3],
        "none": whole[:0],
    }
    path = saved(tmp_path / "a.pt", value, protocol, old=old)
    expected, found = torch.load(path, weights_only=False), read_torch_file(path)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor), name
        assert found[name].stride() == tensor.stride()


@pytest.mark.parametrize("old", [False, True])
def test_shared_memory_stays_shared(tmp_path, old):
    table = torch.nn.Parameter(torch.randn(7, 3))
    found = read_torch_file(
        saved(tmp_path / "a.pt", {"embed": table, "head": table, "row": table.data[2]}, old=old)
    )
    found["embed"][2, 0] = 5.0
    assert found["head"][2, 0] == 5.0 and found["row"][0] == 5.0


@pytest.mark.parametrize("protocol", [2, 4])
def test_plain_data_of_every_kind(tmp_path, protocol):
    value = {
        "text": "größe\n",
        "bytes": b"\x00\xff",
        "numbers": [0, 255, 65536, -1, 2**70, 0.5, True, False, None],
        "tuples": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        "set": {1, "a"},
        "ordered": OrderedDict(a=1, b=2),
        "arguments": argparse.Namespace(layers=6, name="small"),
        "size": torch.Size([2, 3]),
        "kind": torch.float16,
        3: {(1, 2): "key"},
    }
    found = read_torch_file(saved(tmp_path / "a.pt", value, protocol))
    assert found == value | {"arguments": {"layers": 6, "name": "small"}, "size": (2, 3)}


def test_a_state_dict_of_a_module(tmp_path):
    module = torch.nn.Sequential(torch.nn.LSTM(3, 5, bidirectional=True), torch.nn.LayerNorm(5))
    found = read_torch_file(saved(tmp_path / "a.pt", {"model": module.state_dict(), "step": 17}))
    assert found["step"] == 17
    assert all(torch.equal(found["model"][name], one) for name, one in module.state_dict().items())


class Runs:
    """Unpickling this creates a file."""

    def __init__(self, call: Any, *args: Any) -> None:
        self.call = call, args

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_what_would_run_code_is_refused_and_does_not_run(tmp_path, protocol, old):
    import os

    trap = tmp_path / "trap"
    for number, value in enumerate(
        [
            Runs(os.system, f"touch {trap}"),
            {"model": torch.zeros(2), "more": Runs(eval, f"open({str(trap)!r}, 'w')")},
            Runs(open, str(trap), "w"),
            Runs(getattr, "text", "upper"),
            os.system,
            torch.nn.Linear,
            torch.nn.Linear(2, 3),
            Path("a"),
        ]
    ):
        with pytest.raises(CheckpointError, match=f"{number}.pt"):
            read_torch_file(saved(tmp_path / f"{number}.pt", value, protocol, old=old))
    assert not trap.exists()


def reference(size: int = 4, key: str = "0", kind: str = "FloatStorage") -> bytes:
    """The opcodes of a storage."""
    name = f"ctorch\n{kind}\n".encode()
    return b"(X\x07\x00\x00\x00storage" + name + text(key) + text("cpu") + b"K" + bytes([size]) + b"tQ"


def text(value: str) -> bytes:
    return b"X" + len(value).to_bytes(4, "little") + value.encode()


def tensor(sizes: bytes, strides: bytes, offset: int = 0, **storage: Any) -> bytes:
    start = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n("
    return start + reference(**storage) + b"K" + bytes([offset]) + sizes + strides + b"\x89NtR."


FOUR = torch.arange(4.0).numpy().tobytes()
SQUARE = tensor(b"K\x02K\x02\x86", b"K\x02K\x01\x86")
TOWER = b"})" + b"".join(b"q" + bytes([n]) + b"h" + bytes([n]) + b"\x86" for n in range(100)) + b"K\x01s"
HOSTILE = {
    "a key that takes 2 ** 100 steps to hash": b"\x80\x02" + TOWER + b".",
    "two gigabytes of zeros": b"\x80\x02c__builtin__\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
    "a tensor of four gigabytes": b"\x80\x02ctorch\nFloatTensor\nJ\x00\x00\x00\x40\x85R.",
    "beyond its storage": tensor(b"K\x05\x85", b"K\x01\x85"),
    "beyond by an offset": tensor(b"K\x04\x85", b"K\x01\x85", offset=1),
    "many times its storage": tensor(b"K\xff\x85", b"K\x00\x85"),
    "negative size": tensor(b"J\xff\xff\xff\xff\x85", b"K\x01\x85"),
    "fewer strides": tensor(b"K\x02K\x02\x86", b"K\x01\x85"),
    "a storage outside the archive": tensor(b"K\x04\x85", b"K\x01\x85", key="../../secret"),
    "a missing storage": tensor(b"K\x04\x85", b"K\x01\x85", key="7"),
    "a storage of another size": tensor(b"K\x02\x85", b"K\x01\x85", size=2),
    "an unknown storage": tensor(b"K\x04\x85", b"K\x01\x85", kind="QInt8Storage"),
    "no end": b"\x80\x02}",
    "no mark": b"\x80\x02K\x01e.",
    "an empty stack": b"\x80\x02.",
    "two results": b"\x80\x02K\x01K\x02.",
    "a key of nested tuples": b"\x80\x02}" + b"K\x01\x85" * 1 + b"\x85" * 30 + b"K\x01s.",
    "an extension": b"\x80\x02\x82\x01.",
    "an object": b"\x80\x02(cos\nsystem\no.",
    "an attribute": b"\x80\x02]}X\x01\x00\x00\x00aK\x01sb.",
    "not a pickle": b"\x00\x01\x02\x03",
    "truncated text": b"\x80\x02X\xff\x00\x00\x00abc",
    "items for a number": b"\x80\x02K\x01K\x02a.",
    "an unknown memo": b"\x80\x02h\x07.",
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_forged_programs_are_refused_in_one_sentence(tmp_path, attack):
    path = archive(tmp_path / "forged.pt", HOSTILE[attack], s0=FOUR)
    with pytest.raises(CheckpointError, match=r"forged\.pt") as refused:
        read_torch_file(path)
    assert "\n" not in str(refused.value)


def test_the_forgery_is_right_but_for_its_fault(tmp_path):
    path = archive(tmp_path / "fine.pt", SQUARE, s0=FOUR)
    assert read_torch_file(path).tolist() == [[0.0, 1.0], [2.0, 3.0]]


def test_a_tower_of_shared_tuples_is_read_in_linear_time(tmp_path):
    program = (
        b"\x80\x02)" + b"".join(b"q" + bytes([n]) + b"h" + bytes([n]) + b"\x86" for n in range(100)) + b"."
    )
    found = read_torch_file(archive(tmp_path / "a.pt", program))
    for _ in range(100):
        assert found[0] is found[1]
        found = found[0]
    assert found == ()


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressed_or_huge_contents_are_refused_before_they_are_read(tmp_path, method):
    for name in ("data.pkl", "byteorder", "data/0"):
        path = tmp_path / f"{method}.pt"
        with zipfile.ZipFile(path, "w") as made:
            for each, content in {"data.pkl": SQUARE, "byteorder": b"little", "data/0": FOUR}.items():
                kind = method if each == name else zipfile.ZIP_STORED
                made.writestr(f"archive/{each}", content, kind)
        content = bytearray(path.read_bytes())
        content[content.index(f"archive/{name}".encode()) + 20] ^= 255  # a damaged stream must not matter
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=rf"{method}\.pt: {name}: expected no compression"):
            read_torch_file(path)
    with zipfile.ZipFile(tmp_path / "huge.pt", "w") as made:
        made.writestr("archive/data.pkl", SQUARE)
        made.writestr("archive/byteorder", b"little" * 100)
    with pytest.raises(CheckpointError, match="byteorder: expected at most 6 bytes, got 600"):
        read_torch_file(tmp_path / "huge.pt")


@pytest.mark.slow
def test_every_damage_of_an_old_file_is_refused_or_harmless(tmp_path):
    value = {"a": torch.arange(7), "b": torch.arange(3.0), "c": torch.zeros(0)}
    path = saved(tmp_path / "a.pt", value, old=True)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place])
        with pytest.raises(CheckpointError, match=r"a\.pt"):
            read_torch_file(path)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
        try:
            read_torch_file(path)
        except CheckpointError as error:
            assert "\n" not in str(error)


def test_an_old_file_claims_no_more_memory_than_its_size(tmp_path):
    path = saved(tmp_path / "a.pt", {"a": torch.arange(7)}, old=True)
    whole = path.read_bytes()
    assert whole.count(b"K\x07Ntq") == 1
    path.write_bytes(whole.replace(b"K\x07Ntq", b"\x8a\x06\xff\xff\xff\xff\xff\x00Ntq"))
    with pytest.raises(CheckpointError, match="larger than the file"):
        read_torch_file(path)


def test_other_files_are_refused(tmp_path):
    good = saved(tmp_path / "good.pt", {"a": torch.randn(50)}).read_bytes()
    middle = good.index(b"data/0") + 200
    for number, content in enumerate(
        [b"", b"text", pickle.dumps({"a": 1}), good[:-30], good[: len(good) // 2],
         good[:middle] + bytes([good[middle] ^ 255]) + good[middle + 1 :]]
    ):  # fmt: skip
        path = tmp_path / f"{number}.pt"
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=f"{number}.pt"):
            read_torch_file(path)
    with pytest.raises(CheckpointError, match=r"missing\.pt"):
        read_torch_file(tmp_path / "missing.pt")


def test_containers_of_protocol_0_keep_what_is_in_them(tmp_path):
    program = b"(Va\nI1\nVb\n((I2\nltd."  # a dict of a number and a tuple with a list
    assert read_torch_file(archive(tmp_path / "x.pt", program)) == pickle.loads(program)
