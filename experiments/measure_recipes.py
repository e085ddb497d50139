"""Train a recipe, evaluate the run and keep what was measured: docs/measured/NAME.json.

    python experiments/measure_recipes.py trec-letters 'data.folder=$WEFT_DATA/cls/trec' training.seed=2
    python experiments/measure_recipes.py help-demo --name help-demo-greedy --evaluate=--beam=1
    python experiments/measure_recipes.py --again

NAME is the recipe, and -seed-2 with a seed of its own. A run that has ended is evaluated only; --again does so for
every record whose run is still there. OMP_NUM_THREADS=1 in the environment gives one thread. Results, their appendices
and the recipes' headers quote these records, and tests/docs/test_measured.py compares them.
Read next: study.py, the experiments behind the claims.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from weft.config import read_recipe
from weft.train.resume import machine

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "docs" / "measured"
RUNS = ROOT / "runs" / "measured"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "recipe", nargs="?", help="name of a recipe that comes with Weft, or docs/measured/NAME.yaml"
    )
    parser.add_argument(
        "overrides", nargs="*", metavar="SECTION.KEY=VALUE", help="$WEFT_DATA in them is filled in"
    )
    parser.add_argument("--name", help="of the record, if several have the same recipe and seed")
    parser.add_argument("--run", help="of another record, to evaluate that run in another way")
    parser.add_argument(
        "--evaluate", action="append", default=[], metavar="OPTION", help="of weft evaluate; repeatable"
    )
    parser.add_argument("--runs", type=Path, default=RUNS, metavar="FOLDER", help="where the runs are kept")
    parser.add_argument("--again", action="store_true", help="evaluate the runs of all records again")
    asked = parser.parse_args()
    if asked.again:
        for record in sorted(RECORDS.glob("*.json")):
            old = json.loads(record.read_text("utf-8"))
            if (asked.runs / old["run"]).exists():
                measure(record.stem, old["run"], old["recipe"], old["overrides"], old["evaluate"], asked.runs)
    elif asked.recipe:
        seeds = [one.partition("=")[2] for one in asked.overrides if one.startswith("training.seed=")]
        name = asked.name or "-seed-".join([asked.recipe, *seeds])
        measure(name, asked.run or name, asked.recipe, asked.overrides, asked.evaluate, asked.runs)
    else:
        parser.error("expected a recipe or --again")


def measure(
    name: str, run: str, recipe: str, overrides: Sequence[str], options: Sequence[str], runs: Path
) -> None:
    """Write the record `name` of a run, which is trained first where it is missing."""
    folder, begun = runs.resolve() / run, runs / f"{run}.json"
    train, evaluate = ["train", recipe, "--run", str(folder), *overrides], ["evaluate", str(folder), *options]
    if not folder.exists():
        runs.mkdir(parents=True, exist_ok=True)
        begun.write_text(json.dumps(now()), "utf-8")
    if not (folder / "README.md").exists():  # written at the end of a training
        weft(train)
    with TemporaryDirectory() as place:
        weft([*evaluate, "--json", f"{place}/scores.json"])
        scores = json.loads(Path(place, "scores.json").read_text("utf-8"))
    record = {
        "recipe": recipe,
        "overrides": list(overrides),
        "evaluate": list(options),
        "run": run,
        "commands": [shown(one).replace(str(folder), f"runs/{run}") for one in (train, evaluate)],
        "settings": read_recipe(recipe, overrides).plain(),
        "training": {**json.loads(begun.read_text("utf-8")), **trained(folder)},
        "evaluation": {**now(), "machine": machine(), **scores},
    }
    RECORDS.mkdir(exist_ok=True)
    (RECORDS / f"{name}.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


def weft(command: Sequence[str]) -> None:
    """Run a command of Weft; a failure ends the script."""
    filled = [os.path.expandvars(part) for part in command]
    subprocess.run([sys.executable, "-m", "weft", *filled], cwd=ROOT, check=True)


def shown(command: Sequence[str]) -> str:
    """A command to type; the shell fills in $WEFT_DATA, also between these quotes."""
    return " ".join(["weft", *(f'"{part}"' if set(part) & set(" {[*") else part for part in command)])


def now() -> dict[str, str]:
    """Today, and the last commit that changed the program, which must not have changed since."""
    changed = git("status", "--porcelain", "--", "weft")
    if changed:
        raise SystemExit(f"expected weft/ as committed, got:\n{changed}")
    return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": git("log", "-1", "--format=%h", "--", "weft")}


def git(*words: str) -> str:
    """What git prints in this checkout."""
    return subprocess.run(
        ["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True
    ).stdout.strip()


def trained(folder: Path) -> dict[str, Any]:
    """How long a run was trained, and on what."""
    last = json.loads((folder / "checkpoints.json").read_text("utf-8"))["last"]
    state = json.loads((folder / "checkpoints" / f"step-{last:08}" / "state.json").read_text("utf-8"))
    return {
        "updates": state["position"]["update"],
        "cpu_minutes": state["position"]["cpu_seconds"] / 60,
        "seed": state["about"]["seed"],
        "precision": state["about"]["precision"],
        "machine": state["about"]["machine"],
    }


if __name__ == "__main__":
    main()
