"""Weights from a stranger: whatever their header claims, one sentence, soon, in bounded memory.

Read next: ../config/test_attacks.py, recipes; weft/store/weights.py.
"""

import json
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weft.errors import CheckpointError
from weft.importing.checkpoint import read_checkpoint
from weft.store import weights

MORE = 512 * 2**20
"""Bytes of address space beyond what the process has already."""


def packed(header: Any, data: bytes = b"\0" * 16, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def tensor(shape: list[int], start: int, end: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


ATTACKS = {
    "a header of 4 GB": packed({}, length=2**32),
    "a header longer than any file": packed({}, length=2**64 - 1),
    "overlapping tensors": packed({"a": tensor([4], 0, 16), "b": tensor([4], 0, 16)}),
    "a negative offset": packed({"a": tensor([4], -16, 0)}),
    "an end before its start": packed({"a": tensor([4], 16, 0)}),
    "an end beyond the file": packed({"a": tensor([2**20], 0, 2**22)}),
    "a negative size": packed({"a": tensor([-4], 0, 16)}),
    "a shape that overflows": packed({"a": tensor([2**33, 2**33], 0, 16)}),
    "a huge empty shape": packed({"a": tensor([2**62, 2**62], 0, 0)}),
    "a hole": packed({"a": tensor([1], 12, 16)}),
    "an unknown type": packed({"a": tensor([4], 0, 16, "PICKLE")}),
    "deep JSON": packed(b"[" * 200_000),
    "deep metadata": packed({"__metadata__": {"weft": "[" * 200_000}, "a": tensor([4], 0, 16)}),
    "a pickle": b"\x80\x04cos\nsystem\n(S'touch harm'\ntR.",
    "a zip as torch.save writes": b"PK\x03\x04" + b"\0" * 64,
    "nothing": b"",
}


@pytest.fixture(autouse=True)
def _little_memory() -> Iterator[None]:
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MORE, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("name", ATTACKS)
def test_weights_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(ATTACKS[name])
    with pytest.raises(CheckpointError, match=r"model\.safetensors: is damaged \(.*\); delete it") as caught:
        weights.load(path)
    assert len(str(caught.value)) < 500 + len(str(path)) and "\n" not in str(caught.value)
    assert weights.metadata(path) == {}
    assert [each.name for each in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("name", [name for name in ATTACKS if name != "deep metadata"])
def test_weights_of_an_imported_checkpoint(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(ATTACKS[name])
    with pytest.raises(CheckpointError, match=r"model\.safetensors: cannot be read \(.*\); fetch it again"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("config", [b"[" * 100_000, b"[]", b"\xff", b"{", b'{"a": ' * 50_000])
def test_the_configuration_of_an_imported_checkpoint(tmp_path: Path, config: bytes) -> None:
    (tmp_path / "config.json").write_bytes(config)
    (tmp_path / "model.safetensors").write_bytes(packed({}, b""))
    with pytest.raises(CheckpointError, match=r"config\.json: cannot be read \(.*\); fetch it again"):
        read_checkpoint(tmp_path)
