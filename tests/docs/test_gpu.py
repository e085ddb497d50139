"""What docs/guides/gpu.md tells readers to run is run, as far as a machine without a GPU can."""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from weft.cli import group
from weft.config.recipe import read_recipe
from weft.nn import cells
from weft.run.training import check_recipe

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guides" / "gpu.md").read_text("utf-8")


def test_the_search_from_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    found: dict[str, Any] = {}
    exec(compile(code, "gpu.md", "exec"), found)
    assert capsys.readouterr().out == "torch.Size([3, 1])\n"
    assert found["found"].score.isfinite().all()


def test_the_training_is_one_that_weft_begins() -> None:
    lines = [line for line in re.findall(r"(?:\$ |!)(weft train .*)", PAGE) if "help-transformer" in line]
    assert len(lines) == 2
    for line in lines:
        recipe, *overrides = shlex.split(line)[2:5]
        settings = check_recipe(read_recipe(recipe, overrides)).settings
        assert settings.cuda_graphs and settings.scale == "gpu"


def test_commands_of_the_page_are_spelled_as_they_are_parsed() -> None:
    lines = re.findall(r"^(?:\$ |!)(.*?)(?:  +#.*)?$", PAGE.replace("\\\n", " "), re.MULTILINE)
    given = [
        shlex.split(line.rpartition("weft ")[2]) for line in lines if re.search(r"(^|[ |])weft \w", line)
    ]
    assert {words[0] for words in given} == {"doctor", "train", "predict", "compare"}
    for name, *words in given:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        found, left, _ = command.make_parser(click.Context(command)).parse_args(list(words))
        assert not left and " " not in str(found.get("file") or "")  # a text is no file


def test_scripts_and_cells_that_the_page_names_are_there() -> None:
    scripts = set(re.findall(r"(?:benchmarks|deploy)/\w+\.(?:py|sh)", PAGE))
    assert len(scripts) == 4 and [name for name in scripts if not (ROOT / name).is_file()] == []
    table = PAGE.partition("| cells | computed")[2].partition("\n\n")[0]
    modules = re.findall(r"`(\w+)`", re.sub(r"`training\.\w+`", "", table))
    assert len(modules) > 15
    folder = Path(cells.__file__).parent
    assert [name for name in modules if not (folder / f"{name}.py").is_file()] == []


def test_the_extra_that_the_page_installs_is_declared() -> None:
    extras = set(re.findall(r"weft-seq\[([\w,]+)\]|linux_x86_64\.whl\[([\w,]+)\]", PAGE))
    names = {name for pair in extras for one in pair for name in one.split(",") if name}
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert names == {"gpu", "all"} and all(re.search(rf"^{name} = ", project, re.MULTILINE) for name in names)
