"""Installed packages are the tested ones, and builds are reproducible."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PINS = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.M)
BUILT = ["weft", "recipes", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"]


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


@pytest.mark.slow
def test_a_wheel_built_twice_is_the_same_to_the_bit(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling is not installed: make setup-dev")
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


def built(folder: Path, environment: dict[str, str], older: int) -> Path:
    """The wheel of a copy of this checkout whose modification times are `older` seconds earlier."""
    folder.mkdir(parents=True)
    for name in BUILT:
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(
                place, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.part")
            )
        else:
            shutil.copy(place, folder / name)
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


def read(wheel: Path, name: str) -> bytes:
    with zipfile.ZipFile(wheel) as file:
        return file.read(name)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_long_description_has_no_link_that_leads_nowhere() -> None:
    pytest.importorskip("hatchling", reason="hatchling is not installed: make setup-dev")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    readme = (ROOT / "README.md").read_text("utf-8")
    links = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
    local = [link for link in links.findall(readme) if not link.startswith("http")]
    assert len(local) > 5 and all((ROOT / link).exists() for link in local)
    plain = module.described(readme, "")
    assert all(link.startswith("http") for link in links.findall(plain))
    assert "![" not in plain and "the course" in plain
    public = module.described(readme, "https://example.org/weft")
    assert [link for link in links.findall(public) if link.startswith("https://example.org/weft/")] == [
        f"https://example.org/weft/{link}" for link in local
    ]
    text = "a [b](c.md) [d](https://e.org) ![f\ng](h.png)\n\n*i*\n\nj"
    assert module.described(text, "") == "a b [d](https://e.org) j"
