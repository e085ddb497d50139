"""Installed packages are the tested ones, and builds are reproducible."""

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from weft.native import build as native_build

ROOT = Path(__file__).resolve().parents[1]
PINS = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.M)
ABOUT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
BUILT = ["weft", "recipes", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"]
BUILT += ["docs/_locale"]  # its hints are part of the package


def pins(file: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, version in PINS.findall((ROOT / file).read_text("utf-8")):
        found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), set()).add(version)
    return found


def test_hashed_pins_are_those_that_are_tested_and_each_has_hashes() -> None:
    tested, hashed = pins("constraints.txt"), pins("constraints-hashed.txt")
    assert {
        name: versions for name, versions in hashed.items() if tested.get(name, versions) != versions
    } == {}
    for one in re.split(r"\n(?=[A-Za-z])", (ROOT / "constraints-hashed.txt").read_text("utf-8"))[1:]:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", one), one
    direct = re.findall(r'^    "([A-Za-z0-9._-]+)>=', (ROOT / "pyproject.toml").read_text("utf-8"), re.M)
    missing = [name for name in direct if re.sub(r"[-_.]+", "-", name).lower() not in hashed]
    assert direct and missing == []


def test_hashed_pins_have_every_package_that_make_lock_names() -> None:
    requirements = pytest.importorskip("packaging.requirements")
    lock = (ROOT / "Makefile").read_text("utf-8").partition("\nlock:")[2].partition("\n\n")[0]
    waiting = [
        one for group in re.findall(r"--group (\S+)", lock) for one in ABOUT["dependency-groups"][group]
    ]
    for extra in re.findall(r"--extra (\S+)", lock):
        waiting += ABOUT["project"]["optional-dependencies"][extra]
    named: set[str] = set()
    for one in map(requirements.Requirement, waiting):  # grows while it is read
        named.add(re.sub(r"[-_.]+", "-", one.name).lower())
        for extra in one.extras if one.name == "weft-seq" else ():
            waiting += ABOUT["project"]["optional-dependencies"][extra]
    assert {"onnx", "optuna", "pandas", "ruff", "sphinx", "openai"} <= named
    assert named - {"weft-seq"} - set(pins("constraints-hashed.txt")) == set()


def test_the_bill_of_materials_has_every_package_that_weft_brings() -> None:
    """`make sbom` is made from constraints-hashed.txt."""
    requirements = pytest.importorskip("packaging.requirements")
    project = ABOUT["project"]
    waiting = [*project["dependencies"], *project["optional-dependencies"]["all"]]
    seen: set[str] = set()
    while waiting:
        one = requirements.Requirement(waiting.pop())
        name = re.sub(r"[-_.]+", "-", one.name).lower()
        if name == "weft-seq":
            for extra in one.extras:
                waiting += project["optional-dependencies"][extra]
            continue
        if name in seen or not (one.marker is None or one.marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        waiting += importlib.metadata.requires(one.name) or []
    assert len(seen) > 30 and seen - set(pins("constraints-hashed.txt")) == set()


@pytest.mark.slow
def test_a_wheel_built_twice_is_the_same_to_the_bit(tmp_path: Path) -> None:
    first = built(tmp_path / "here", {"TZ": "UTC"}, 0)
    second = built(tmp_path / "quite" / "another place", {"TZ": "Asia/Tokyo", "LC_ALL": "C"}, 86_400 * 400)
    assert first.name == second.name
    names = [sorted(zipfile.ZipFile(wheel).namelist()) for wheel in (first, second)]
    assert names[0] == names[1] and "weft/cli.py" in names[0]
    recipes = {f"weft/{path.relative_to(ROOT)}" for path in (ROOT / "recipes").rglob("*.yaml")}
    assert recipes and recipes <= set(names[0])
    differ = [name for name in names[0] if read(first, name) != read(second, name)]
    assert differ == []
    assert digest(first) == digest(second)
    if shutil.which("c++"):
        assert any(name.endswith(".so") for name in names[0]), "the compiled cells are not in it"


def built(
    folder: Path, environment: dict[str, str], older: int, more: dict[str, bytes] | None = None
) -> Path:
    """The wheel of a copy of this checkout whose modification times are `older` seconds earlier.

    `more` are files that lie in the copy too.
    """
    pytest.importorskip("hatchling", reason="hatchling is not installed: make setup-dev")
    folder.mkdir(parents=True)
    for name in BUILT:
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(
                place, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.part")
            )
        else:
            shutil.copy(place, folder / name)
    for name, data in (more or {}).items():
        (folder / name).write_bytes(data)
    for path in folder.rglob("*"):
        now = path.stat().st_mtime
        os.utime(path, (now - older, now - older))
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "out"],
        cwd=folder,
        env=os.environ | environment,
        check=True,
        capture_output=True,
    )
    return next((folder / "out").glob("*.whl"))


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as file:
        return set(file.namelist())


