"""Writes docs/claims.md from what the experiments found: python experiments/verdicts.py

Run it after an experiment. A claim without a result stands there as not run. Read next: study.py.
"""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures" / "claims"
PAGE = ROOT / "docs" / "claims.md"
HEAD = """# Fourteen claims, measured here

What papers and lectures say about sequence models, each tried by a script small enough for two cores. A script says
beforehand what would have to be seen if its claim held: all seen, the claim *holds*; some, it *holds in part*; none,
it *does not hold here*. "Here" is small models, minutes and one machine (2-core Intel Xeon VM beside other work);
± is half of a 95 % interval over seeds (Student's t); what is expected of two means is said of the means
alone, so read it with their intervals. This page is written by `python experiments/verdicts.py`
from the JSON files beside the pictures.

"""


def page(folder: Path = FOLDER) -> str:
    """The page's text."""
    scripts = {int(path.name[:2]): path.name for path in sorted((ROOT / "experiments").glob("[0-9]*.py"))}
    found = {
        n: json.loads((folder / f"{n:02}.json").read_text("utf-8"))
        for n in scripts
        if (folder / f"{n:02}.json").exists()
    }
    rows = ["| | claim | verdict | script |", "|---|---|---|---|"]
    for number, script in scripts.items():
        one = found.get(number)
        claim = f"[{one['claim']}](#claim-{number})" if one else sentence(script)
        verdict = f"**{one['verdict']}**" if one else "not run"
        rows.append(f"| {number} | {claim} | {verdict} | `python experiments/{script}` |")
    return HEAD + "\n".join(rows) + "\n" + "".join(section(number, one) for number, one in found.items())


def sentence(script: str) -> str:
    """The claim of a script that has no result: the first line of its docstring."""
    line = (ROOT / "experiments" / script).read_text("utf-8").split("\n")[0]
    return line.strip('"').partition(": ")[2]


def section(number: int, one: dict[str, Any]) -> str:
    """A claim's part of the page."""
    lines = ["", f"## Claim {number}", "", f"{one['claim']} **{one['verdict'].capitalize()}.**", ""]
    lines += [f"![What the experiment of claim {number} saw](pictures/claims/{number:02}.png)", ""]
    lines += ["| expected, if it held | seen |", "|---|---|"]
    lines += [f"| {each['sentence']} | {'yes' if each['seen'] else '**no**'} |" for each in one["expected"]]
    if one["note"]:
        lines += ["", one["note"]]
    seeds = ", ".join(map(str, one["seeds"]))
    lines += ["", f"`{one['command']}`, seeds {seeds}, {one['cpu_seconds']} CPU seconds."]
    lines += ["", "| measured | |", "|---|---|"]
    lines += [f"| {name} | {shown(value)} |" for name, value in one["numbers"].items()]
    return "\n".join(lines) + "\n"


def shown(value: Any) -> str:
    """A measured number, with its interval where there is one."""
    if isinstance(value, dict) and "mean" in value:
        return f"{value['mean']:.4g}" + (f" ± {value['half']:.2g}" if value["half"] else "")
    if isinstance(value, dict):
        return ", ".join(f"{name} {one:,}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(f"{one:.3g}" for one in value)
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"docs/claims.md: {page().count('## Claim')} claims with results")
