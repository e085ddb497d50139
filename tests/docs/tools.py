"""Loads the site's own extensions, which are no package."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

TOOLS = Path(__file__).resolve().parents[2] / "docs" / "_ext"


def tool(name: str) -> ModuleType:
    if str(TOOLS) not in sys.path:  # as in conf.py: extensions import each other
        sys.path.insert(0, str(TOOLS))
    spec = importlib.util.spec_from_file_location(f"site_{name}", TOOLS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
