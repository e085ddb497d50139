"""Makes the data of the site's live parts, with fixed seeds: python docs/live/make.py [NAME ...]

Models are trained by `weft train` in build/live, where a second run finds them, and exported in 8 bits.
`--quick FOLDER` tries all of this with two updates and writes there instead; its models know nothing.
Each file is a script in docs/_static/live/models: a page opened from a folder may load scripts, but not
fetch files. Read next: recipes.py, what is trained; ../_static/live/live.js, which loads the files.
"""

import argparse
import base64
import json
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import yaml

from recipes import ASKED, RECIPES, texts
from weft import load
from weft.probe import probe
from weft.text.vocabulary import EOS

ROOT = Path(__file__).resolve().parents[2]
NOTICE = "weft/data/corpora/libreoffice-help/NOTICE.md"
MADE = f"docs/live/make.py made this. Texts: LibreOffice Help, MPL 2.0, {NOTICE}"


class Place(NamedTuple):
    """Where files go: runs, data of the page, expected answers; and the updates of a trial, None for all."""

    work: Path = ROOT / "build" / "live"
    models: Path = ROOT / "docs" / "_static" / "live" / "models"
    expected: Path = ROOT / "tests" / "live" / "expected.json"
    updates: int | None = None


def reach(place: Place) -> dict[str, list[float]]:
    """How far the gradient of trained networks reaches, on the problem of claim 2: log₁₀ by lag."""
    sys.path.insert(0, str(ROOT / "experiments"))
    claim = import_module("02_reach")
    found: dict[str, list[list[float]]] = {}
    for seed in range(21, 24):
        for name, cell in {"Elman": "plain", "LSTM": "LSTM"}.items():
            model, chance = claim.trained(cell, 1e-2, seed, place.updates or 600)
            course = claim.reached(model, claim.sums(chance, 4, claim.LAG + 1))
            found.setdefault(name, []).append(course.tolist())
    return {name: np.mean(rows, 0).round(3).tolist() for name, rows in found.items()}


def model(name: str, place: Place) -> str:
    """The model of a recipe as base64, trained if it is not there yet."""
    run = trained(name, place)
    if name in ASKED:
        expect(name, answers(name, run), place.expected)
    with tempfile.TemporaryDirectory() as folder:
        weft(place.work, "export", run, "--to", "web", "--output", f"{folder}/page")
        return base64.b64encode((Path(folder) / "page" / "model.weft").read_bytes()).decode()


def trained(name: str, place: Place) -> Path:
    """The run of a recipe."""
    run = place.work / name
    recipe = place.work / f"{name}.yaml"
    about = RECIPES[name]
    if place.updates:
        training = {"max_updates": place.updates, "validate_every": place.updates}
        kept = {
            key: value for key, value in about["training"].items() if key not in ("schedule", "max_epochs")
        }
        about = {**about, "training": kept | training}
    recipe.write_text(yaml.safe_dump(about, allow_unicode=True), "utf-8")
    weft(place.work, "train", recipe, "--run", run)  # resumes, or says that it is finished
    return run


def expect(name: str, answers: list[Any], path: Path) -> None:
    """Keep what a run answers, for the tests of the page."""
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    known[name] = answers
    path.write_text(json.dumps(known, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")


def answers(name: str, run: Path) -> list[Any]:
    """[text, answer] of what a model is asked; of the heads their weights [layer][head][row][column]."""
    if name == "heads":
        model, vocabulary = (opened := load(str(run))).model, opened.vocabulary
        source = torch.tensor([[EOS, *vocabulary.encode_batch(ASKED[name])[0]]])
        with torch.no_grad(), probe() as seen:
            state = model.start(source, torch.ones_like(source, dtype=torch.bool))
            model.decoder(model.embed(source), state)
        [layers] = seen.values()
        return [[ASKED[name][0], [np.round(weights[0].float().numpy(), 3).tolist() for weights in layers]]]
    line, lines = (
        [sys.executable, "-m", "weft", "predict", str(run)],
        "".join(f"{one}\n" for one in ASKED[name]),
    )
    done = subprocess.run(line, input=lines, capture_output=True, text=True, check=True)
    return list(zip(ASKED[name], done.stdout.splitlines(), strict=True))


def vectors(place: Place, count: int = 2500) -> dict[str, Any]:
    """The most frequent words and their vectors of length 1, in 8 bits; only directions matter."""
    words = load(str(trained("vectors", place)))
    names = words.words[:count]
    table = np.stack([words.vector(name) for name in names])
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    scales = np.abs(unit).max(1, keepdims=True) / 127
    integers = np.rint(unit / scales).astype(np.int8)
    return {
        "words": " ".join(names),
        "size": table.shape[1],
        "table": base64.b64encode(integers.tobytes()).decode(),
    }


def weft(folder: Path, *words: object) -> None:
    """The command line, in the folder of the data."""
    subprocess.run([sys.executable, "-m", "weft", *map(str, words)], check=True, cwd=folder)


def write(name: str, content: Any, folder: Path) -> None:
    """One file of data, which gives it to the page."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.js").write_text(f"// {MADE}\nlive.give({json.dumps(name)}, {text});\n", "utf-8")
    print(f"{name}.js: {len(text.encode()):,} bytes", flush=True)


def main(words: list[str]) -> None:
    """Make the files of the named parts, or all."""
    parser = argparse.ArgumentParser(description="Make the data of the live parts.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="reach, letters-text or a recipe; by default all"
    )
    parser.add_argument(
        "--quick", type=Path, metavar="FOLDER", help="try everything with 2 updates, into a folder"
    )
    given = parser.parse_args(words)
    place = Place()
    if given.quick:
        folder = given.quick.resolve()
        place = Place(folder / "runs", folder / "models", folder / "expected.json", updates=2)
    written = texts(place.work)
    for name in given.names or ["reach", "letters-text", *RECIPES]:
        content: Any = written
        if name == "reach":
            content = reach(place)
        elif name == "vectors":
            content = vectors(place)
        elif name != "letters-text":
            content = model(name, place)
        write(name, content, place.models)


if __name__ == "__main__":
    main(sys.argv[1:])
