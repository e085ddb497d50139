"""What docs/guides/gpu.md tells readers to run is run, as far as a machine without a GPU can."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from weft.config.recipe import read_recipe
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


def test_the_extra_that_the_page_installs_is_declared() -> None:
    extras = set(re.findall(r"weft-seq\[([\w,]+)\]|linux_x86_64\.whl\[([\w,]+)\]", PAGE))
    names = {name for pair in extras for one in pair for name in one.split(",") if name}
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert names == {"gpu", "all"} and all(re.search(rf"^{name} = ", project, re.MULTILINE) for name in names)
