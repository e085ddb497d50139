"""Makes the data of the site's live parts, with fixed seeds: python docs/live/make.py [NAME ...]

Models are trained by `weft train` in build/live, where a second run finds them, and exported in 8 bits.
Each file is a script in docs/_static/live/models: a page opened from a folder may load scripts, but not
fetch files. Read next: recipes.py, what is trained; ../_static/live/live.js, which loads the files.
"""

import base64
import json
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from recipes import ASKED, RECIPES, texts
from weft import load
from weft.probe import probe

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "docs" / "_static" / "live" / "models"
WORK = ROOT / "build" / "live"
NOTICE = "weft/data/corpora/libreoffice-help/NOTICE.md"
MADE = f"docs/live/make.py made this. Texts: LibreOffice Help, MPL 2.0, {NOTICE}"
EXPECTED = ROOT / "tests" / "live" / "expected.json"


def reach() -> dict[str, list[float]]:
    """How far the gradient of trained networks reaches, on the problem of claim 2: log₁₀ by lag."""
    sys.path.insert(0, str(ROOT / "experiments"))
    claim, study = import_module("02_reach"), import_module("study")
    found: dict[str, list[list[float]]] = {}
    for seed in range(21, 24):
        for name in ("Elman", "LSTM"):
            chance = study.plant(seed)

            def batch(chance: np.random.Generator = chance) -> Any:
                return claim.sums(chance, 32, claim.LENGTH)

            model = study.learn(claim.adder(claim.CELLS[name]), batch, 600, rate=5e-3)
            course = claim.reached(model, claim.sums(chance, 4, claim.LAG + 1))
            found.setdefault(name, []).append(course.tolist())
    return {name: np.mean(rows, 0).round(3).tolist() for name, rows in found.items()}


def model(name: str) -> str:
    """The model of a recipe as base64, trained if it is not there yet."""
    run = trained(name)
    if name in ASKED:
        expect(name, answers(name, run))
    with tempfile.TemporaryDirectory() as folder:
        weft("export", run, "--to", "web", "--output", f"{folder}/page")
        return base64.b64encode((Path(folder) / "page" / "model.weft").read_bytes()).decode()


def trained(name: str) -> Path:
    """The run of a recipe."""
    run = WORK / name
    recipe = WORK / f"{name}.yaml"
    recipe.write_text(yaml.safe_dump(RECIPES[name], allow_unicode=True), "utf-8")
    weft("train", recipe, "--run", run)  # resumes, or says that it is finished
    return run


def expect(name: str, answers: list[Any]) -> None:
    """Keep what a run answers, for the tests of the page."""
    known = json.loads(EXPECTED.read_text("utf-8")) if EXPECTED.exists() else {}
    known[name] = answers
    EXPECTED.write_text(json.dumps(known, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")


def answers(name: str, run: Path) -> list[Any]:
    """[text, answer] of what a model is asked; of the heads their weights [layer][head][row][column]."""
    if name == "heads":
        filler = load(str(run))
        source = torch.tensor([filler.tokens(ASKED[name][0])])
        with torch.no_grad(), probe() as seen:
            filler.model(source, torch.ones_like(source, dtype=torch.bool))
        [layers] = seen.values()
        return [[ASKED[name][0], [np.round(weights[0].float().numpy(), 3).tolist() for weights in layers]]]
    line, lines = (
        [sys.executable, "-m", "weft", "predict", str(run)],
        "".join(f"{one}\n" for one in ASKED[name]),
    )
    done = subprocess.run(line, input=lines, capture_output=True, text=True, check=True)
    return list(zip(ASKED[name], done.stdout.splitlines(), strict=True))


def vectors(count: int = 2500) -> dict[str, Any]:
    """The most frequent words and their vectors of length 1, in 8 bits; only directions matter."""
    words = load(str(trained("vectors")))
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


def weft(*words: object) -> None:
    """The command line, in the folder of the data."""
    subprocess.run([sys.executable, "-m", "weft", *map(str, words)], check=True, cwd=WORK)


def write(name: str, content: Any) -> None:
    """One file of data, which gives it to the page."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    MODELS.mkdir(exist_ok=True)
    (MODELS / f"{name}.js").write_text(f"// {MADE}\nlive.give({json.dumps(name)}, {text});\n", "utf-8")
    print(f"{name}.js: {len(text.encode()):,} bytes", flush=True)


def main(names: list[str]) -> None:
    """Make the files of these names, or all."""
    written = texts(WORK)
    for name in names or ["reach", "letters-text", *RECIPES]:
        if name == "reach":
            write(name, reach())
        elif name == "letters-text":
            write(name, written)
        elif name == "vectors":
            write(name, vectors())
        else:
            write(name, model(name))


if __name__ == "__main__":
    main(sys.argv[1:])
