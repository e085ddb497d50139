"""Find a recipe by path or name, read it, and apply the command line's overrides. Read next: building.py."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, reduce
from pathlib import Path
from typing import Any, NamedTuple

from weft.config.text import Entry, PlacedError, Table, inner, parse
from weft.errors import ConfigError
from weft.store import files
from weft.wording import close_name

_GONE = {"unmeasured": "was never measured to its end", "worse": "was worse than naive Bayes"}


class ShippedRecipe(NamedTuple):
    """A recipe that a name stands for."""

    path: Path
    overrides: tuple[str, ...] = ()  # what an old name adds to it, as section.key=value
    note: str = ""  # what to type instead of an old name; "" for a name of today


class OldName(NamedTuple):
    """An old name of a recipe."""

    recipe: str  # the one that stands for it now
    overrides: tuple[str, ...]  # section.key=value
    gone: str = ""  # why it is another model now; "" if it is the same one

    @property
    def words(self) -> str:
        """What to type after `weft train`."""
        return shlex.join([self.recipe, *self.overrides])


def shipped() -> list[Path]:
    """All recipes included in Weft, sorted by task and name."""
    return sorted(one for one in files.recipes_folder().glob("*/*.yaml") if one.parent.name != "templates")


def variants() -> dict[str, OldName]:
    """Old names of recipes, as TASK/NAME."""
    return _variants(files.recipes_folder())


def recommended(recipe: Path) -> bool:
    """Whether the header of a recipe recommends it to start with, in a line `# Recommended: WHY`."""
    header = recipe.read_text("utf-8").partition("\ntask:")[0]
    return "\n# Recommended: " in header


def data_source(recipe: Path) -> str:
    """What the folder of data of an included recipe holds and where it comes from, from its header."""
    header = recipe.read_text("utf-8").partition("\ntask:")[0]
    found = re.search(r"^# Data: (.+)$", header, re.MULTILINE)
    return found[1].removesuffix(".") if found else ""


def find_recipe(recipe: str | Path) -> ShippedRecipe:
    """The recipe at a path if there is one, otherwise the included recipe of that name."""
    path = Path(recipe)
    try:
        path.stat()
        return ShippedRecipe(path)
    except FileNotFoundError:
        if path.is_absolute():
            return ShippedRecipe(path)
    except (OSError, ValueError):
        return ShippedRecipe(path)  # reading it will raise a clear error
    parts = path.parts[1:] if path.parts[:1] == ("recipes",) else path.parts
    named = ("/".join(parts)).removesuffix(".yaml")
    known = {f"{one.parent.name}/{one.stem}": one for one in shipped()}
    matches = {name: one for name, one in known.items() if named in (name, one.stem)}
    if len(matches) == 1:
        return ShippedRecipe(next(iter(matches.values())))
    if matches:
        raise ConfigError(f"{recipe}: the name is ambiguous; choose one of {', '.join(matches)}")
    for name, old in variants().items():
        if named in (name, name.partition("/")[2]):
            return _renamed(name, old)
    names = [one.stem for one in known.values()]
    near = close_name(named.rpartition("/")[2], names)
    hint = f"did you mean {near}?" if near else "`weft recipes --all` lists those that come with Weft"
    raise ConfigError(f"{recipe}: no such file and no such recipe; {hint}")


def _renamed(name: str, old: OldName) -> ShippedRecipe:
    task, _, stem = name.partition("/")
    is_now = f"{old.gone} and is gone; use instead" if old.gone else "is now"
    note = f"{stem} {is_now}: weft train {old.words}"
    return ShippedRecipe(files.recipes_folder() / task / f"{old.recipe}.yaml", old.overrides, note)


@cache
def _variants(home: Path) -> dict[str, OldName]:
    file = home / "variants.yaml"
    found = {}
    for part, names in parse(file.read_text("utf-8"), str(file)).plain().items() if file.exists() else ():
        for name, (recipe, *overrides) in names.items():
            found[name] = OldName(recipe, tuple(overrides), _GONE.get(part, ""))
    return found


MAX_BYTES = 256 * 1024  # recipes have a few thousand bytes; this limits the work on wrong files


def read_recipe(
    path: str | Path, overrides: Sequence[str] = (), *, holds: str = "sections such as data: and model:"
) -> Table:
    """Read a recipe."""
    found = find_recipe(path)
    entry = parse(_text(found.path), str(found.path))
    if not isinstance(entry, Table):
        got = "nothing" if entry.value is None else entry.shown()
        raise ConfigError(f"{entry.place}: expected a table with {holds}, got {got}")
    for override in (*found.overrides, *overrides):
        entry = changed(entry, override)
    return entry


def _text(path: str | Path) -> str:
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file; name a recipe (.yaml) or one that `weft recipes` lists"
        ) from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: expected a recipe (.yaml), got a directory; name a file in it") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{path}: cannot be read: {why}") from error
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path}: expected at most {MAX_BYTES // 1024} KiB, got more; is this a recipe?")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text; is this a recipe?") from None


def changed(recipe: Table, override: str) -> Table:
    """A recipe with one override, section.key=value."""
    name, equals, text = override.partition("=")
    shown = override if override.isprintable() and len(override) <= 100 else repr(override[:100])
    place = f"override {shown}"
    keys = name.strip().split(".")
    if not equals or not all(re.fullmatch(r"[\w-]+", key) for key in keys):
        raise PlacedError(f"{place}: expected section.key=value, such as training.seed=2")
    text = text.strip()
    plain = json.dumps(text) if text[:1] in ("|", ">") else text  # on one line, no block of text follows
    new = parse(plain, "", name=reduce(inner, keys, ""), place=place)
    return _set(recipe, keys, new, place)


def _set(table: Table, keys: list[str], new: Entry, place: str) -> Table:
    first, rest = keys[0], keys[1:]
    if rest:
        old = table.value.get(first, Table(inner(table.name, first), place, {}))
        if isinstance(old.value, str):
            # `cell: lstm` is short for `cell: {use: lstm}`, to which an override may add keys.
            old = Table(old.name, old.place, {"use": Entry(inner(old.name, "use"), old.place, old.value)})
        if not isinstance(old, Table):
            raise PlacedError(
                f"{place}: expected {old.name} to be a table with keys, got {old.shown()} at {old.place}"
            )
        new = _set(old, rest, new, place)
    return replace(table, value={**table.value, first: new})


def at(plain: Any, keys: tuple[str, ...]) -> Any:
    """The setting at a path of keys in nested tables; None if there is none."""
    for key in keys:
        plain = plain.get(key) if isinstance(plain, dict) else None
    return plain


def difference(old: Any, new: Any, name: str) -> str:
    """The first setting that differs, with its old value and the recipe's; "" if none differs."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            found = difference(old.get(key), new.get(key), f"{name}.{key}" if name else key)
            if found:
                return found
        return ""
    return "" if old == new else f"{name}: {_shown(old)}, the recipe says {_shown(new)}"


def _shown(value: Any) -> str:
    """A value as a recipe writes it."""
    return value if isinstance(value, str) else json.dumps(value)