@pytest.fixture
def compiler(tmp_path: Path) -> dict[str, str]:
    """The environment of a build whose compiler writes empty libraries: contents and tags, in a second."""
    program = tmp_path / "compiler"
    program.write_text('#!/bin/sh\nfor last; do :; done\ntouch "$last"\n')
    program.chmod(0o755)
    return {"CXX": str(program)}


def test_a_wheel_with_kernels_is_for_a_platform_and_holds_every_library(
    tmp_path: Path, compiler: dict[str, str]
) -> None:
    if native_build.platform.machine() not in ("x86_64", "amd64"):
        pytest.skip("kernels are compiled for x86-64 only")
    wheel = built(tmp_path / "wheel", compiler, 0)
    assert re.fullmatch(r"weft_seq-[0-9.]+-py3-none-(linux|macosx\w*)_x86_64\.whl", wheel.name)
    about = read(wheel, next(name for name in contents(wheel) if name.endswith(".dist-info/WHEEL"))).decode()
    assert "Root-Is-Purelib: false" in about
    libraries = {
        f"weft/native/{native_build.file_name(name, source)}" for source, name in native_build._targets()
    }
    assert {name for name in contents(wheel) if name.endswith(".so")} == libraries
    assert_complete(wheel)


def test_a_pure_wheel_has_no_library_and_fits_every_system(tmp_path: Path, compiler: dict[str, str]) -> None:
    left = {"weft/native/cells.avx2.so": b"left by an editable install"}
    wheel = built(tmp_path / "wheel", {**compiler, "WEFT_BUILD_PURE": "1"}, 0, left)
    assert re.fullmatch(r"weft_seq-[0-9.]+-py3-none-any\.whl", wheel.name)
    assert not [name for name in contents(wheel) if name.endswith((".so", ".part"))]
    assert_complete(wheel)


