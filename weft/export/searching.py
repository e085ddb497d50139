"""What a program of an export does of a run's search, by the declarations of search/offered.py.

A setting that the program cannot do is refused by name, unless the run has its default: what the program does
instead is then a line of the export's report. Read next: ../search/offered.py; agreement.py.
"""

from collections.abc import Collection
from typing import Any

from weft.errors import ConfigError
from weft.run import LoadedRun
from weft.search.offered import SearchSettings, unable


def search_of(opened: LoadedRun) -> SearchSettings | None:
    """How a run searches; None if it writes no sequences."""
    found: Any = getattr(opened.pipeline, "decoding", None) or getattr(opened.task, "decoding", None)
    return found if isinstance(found, SearchSettings) else None


def check_search(opened: LoadedRun, to: str, own: Collection[str] = ()) -> list[str]:
    """Lines of the report on settings that a program does in its own way.

    Args:
        opened: the run.
        to: the program.
        own: settings that it cannot be told.

    Raises:
        ConfigError: a setting of the run's search that it cannot do.
    """
    how = search_of(opened)
    lacking = [] if how is None else unable(how, to)
    for one in lacking:
        value = getattr(how, one.name)
        if value != one.default and one.name not in own:
            raise ConfigError(
                f"decoding.{one.name}: --to {to} expects a search without it, got {value}; "
                f"remove it from {opened.path / 'recipe.yaml'}"
            )
    named = [one.name for one in lacking if one.name in own or _acts(one.default)]
    said = ", ".join(f"{name} {getattr(how, name)}" for name in named)
    return [f"in the program's own way, not as in weft predict: {said}"] if said else []


def _acts(default: object) -> bool:
    """Whether a default does something, where others turn a setting off."""
    return isinstance(default, str | bool | float) and bool(default) and default != 1.0
