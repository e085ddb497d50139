"""Every value of every JSON file of a run, replaced in turn by invalid values.

Read next: test_forged.py, which opens the results.
"""

import copy
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

Route = tuple[str | int, ...]
"""Keys and numbers that lead to a value."""

MISSING = object()
"""In the place of a value: its key, or its element of a list, is not there."""

VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "text": "x",
    "empty text": "",
    "escape": "\x1b]0;owned\x07\n",
    "minus one": -1,
    "zero": 0,
    "quadrillion": 10**15,
    "400 digits": 10**400,
    "half": 0.5,
    "nan": float("nan"),
    "infinity": float("inf"),
    "list": [],
    "list of lists": [[[]]],
    "table": {},
    "missing": MISSING,
}
RAW = {
    "deep": "[" * 100_000,
    "deep tables": '{"a":' * 100_000,
    "5,000 digits": "9" * 5000,
    "half a surrogate": '"\\ud800"',
}
"""Text that no json.dumps writes."""


class Forgery(NamedTuple):
    """One replacement: the file, the place in it, and the name of the new value."""

    file: str
    route: Route
    what: str


def routes(value: Any, start: Route = ()) -> Iterator[Route]:
    """To this value and all below it; in a list only to the first and last."""
    yield start
    if isinstance(value, dict):
        for key in value:
            yield from routes(value[key], (*start, key))
    elif isinstance(value, list):
        for at in sorted({0, len(value) - 1} if value else ()):
            yield from routes(value[at], (*start, at))


def forgeries(run: Path, name: str) -> list[Forgery]:
    """All forgeries of a file; of a log only those of its last line."""
    text = (run / name).read_text("utf-8")
    content = json.loads(text.rstrip("\n").split("\n")[-1] if name.endswith("jsonl") else text)
    return [Forgery(name, route, what) for route in routes(content) for what in (*VALUES, *RAW)]


def written(original: str, forgery: Forgery) -> str:
    """The file's text with the replacement."""
    lines = original.rstrip("\n").split("\n") if forgery.file.endswith("jsonl") else [original]
    content, mark = json.loads(lines[-1]), "<here stands the harm>"
    value = VALUES.get(forgery.what, mark)
    lines[-1] = json.dumps(_with(content, forgery.route, value), ensure_ascii=True)
    if forgery.what in RAW:
        lines[-1] = lines[-1].replace(json.dumps(mark), RAW[forgery.what])
    return "\n".join(lines) + "\n"


def harm(run: Path, forgery: Forgery) -> None:
    """Write it, and update the checkpoint's manifest accordingly."""
    path = run / forgery.file
    path.write_text(written(path.read_text("utf-8"), forgery), "utf-8")
    if path.name == "state.json":
        seal(path)


def seal(path: Path) -> None:
    """Write a file's new size and checksum into its checkpoint's manifest."""
    manifest = path.parent / "manifest.json"
    data, seals = path.read_bytes(), json.loads(manifest.read_text())
    seals[path.name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest.write_text(json.dumps(seals))


def _with(content: Any, route: Route, value: Any) -> Any:
    if not route:
        return [] if value is MISSING else value
    changed = copy.deepcopy(content)
    inner = changed
    for key in route[:-1]:
        inner = inner[key]
    if value is MISSING:
        del inner[route[-1]]
    else:
        inner[route[-1]] = value
    return changed
