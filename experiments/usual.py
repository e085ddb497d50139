"""Weft's defaults beside the usual library, on small real sets: who is right more often, and in how many CPU seconds.

    python experiments/usual.py --data FOLDER          # what is not measured yet; FOLDER has cls/trec and so on
    python experiments/usual.py --data FOLDER --sets trec-300 sib-hr-500 --seed 2
    python experiments/usual.py --write                # docs/appendix/usual.md

Weft trains what `weft init TASK train --test test --model linear` writes, unchanged; the others have the same training part. A set is a
line of SETS; a task with other libraries is an entry of PEERS. Needs scikit-learn, and no network. Each finished set is one
line of JSON in build/usual.jsonl. Read next: ../docs/guides/tasks/classify.md.
"""

import argparse
import csv
import gzip
import io
import json
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from study import ROOT, machine
from weft import cli
from weft.metrics import holm

RUNS = ROOT / "build" / "usual.jsonl"
PAGE = ROOT / "docs" / "appendix" / "usual.md"
LEVEL = 0.05
ASKED = "--model", "linear"
"""Options of `weft init`: the model that it keeps unless its trial proves a network better."""
Rows = list[tuple[str, str]]
"""(label, text)."""


class Table(NamedTuple):
    """Tables of labelled texts: all are shuffled together, or the last one is the test part."""

    files: Sequence[str]
    label: str
    text: Sequence[str]
    test: str = ""

    def read(self, folder: Path, file: str) -> list[tuple[str, str]]:
        """(label, text) of each row."""
        with gzip.open(folder / file, "rt", encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
        return [(row[self.label], " ".join(row[name] for name in self.text)) for row in rows]

    def parts(self, folder: Path, train: int, test: int, seed: int) -> tuple[Rows, Rows]:
        """So many rows for training, and others for the test."""
        chance = random.Random(seed)
        found = [row for file in self.files for row in self.read(folder, file)]
        chance.shuffle(found)
        held = self.read(folder, self.test)[:test] if self.test else found[:test]
        return (found if self.test else found[test:])[:train], held


class Part(NamedTuple):
    """A set that is measured: a table, a task, and sizes."""

    table: Table
    train: int
    test: int
    task: str = "classify"


def _sib(language: str) -> Table:
    return Table(("cls/sib200/train.tsv.gz", "cls/sib200/dev.tsv.gz"), "category", (language,))


def _films(name: str) -> Table:
    return Table((f"cls/{name}/train.tsv.gz",), "label", ("text",), f"cls/{name}/dev.tsv.gz")


TREC = Table(("cls/trec/train.tsv.gz",), "coarse", ("text",))
MR = Table(("cls/mr/mr.tsv.gz",), "label", ("text",))
AG = Table(("cls/ag_news/ag_news_7600.tsv.gz",), "label", ("title", "description"))
MOVIES = Table(("cls/movie_reviews/reviews.tsv.gz",), "label", ("text",))
SETS = {
    "trec-3000": Part(TREC, 3000, 1500),
    "trec-300": Part(TREC, 300, 1500),
    "sst2-3000": Part(_films("sst2"), 3000, 872),
    "sst2-300": Part(_films("sst2"), 300, 872),
    "sst5-3000": Part(_films("sst5"), 3000, 1100),
    "sst5-300": Part(_films("sst5"), 300, 1100),
    "mr-3000": Part(MR, 3000, 1500),
    "mr-300": Part(MR, 300, 1500),
    "ag-3000": Part(AG, 3000, 1500),
    "ag-300": Part(AG, 300, 1500),
    "sib-en-500": Part(_sib("en"), 500, 200),
    "sib-en-300": Part(_sib("en"), 300, 300),
    "sib-hr-500": Part(_sib("hr"), 500, 200),
    "sib-hr-300": Part(_sib("hr"), 300, 300),
    "movies-1300": Part(MOVIES, 1300, 500),
    "movies-300": Part(MOVIES, 300, 500),
    "trec-fine-3000": Part(TREC._replace(label="fine"), 3000, 1500),
    "subj-3000": Part(Table(("cls/subj/subj.tsv.gz",), "label", ("text",)), 3000, 1500),
    "sib-ru-500": Part(_sib("ru"), 500, 200),
    "sib-pl-500": Part(_sib("pl"), 500, 200),
}
"""By name. Those with 500 texts of SIB-200 have the 201 others as their test."""


class Answered(NamedTuple):
    """The answers to the test part, and the CPU seconds of the training."""

    answers: Sequence[str]
    seconds: float


def _scikit_learn(train: Rows, test: Rows) -> dict[str, Answered]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC

    found = {}
    for model in (LogisticRegression(max_iter=1000), LinearSVC()):
        words = TfidfVectorizer(ngram_range=(1, 2))
        letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5))
        begun = time.process_time()
        fitted = make_pipeline(make_union(words, letters), model).fit(*_columns(train))
        spent = time.process_time() - begun
        found[type(model).__name__] = Answered(fitted.predict(_columns(test)[0]).tolist(), spent)
    return found


def _columns(rows: Rows) -> tuple[list[str], list[str]]:
    return [text for _, text in rows], [label for label, _ in rows]


PEERS: Mapping[str, Callable[[Rows, Rows], dict[str, Answered]]] = {"classify": _scikit_learn}
"""What a user of another library would train first, at its default settings, by task."""


