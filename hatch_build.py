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
            warning = (
                f"Weft is built WITHOUT its compiled code; recurrent networks are slower: {reason}; "
                "install a C++ compiler (apt install g++) and build again; `weft doctor` shows what is there"
            )
            self.app.display_warning(warning)
            _tell(warning)
        if made:
            build_data["artifacts"] += [f"{NATIVE}/{path.name}" for path in made]
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{platform}"


def _tell(text: str) -> None:
    """Write to the terminal itself: pip shows what a build prints with -v only."""
    try:
        with open("/dev/tty", "w") as terminal:
            print(f"\nwarning: {text}", file=terminal)
    except OSError:  # no terminal, as in a container's build
        pass
