"""Names of a package that are imported when they are first used; its stub `__init__.pyi` lists them.

    from weft import lazy

    __getattr__, __dir__ = lazy.attach(__name__)

Type checkers and editors read the same stub, so every name is written once (SPEC 1 of Scientific Python).
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_listed: dict[str, dict[str, tuple[str, str]]] = {}
_former: dict[str, set[str]] = {}


def attach(package: str) -> "tuple[Callable[[str], Any], Callable[[], list[str]]]":
    """The functions `__getattr__` and `__dir__` of a package."""

    def get(name: str) -> Any:
        from importlib import import_module

        homes = names(package, every=True)
        if name == "__all__":
            return sorted(names(package))
        if name not in homes:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package]
            )
        module, original = homes[name]
        if module == package:  # a package or module inside it
            return import_module(f"{package}.{original}")
        from weft.errors import saying_what_to_install

        with saying_what_to_install():
            found = getattr(import_module(module), original)
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted(names(package))


def names(package: str, *, every: bool = False) -> dict[str, tuple[str, str]]:
    """The public names of a package, each with its module and its name there.

    Those that the stub imports without `as`, which are no longer public, are found but not listed: `every`.
    """
    if package not in _listed:
        import ast  # here, because `import weft` takes a tenth of the time without them
        import pkgutil

        stub = pkgutil.get_data(package, "__init__.pyi")
        assert stub is not None
        pairs = [
            (node.module or package, name)
            for node in ast.parse(stub).body
            if isinstance(node, ast.ImportFrom)
            for name in node.names
        ]
        _listed[package] = {name.asname or name.name: (module, name.name) for module, name in pairs}
        _former[package] = {name.name for _, name in pairs if name.asname is None}
    found = _listed[package]
    return found if every else {name: home for name, home in found.items() if name not in _former[package]}