def _weft(task: str, train: Rows, test: Rows) -> tuple[Answered, str]:
    """Weft's answers, and what it says of its model."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, rows in (("train.tsv", train), ("test.tsv", test)):
            with open(folder / name, "w", encoding="utf-8", newline="") as file:
                csv.writer(file, delimiter="\t", lineterminator="\n").writerows([("label", "text"), *rows])
        recipe, run, begun = folder / "r.yaml", folder / "run", time.process_time()
        _command(
            "init", task, folder / "train.tsv", "--test", folder / "test.tsv", "--output", recipe, *ASKED
        )
        said = _command("train", recipe, "--run", run, "training.tensorboard=false")
        spent = time.process_time() - begun
        _command("predict", run, folder / "test.tsv", "--output", folder / "answered.tsv")
        with open(folder / "answered.tsv", encoding="utf-8", newline="") as file:
            answers = [row[-1] for row in csv.reader(file, delimiter="\t")][1:]
    return Answered(answers, spent), said.splitlines()[0]


def _command(*words: object) -> str:
    """What a command of Weft prints; in this process, so that loading torch is not in its seconds."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.group.main(args=[str(word) for word in words], prog_name="weft", standalone_mode=False)
    if code:
        raise SystemExit(f"weft {words[0]}: {err.getvalue()}")
    return out.getvalue()


def measure(folder: Path, name: str, seed: int) -> dict[str, Any]:
    """One set: accuracies, CPU seconds, and who alone is right."""
    from scipy.stats import binomtest

    part = SETS[name]
    train, test = part.table.parts(folder, part.train, part.test, seed)
    labels = np.array(_columns(test)[1])
    (ours, seconds), said = _weft(part.task, train, test)
    right = np.array(ours) == labels
    found: dict[str, Any] = {"set": name, "seed": seed, "train": len(train), "test": len(test), "said": said}
    found |= {
        "machine": machine(),
        "weft": {"accuracy": float(right.mean()), "seconds": seconds},
        "peers": {},
    }
    for peer, (answers, spent) in PEERS[part.task](train, test).items():
        theirs = np.array(answers) == labels
        only, lost = int((right & ~theirs).sum()), int((~right & theirs).sum())
        p = float(binomtest(only, only + lost).pvalue) if only + lost else 1.0
        row = {
            "accuracy": float(theirs.mean()),
            "seconds": spent,
            "only_weft": only,
            "only_peer": lost,
            "p": p,
        }
        found["peers"][peer] = row
    return found


def finished() -> list[dict[str, Any]]:
    """The sets that are measured."""
    return [json.loads(line) for line in RUNS.read_text().splitlines()] if RUNS.exists() else []


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of all sets; verdicts by McNemar's exact test, corrected over all its comparisons."""
    pairs = [(n, peer) for n, row in enumerate(rows) for peer in row["peers"]]
    corrected = dict(zip(pairs, holm([rows[n]["peers"][peer]["p"] for n, peer in pairs]), strict=True))
    peers = list(dict.fromkeys(peer for _, peer in pairs))
    lines = [f"| set | texts, test | Weft | {' | '.join(peers)} |", "|---" * (3 + len(peers)) + "|"]
    counts = {peer: {"better": 0, "equal": 0, "worse": 0} for peer in peers}
    for n, row in enumerate(rows):
        cells = [row["set"], f"{row['train']:,}, {row['test']:,}", _shown(row["weft"])]
        for peer in peers:
            other = row["peers"][peer]
            ahead = other["only_weft"] > other["only_peer"]
            verdict = "equal" if corrected[n, peer] >= LEVEL else "better" if ahead else "worse"
            counts[peer][verdict] += 1
            alone = (
                ""
                if other["p"] >= LEVEL or verdict != "equal"
                else f" (alone: {'better' if ahead else 'worse'})"
            )
            cells.append(f"{_shown(other)}: {verdict}{alone}")
        lines.append(f"| {' | '.join(cells)} |")
    ends = [
        f"{peer}: " + ", ".join(f"{count} {word}" for word, count in counts[peer].items()) for peer in peers
    ]
    return "\n".join([*lines, "", *(f"- Weft against {end}." for end in ends)])


def _shown(one: Mapping[str, float]) -> str:
    return f"{100 * one['accuracy']:.1f} %, {one['seconds']:.1f} s"


HEAD = """# Classifiers by default, beside scikit-learn

Written by `python experiments/usual.py --write` after `python experiments/usual.py --data FOLDER`; a set that is missing here was
not measured. Weft trains what `weft init classify train.tsv --test test.tsv --model linear` writes, unchanged: the model that
`weft init` keeps unless its trial proves a network better. Its CPU seconds are those of `init` and `train` without the start of Python.
The others are LogisticRegression and LinearSVC at their defaults over tf-idf of words 1-2 and letters 2-5, on the same training part;
their seconds are those of `fit`. One draw of the parts, seed {seed}. A verdict is McNemar's exact test at 5 % with Holm's
correction over all comparisons of this table; "alone" is a verdict that the correction takes away. Processor: {machine},
one thread, beside much other work.

"""


def main() -> None:
    """Measure, or write the page."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--data", type=Path, help="folder with the sets")
    given.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET")
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--write", action="store_true")
    asked = given.parse_args()
    done = {(row["set"], row["seed"]) for row in finished()}
    for name in asked.sets if asked.data else ():
        if (name, asked.seed) not in done:
            row = measure(asked.data, name, asked.seed)
            RUNS.parent.mkdir(exist_ok=True)
            with RUNS.open("a") as file:
                file.write(json.dumps(row) + "\n")
    rows = [row for name in SETS for row in finished() if (row["set"], row["seed"]) == (name, asked.seed)]
    if rows:
        print(table(rows))
    if asked.write:
        PAGE.write_text(HEAD.format(seed=asked.seed, machine=rows[0]["machine"]) + table(rows) + "\n")


if __name__ == "__main__":
    main()
