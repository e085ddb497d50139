"""What happens when Weft is built or installed: its compiled cells are made, where there is a compiler.

Without one the package installs all the same, and torch's operations serve (weft doctor says so).
"""

import importlib.util
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = "weft/native"


class Cells(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles the sources of NATIVE into NATIVE, for a wheel and for an editable install alike."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is filled."""
        place = Path(self.root) / NATIVE / "build.py"
        spec = importlib.util.spec_from_file_location("weft_native_build", place)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made, reason = module.build()
        if reason:
            self.app.display_warning(f"Weft installs without its compiled cells: {reason}")
        if made:
            build_data["artifacts"] += [f"{NATIVE}/{path.name}" for path in made]
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{platform}"
