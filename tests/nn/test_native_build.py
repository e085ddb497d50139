"""Compiled code is optional, for one set of instructions, chosen when it is loaded; freed memory is kept."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.slow import leading
from weft import native
from weft.native import build
from weft.nn.kernels import decoding, light, matrix
from weft.search import compiled as whole


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


def test_an_old_compiler_compiles_what_it_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "old"
    compiler.write_text(
        '#!/bin/sh\ncase "$*" in *-mamx*|*-mavx512bf16*) exit 1;; esac\nfor last; do :; done\ntouch "$last"\n'
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
    monkeypatch.setattr(native.torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    found = native.loaded.__wrapped__()
    assert found.library is None
    assert "neither" in found.reason if capability == "DEFAULT" else "not compiled" in found.reason


@pytest.mark.parametrize("capability", ["AVX2", "AVX512"])
def test_a_processor_without_tiles_is_said_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capability: str
) -> None:
    monkeypatch.setattr(native.torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    reason = native.loaded.__wrapped__("tiles").reason
    assert reason == native.NO_TILES if capability == "AVX2" else "not compiled" in reason


def test_a_library_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(native.torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    (tmp_path / "cells.avx2.so").write_text("no library")
    assert "cannot be loaded" in native.loaded.__wrapped__().reason


def test_a_library_without_a_function_is_told_to_be_of_other_sources(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = "avx2" if native.loaded("light").reason.startswith("AVX2") else "avx512"
    if not (build.HERE / f"light.{name}.so").exists():
        pytest.skip(native.loaded("light").reason)
    shutil.copy(build.HERE / f"light.{name}.so", tmp_path / f"searching.{name}.so")
    monkeypatch.setattr(native.torch.backends.cpu, "get_cpu_capability", lambda: name.upper())
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    reason = native.loaded.__wrapped__("searching").reason
    assert reason == f"searching.{name}.so was compiled from other sources; install Weft again"


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


@pytest.mark.parametrize("capability", ["DEFAULT", "AVX2", "AVX512"])
@pytest.mark.parametrize("tiled", [False, True])
def test_the_processor_decides_at_run_time_which_library_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capability: str, tiled: bool
) -> None:
    for source, name in build._targets():
        (tmp_path / build.file_name(name, source)).touch()
    monkeypatch.setattr(native.torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(native, "tiles", lambda: tiled)
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    monkeypatch.setattr(native, "_load", lambda path, source: native.LoadedLibrary(path.name, ""))
    expected = {"DEFAULT": None, "AVX2": "avx2", "AVX512": "amx" if tiled else "bf16"}[capability]
    assert native.loaded.__wrapped__("cells").library == (expected and f"cells.{expected}.so")
    plain = "avx512" if capability == "AVX512" else expected  # light.cpp has no code for tiles or bfloat16
    assert native.loaded.__wrapped__("light").library == (plain and f"light.{plain}.so")


def test_the_running_processor_loads_what_torch_says_it_has() -> None:
    if native.loaded().library is None:
        pytest.skip(f"no compiled code here: {native.loaded().reason}")
    code = "from weft import native; print(native.loaded('light').reason)"
    told = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"ATEN_CPU_CAPABILITY": "avx2"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert told.stdout.startswith("AVX2")


def test_no_flag_depends_on_the_processor_that_compiles() -> None:
    flags = [*build.FLAGS, *(flag for flags in build.SETS.values() for flag in flags)]
    assert not [flag for flag in flags if flag.startswith(("-march", "-mtune", "-mcpu"))]


@pytest.mark.parametrize("name", leading(["avx2", "avx512"]))
def test_a_library_has_only_the_instructions_in_its_name(name: str) -> None:
    tool = shutil.which("objdump")
    found = sorted(build.HERE.glob(f"*.{name}.so"))
    if tool is None or not found:
        pytest.skip("objdump (binutils) or the compiled libraries are missing")
    beyond = r"\b(tdp|tile|ldtilecfg)\w*\b" if name == "avx512" else r"%zmm|%k[1-7]\b|%tmm"
    for path in found:
        text = subprocess.run([tool, "-d", str(path)], check=True, capture_output=True, text=True).stdout
        assert f"%{'z' if name == 'avx512' else 'y'}mm" in text
        assert not re.search(beyond, text), path.name


@pytest.mark.parametrize(
    ("file", "name", "value"),
    [
        ("selective.cpp", "CHUNK", light.CHUNK),
        ("selective.cpp", "MOST", light.MOST),
        ("matrix.cpp", "CHUNK", matrix.KEPT_STEPS),
        ("searching.cpp", "MOST", whole.MOST),
        ("layers.h", "AT_ONCE", decoding.AT_ONCE),
    ],
)
def test_python_allows_what_fits_into_the_buffers_of_compiled_code(file: str, name: str, value: int) -> None:
    found = re.search(rf"constexpr \w+ [^;]*\b{name} = (\d+)", (build.HERE / file).read_text("utf-8"))
    assert found and int(found[1]) == value


def test_every_number_of_registers_that_a_head_may_have_is_compiled() -> None:
    cases = re.findall(r"HEAD\((\d+)\)", (build.HERE / "layers.h").read_text("utf-8"))
    assert sorted(map(int, cases)) == list(range(1, decoding.MOST_REGISTERS + 1))


FAULTS = """
import json, resource, sys
import torch
from weft.native import keep_freed

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.zeros(2, 2_000_000).add_(1)  # 16 MB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

there = keep_freed()
faults()
print(json.dumps([there, faults()]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have no such setting")
def test_a_kept_block_is_not_mapped_again() -> None:
    there, faults = json.loads(
        subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True).stdout
    )
    if not there:
        pytest.skip("this C library has no such setting")
    assert faults < 4_000  # pages of 4 KB in one such tensor; twenty new ones would have 80,000
