"""The compiled cells are optional: without a compiler, or with one that fails, there is a reason why."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

from weft import native
from weft.native import build, library


def test_without_a_compiler_nothing_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    made, reason = build.build(tmp_path)
    assert made == []
    assert reason


def test_a_compiler_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(build.sys, "platform", "linux")
    monkeypatch.setenv("CXX", "false")
    made, reason = build.build(tmp_path)
    assert made == [] and reason.startswith("false failed")
    assert list(tmp_path.iterdir()) == []


def test_a_compiler_that_knows_no_tiles_compiles_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "old"
    compiler.write_text(
        '#!/bin/sh\ncase "$*" in *-mamx*) exit 1;; esac\nfor last; do :; done\ntouch "$last"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setattr(build.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(build.sys, "platform", "linux")
    monkeypatch.setenv("CXX", str(compiler))
    (tmp_path / "made").mkdir()
    made, reason = build.build(tmp_path / "made")
    assert reason == "" and {path.name for path in made} == {
        path.name for path in (tmp_path / "made").iterdir()
    }
    assert {path.name.split(".")[1] for path in made} == {"avx2", "avx512"}
    assert len(made) == 2 * (len(build.SOURCES) - 1)  # tiles.cpp is for nothing else


def test_another_processor_is_not_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build.platform, "machine", lambda: "aarch64")
    assert build.build(tmp_path) == ([], f"no compiled cells for {build.sys.platform} on aarch64")


@pytest.mark.parametrize("capability", ["DEFAULT", "AVX2", "AVX512"])
def test_the_loader_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capability: str) -> None:
    monkeypatch.setattr(library.torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    found = native.loaded.__wrapped__()
    assert found.library is None
    assert "neither" in found.reason if capability == "DEFAULT" else "not compiled" in found.reason


@pytest.mark.parametrize("capability", ["AVX2", "AVX512"])
def test_a_processor_without_tiles_is_said_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capability: str
) -> None:
    monkeypatch.setattr(library.torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    reason = native.loaded.__wrapped__("tiles").reason
    assert reason == native.NO_TILES if capability == "AVX2" else "not compiled" in reason


def test_a_library_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(library.torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    (tmp_path / "cells.avx2.so").write_text("no library")
    assert "cannot be loaded" in native.loaded.__wrapped__().reason


def test_a_package_built_without_its_compiled_code_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("hatchling")
    place = Path(build.__file__).resolve().parents[2] / "hatch_build.py"
    spec = importlib.util.spec_from_file_location("weft_hatch_build", place)
    assert spec and spec.loader
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    (tmp_path / "weft/native").mkdir(parents=True)
    (tmp_path / "weft/native/build.py").write_text(
        "def build():\n    return [], 'no C++ compiler was found'\n"
    )
    told: list[str] = []
    monkeypatch.setattr(hook, "_tell", told.append)
    app = SimpleNamespace(display_warning=told.append)
    hook.Cells(str(tmp_path), {}, None, None, "", "wheel", app).initialize("standard", {"artifacts": []})
    assert len(told) == 2 and all(
        "WITHOUT its compiled code" in said and "apt install" in said for said in told
    )
