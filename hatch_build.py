"""What happens when Weft is built or installed: compile the C++ code, prepare README.md for a package index.

Without a compiler the package installs too, and uses the operations in torch (weft doctor says so); with
WEFT_BUILD=native it is not built then. With WEFT_BUILD_PURE=1 nothing is compiled, and the wheel fits every
system: py3-none-any.
"""

import importlib.util
import os
import re
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

NATIVE = "weft/native"
PURE = "WEFT_BUILD_PURE"


class Cells(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles the sources of NATIVE into NATIVE, for a wheel and for an editable install alike."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is filled.

        Raises:
            ValueError: WEFT_BUILD_PURE has another value than 0 or 1; or WEFT_BUILD=native cannot compile.
        """
        for path in sorted(Path(self.root).glob("docs/_locale/*/LC_MESSAGES/checks.po")):  # of `weft check`
            build_data["force_include"][str(path)] = f"weft/testing/languages/{path.parts[-3]}.po"
        if _pure():
            return
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
            if os.environ.get("WEFT_BUILD") == "native":
                raise ValueError(f"WEFT_BUILD=native: {warning}")
            self.app.display_warning(warning)
            _tell(warning)
        if made:
            build_data["artifacts"] += [f"{NATIVE}/{path.name}" for path in made]
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{platform}"


class Description(MetadataHookInterface):
    """The long description: README.md with links that also work outside of the repository."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called when the metadata is read."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        address = metadata.get("urls", {}).get("Source", "")
        metadata["readme"] = {"content-type": "text/markdown", "text": described(text, address)}


def described(text: str, address: str) -> str:
    """Make the relative links of a Markdown text absolute.

    Args:
        text: links are relative to the repository.
        address: of the repository's files, without a final slash; "" while there is no public one. Links then
            become plain text, and pictures are left out with their captions.
    """
    local = r"\((?!https?://|#)([^)\s]+)\)"
    if address:
        return re.sub(rf"(!?\[[^\]]*\]){local}", rf"\1({address}/\2)", text)
    text = re.sub(rf"!\[[^\]]*\]{local}\n+(\*[^*]+\*\n+)?", "", text)
    return re.sub(rf"\[([^\]]*)\]{local}", r"\1", text)


def _pure() -> bool:
    """Whether WEFT_BUILD_PURE asks for a wheel without compiled code."""
    value = os.environ.get(PURE, "")
    if value not in ("", "0", "1"):
        raise ValueError(
            f"{PURE}: expected 1 (compile nothing) or 0, got {value!r}; set one of them or unset it"
        )
    return value == "1"


def _tell(text: str) -> None:
    """Write to the terminal itself: pip shows what a build prints with -v only."""
    try:
        with open("/dev/tty", "w") as terminal:
            print(f"\nwarning: {text}", file=terminal)
    except OSError:  # no terminal, as in a container's build
        pass