def test_a_build_that_must_compile_fails_without_a_compiler(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        built(tmp_path / "wheel", {"CXX": "no-such-compiler", "WEFT_BUILD": "native"}, 0)
    assert b"WEFT_BUILD=native: Weft is built WITHOUT its compiled code" in failed.value.stderr


def test_another_value_of_weft_build_pure_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_BUILD_PURE", "yes")
    with pytest.raises(ValueError, match="WEFT_BUILD_PURE"):
        hatch_build()._pure()


def assert_complete(wheel: Path) -> None:
    """What Weft reads where there is no checkout: recipes, the corpus, types, the pages of the server."""
    expected = {f"weft/{path.relative_to(ROOT)}" for path in (ROOT / "recipes").rglob("*.yaml")}
    expected |= {f"weft/testing/languages/{language}.po" for language in ("es", "hr", "pl", "ru")}
    for folder in ("data/corpora", "serve/page", "inspect"):
        found = {
            str(path.relative_to(ROOT))
            for path in (ROOT / "weft" / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert found, folder
        expected |= found
    assert {"weft/py.typed", "weft/native/cells.cpp", "weft/native/build.py"} | expected <= contents(wheel)
    about = read(
        wheel, next(name for name in contents(wheel) if name.endswith(".dist-info/METADATA"))
    ).decode()
    for minor in (11, 12, 13, 14):
        assert f"Classifier: Programming Language :: Python :: 3.{minor}\n" in about
    assert "Name: weft-seq\n" in about and "Requires-Python: >=3.11" in about
    assert "License-Expression: Apache-2.0 AND MPL-2.0\n" in about
    for place in ("LICENSE", "weft/data/corpora/libreoffice-help/LICENSE"):
        assert f"License-File: {place}\n" in about
        kept = next(name for name in contents(wheel) if name.endswith(f".dist-info/licenses/{place}"))
        assert read(wheel, kept) == (ROOT / place).read_bytes()
    tops = {name.partition("/")[0] for name in contents(wheel)}
    assert tops == {"weft", wheel.name.partition("-py3")[0] + ".dist-info"}


@pytest.mark.slow
def test_the_source_archive_holds_what_the_repository_does_and_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling is not installed: make setup-dev")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    archive = next(tmp_path.glob("weft_seq-*.tar.gz"))
    with tarfile.open(archive) as file:
        found = {name.partition("/")[2] for name in file.getnames()}
    tracked = set(listed.stdout.decode().split("\0")) - {""}
    shipped = ("weft/", "tests/", "recipes/", "docs/", "deploy/", "experiments/", "benchmarks/")
    expected = {name for name in tracked if name.startswith(shipped) and (ROOT / name).is_file()}
    expected |= {"pyproject.toml", "hatch_build.py", "Makefile", "README.md", "LICENSE", "CHANGELOG.md"}
    assert expected - found == set()
    assert {name for name in found - tracked if not (ROOT / name).is_dir()} <= {"PKG-INFO"}


def test_what_pyproject_names_exists() -> None:
    named = ABOUT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"] + ABOUT["project"]["license-files"]
    assert [name for name in named if not list(ROOT.glob(name.lstrip("/")))] == []


def read(wheel: Path, name: str) -> bytes:
    with zipfile.ZipFile(wheel) as file:
        return file.read(name)


def hatch_build() -> ModuleType:
    pytest.importorskip("hatchling", reason="hatchling is not installed: make setup-dev")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_long_description_has_no_link_that_leads_nowhere() -> None:
    module = hatch_build()
    readme = (ROOT / "README.md").read_text("utf-8")
    links = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
    local = [link for link in links.findall(readme) if not link.startswith("http")]
    assert len(local) > 5
    for link in local:
        path, _, place = link.partition("#")
        assert (ROOT / path).exists(), link
        titles = re.findall(r"^#+ (.+)", (ROOT / path).read_text("utf-8"), re.M) if place else []
        assert not place or place in {re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in titles}, (
            link
        )
    plain = module.described(readme, "")
    assert all(link.startswith("http") for link in links.findall(plain))
    assert "![" not in plain and "the course" in plain
    public = module.described(readme, "https://example.org/weft")
    assert [link for link in links.findall(public) if link.startswith("https://example.org/weft/")] == [
        f"https://example.org/weft/{link}" for link in local
    ]
    text = "a [b](c.md) [d](https://e.org) ![f\ng](h.png)\n\n*i*\n\nj"
    assert module.described(text, "") == "a b [d](https://e.org) j"


def test_groups_that_skipped_tests_name_are_groups_and_make_nightly_installs_the_peers() -> None:
    groups = set(ABOUT["dependency-groups"])
    sources = [path.read_text("utf-8") for path in sorted((ROOT / "tests").rglob("*.py"))]
    assert {name for source in sources for name in re.findall(r"--group ([a-z][a-z-]*)", source)} <= groups
    peers = re.search(r"^PEER_GROUPS := (.+)", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert peers and {"import-tests", "metrics-tests"} <= set(peers[1].split()) <= groups


@pytest.mark.slow
@pytest.mark.parametrize("required", ["", "metrics-tests", "import-tests metrics-tests"])
def test_nightly_fails_where_a_comparison_is_skipped(required: str) -> None:
    test = "tests/importing/test_bare.py"
    program = "import sys, pytest; sys.modules['transformers'] = None; sys.exit(pytest.main(sys.argv[1:]))"
    environment = os.environ | {"WEFT_PEERS": required}
    environment.pop("PYTEST_XDIST_WORKER", None)
    ended = subprocess.run(
        [sys.executable, "-c", program, "-n", "0", test],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert "1 for want of import-tests" in ended.stdout
    # 5: nothing was collected, since the whole module skips
    assert ended.returncode == (1 if "import-tests" in required else 5), ended.stdout


def test_no_benchmark_hides_a_package_that_another_program_imports() -> None:
    # The folder of a script comes first on Python's path: transformers, which is not always installed here,
    # took kernels.py for the package of that name.
    taken = {"kernels", *sys.stdlib_module_names, *importlib.metadata.packages_distributions()}
    for one in importlib.metadata.distributions():  # also what their extras would import
        taken |= {re.split(r"[^\w.-]", line)[0].replace("-", "_") for line in one.requires or ()}
    for folder in ("benchmarks", "experiments"):
        files = {path.stem for path in (ROOT / folder).iterdir() if path.suffix == ".py" or path.is_dir()}
        assert files & taken == set(), folder
