"""What the rounds amount to: medians, ratios taken within a round, tables, and the same as data."""

import os
import platform
import time
from argparse import Namespace
from statistics import median
from typing import Any

from measure import Answer, Measured, Rounds

from weft.nn.kernels import choice
from weft.version import __version__

ROW_OF_OURS = "weft"


def lines(measured: Measured, options: Namespace) -> list[str]:
    """The tables of one model, with all that a figure must carry."""
    outputs = (
        "forced to one length, for untrained weights" if not measured.signature else "of their own length"
    )
    parameters = ", ".join(f"{k} {v['parameters']:,}" for k, v in measured.facts.items() if v["parameters"])
    head = [
        f"{measured.model}: {machine(measured, options.threads)}",
        f"{options.rounds} rounds in turns, medians, CPU seconds of the whole process",
        f"{options.batches} batches of {options.max_tokens} target tokens a round; {options.sentences} "
        f"sentences of {options.test} in batches of {options.rows}, {options.alone} of them alone, "
        f"outputs {outputs}",
        f"parameters: {parameters}",
    ]
    if measured.signature:
        spent = ", ".join(f"{label} {seconds:,.0f}" for label, seconds in measured.spent.items())
        head += [f"trained CPU seconds: {spent}", measured.signature]
    body = table("training", measured.training, {})
    for name, rounds in measured.searching.items():
        bleu = {label: score for (search, label), score in measured.bleu.items() if search == name}
        body += table(name, rounds, bleu)
    return ["", *head, *body]


def figures(measured: Measured, options: Namespace) -> dict[str, Any]:
    """Everything that was measured, for a file."""
    kinds = {"training": measured.training, **measured.searching}
    return {
        "model": measured.model,
        "date": time.strftime("%Y-%m-%d"),
        "weft": __version__,
        "machine": machine(measured, options.threads),
        "options": {name: str(value) for name, value in vars(options).items()},
        "engines": measured.facts,
        "trained_cpu_seconds": measured.spent,
        "signature": measured.signature,
        "bleu": [[search, label, score] for (search, label), score in measured.bleu.items()],
        "rates": {kind: {k: [rate(a) for a in v] for k, v in r.items()} for kind, r in kinds.items()},
        "ratios": {  # median, lowest, highest
            kind: {ours: {k: ratio(r[ours], v) for k, v in r.items() if k != ours} for ours in own(r)}
            for kind, r in kinds.items()
        },
        "rounds": kinds,
    }


def machine(measured: Measured, threads: int) -> str:
    """What a figure must carry to be compared."""
    facts = next(iter(measured.facts.values()), {"torch": "?", "capability": "?"})
    parts = [
        choice.processor()["model name"],
        f"{os.cpu_count()} cores",
        f"torch {facts['torch']} ({facts['capability']})",
    ]
    parts += [*dict.fromkeys(filter(None, (each.get("about") for each in measured.facts.values())))]
    parts += [f"{threads} thread(s)"]
    parts += [f"Python {platform.python_version()}", f"load {os.getloadavg()[0]:.1f}"]
    return ", ".join(parts)


def rate(answer: Answer) -> float:
    """Target tokens, or sentences, a CPU second."""
    work = answer["target_tokens"] if "target_tokens" in answer else answer["sentences"]
    return work / answer["cpu_seconds"]


def ratio(ours: list[Answer], theirs: list[Answer]) -> tuple[float, float, float]:
    """Ours by theirs in the same round: median, lowest, highest."""
    each = [rate(a) / rate(b) for a, b in zip(ours, theirs, strict=True)]
    return median(each), min(each), max(each)


def own(rounds: Rounds) -> list[str]:
    """The rows that are Weft's."""
    return [label for label in rounds if label.startswith(ROW_OF_OURS)]


def table(title: str, rounds: Rounds, bleu: dict[str, float]) -> list[str]:
    """The rate of every row, and how many times as fast each row of Weft is."""
    if not rounds:
        return ["", f"{title}: no engine was left to measure"]
    trained = "target_tokens" in next(iter(rounds.values()))[0]
    unit = "target tokens/CPU s" if trained else "sentences/CPU s"
    rest = ["loss"] if trained else ["tokens/CPU s", "length", "BLEU"]
    cells = [["", unit, *[f"{label} is" for label in own(rounds)], *rest, "wall/CPU", "MiB"]]
    for label, answers in rounds.items():
        row = [label, f"{median(map(rate, answers)):,.{0 if trained else 1}f}"]
        for ours in own(rounds):
            middle, low, high = ratio(rounds[ours], answers)
            row.append("-" if ours == label else f"{middle:.2f}x ({low:.2f}-{high:.2f})")
        last = answers[-1]
        if trained:
            row.append(f"{last['loss']:.3f}")
        else:
            tokens = median(a["output_tokens"] / a["cpu_seconds"] for a in answers)
            score = f"{bleu[label]:.2f}" if label in bleu else "-"
            row += [f"{tokens:,.0f}", f"{last['output_tokens'] / last['sentences']:.1f}", score]
        wall = median(a["wall_seconds"] / a["cpu_seconds"] for a in answers)
        cells.append([*row, f"{wall:.2f}", f"{last['peak_mib']:,}"])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["", title, *(_aligned(row, widths) for row in cells)]


def _aligned(row: list[str], widths: list[int]) -> str:
    first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
    return "  ".join([first.strip().ljust(widths[0]), *rest])
