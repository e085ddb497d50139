"""Weft's defaults beside the usual library, on small real sets: who is right more often, and in how many CPU seconds.

    python experiments/usual.py --data FOLDER          # what is not measured yet; FOLDER has cls/trec and so on
    python experiments/usual.py --data FOLDER --sets trec-300 hr-720 --seed 2
    python experiments/usual.py --write                # docs/appendix/usual.md

A set is a line of SETS, a task an entry of TASKS: what Weft does with the set and what a user of another library would train
first. Classifiers need scikit-learn, taggers sklearn-crfsuite, forecasters statsforecast; nothing needs a network. Each
finished set is one line of JSON in build/usual.jsonl. Read next: ../docs/guides/tasks/classify.md.
"""

import argparse
import csv
import gzip
import io
import json
import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import weft
from study import ROOT, machine
from weft import cli
from weft.metrics import holm

RUNS = ROOT / "build" / "usual.jsonl"
PAGE = ROOT / "docs" / "appendix" / "usual.md"
LEVEL = 0.05


class Scored(NamedTuple):
    """A score of each item of the test part (the higher the better), their common score, and the CPU seconds."""

    items: np.ndarray
    score: float
    seconds: float


Peers = Iterator[tuple[str, Scored]]
"""Names of the other library's models, and what they score."""


Rows = list[tuple[str, str]]
"""(label, text)."""


class Texts(NamedTuple):
    """Tables of labelled texts: all are shuffled together, or the last one is the test part."""

    files: Sequence[str]
    label: str
    text: Sequence[str]
    train: int
    test: int
    held: str = ""
    task: str = "classify"

    def read(self, folder: Path, file: str) -> list[tuple[str, str]]:
        """(label, text) of each row."""
        with gzip.open(folder / file, "rt", encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
        return [(row[self.label], " ".join(row[name] for name in self.text)) for row in rows]

    def parts(self, folder: Path, seed: int) -> tuple[Rows, Rows]:
        """The rows for training, and others for the test."""
        chance = random.Random(seed)
        found = [row for file in self.files for row in self.read(folder, file)]
        chance.shuffle(found)
        held = self.read(folder, self.held) if self.held else found
        return (found if self.held else found[self.test :])[: self.train], held[: self.test]


class Sentences(NamedTuple):
    """Tagged sentences of a treebank, shuffled."""

    file: str
    train: int
    test: int
    task: str = "tag"

    def parts(self, folder: Path, seed: int) -> tuple[list[Rows], list[Rows]]:
        """The sentences for training, and others for the test; (tag, word) in each."""
        with gzip.open(folder / self.file, "rt", encoding="utf-8") as lines:
            cells = [line.rstrip("\n").split("\t") for line in lines]
        found: list[Rows] = [[]]
        for row in cells:
            if row == [""]:
                found.append([])
            elif row[0].isdecimal():
                found[-1].append((row[3], row[1]))
        found = [one for one in found if one]
        random.Random(seed).shuffle(found)
        return found[self.test :][: self.train], found[: self.test]


class Series(NamedTuple):
    """A table of series: the last fifth is the test part, with so many origins of forecasts that do not overlap."""

    file: str
    columns: Sequence[str]
    horizon: int
    season: int
    time: str = ""
    most: int = 20
    task: str = "forecast"

    def parts(self, folder: Path, seed: int) -> tuple[pd.DataFrame, list[int]]:
        """The whole table, and the rows at which forecasts begin. There is nothing to draw."""
        table = pd.read_csv(folder / self.file, header=0 if self.time else None)
        table.columns = table.columns.map(str)
        times = pd.to_datetime(table[self.time]) if self.time else pd.date_range("1990", periods=len(table))
        table = table[list(self.columns)].set_index(pd.DatetimeIndex(times, name="time"))
        first = round(0.8 * len(table))
        count = min(self.most, (len(table) - first) // self.horizon)
        step = (len(table) - self.horizon - first) // max(count - 1, 1)
        return table, [first + n * step for n in range(count)]


def classify(train: Rows, test: Rows, folder: Path) -> tuple[Scored, Peers]:
    """Right answers: `weft init classify --model linear`, and linear models over tf-idf of words 1-2 and letters 2-5."""
    for name, rows in (("train.tsv", train), ("test.tsv", test)):
        with open(folder / name, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter="\t", lineterminator="\n").writerows([("label", "text"), *rows])
    seconds = _train(
        folder, "classify", folder / "train.tsv", "--test", folder / "test.tsv", "--model", "linear"
    )
    _command("predict", folder / "run", folder / "test.tsv", "--output", folder / "answered.tsv")
    with open(folder / "answered.tsv", encoding="utf-8", newline="") as file:
        answers = [row[-1] for row in csv.reader(file, delimiter="\t")][1:]
    return _right(answers, test, seconds), _scikit_learn(train, test)


def _right(answers: Sequence[str], test: Rows, seconds: float) -> Scored:
    right = np.array(answers) == np.array([label for label, _ in test])
    return Scored(right.astype(float), float(right.mean()), seconds)


def _scikit_learn(train: Rows, test: Rows) -> Peers:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC

    for model in (LogisticRegression(max_iter=1000), LinearSVC()):
        words = TfidfVectorizer(ngram_range=(1, 2))
        letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5))
        begun = time.process_time()
        labels, texts = zip(*train, strict=True)
        fitted = make_pipeline(make_union(words, letters), model).fit(texts, labels)
        spent = time.process_time() - begun
        yield type(model).__name__, _right(fitted.predict([text for _, text in test]), test, spent)


def tag(train: list[Rows], test: list[Rows], folder: Path) -> tuple[Scored, Peers]:
    """Right tags: `weft init tag --model linear`, and a CRF with the features of its tutorial."""
    for name, sentences in (("train.tsv", train), ("test.tsv", test)):
        blocks = ("".join(f"{word}\t{kind}\n" for kind, word in one) for one in sentences)
        (folder / name).write_text("\n".join(blocks), "utf-8")
    seconds = _train(folder, "tag", folder / "train.tsv", "--test", folder / "test.tsv", "--model", "linear")
    words = [[word for _, word in one] for one in test]
    found = weft.load(folder / "run").predict(words)
    return _tagged([[pair[1] for pair in one] for one in found], test, seconds), _crfsuite(train, test)


def _tagged(answers: Sequence[Sequence[str]], test: list[Rows], seconds: float) -> Scored:
    """Items are sentences, each with its right tags for one word of the whole test part."""
    right = [
        sum(kind == found for (kind, _), found in zip(one, tags, strict=True))
        for one, tags in zip(test, answers, strict=True)
    ]
    return Scored(np.array(right, float), sum(right) / sum(map(len, test)), seconds)


def _crfsuite(train: list[Rows], test: list[Rows]) -> Peers:
    import sklearn_crfsuite

    def features(sentence: Rows) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for word in (word for _, word in sentence):
            same = {"lower": word.lower(), "title": word.istitle(), "upper": word.isupper()}
            rows.append({"bias": 1.0, "end3": word[-3:], "end2": word[-2:], "digit": word.isdigit(), **same})
        for at, row in enumerate(list(rows)):
            for name, other in (("before", at - 1), ("after", at + 1)):
                if 0 <= other < len(rows):
                    row |= {f"{name} {key}": rows[other][key] for key in ("lower", "title", "upper")}
                else:
                    row[name] = "none"
        return rows

    begun = time.process_time()
    model = sklearn_crfsuite.CRF(
        algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True
    )
    model.fit([features(one) for one in train], [[kind for kind, _ in one] for one in train])
    spent = time.process_time() - begun
    yield "CRFsuite", _tagged(model.predict([features(one) for one in test]), test, spent)


def forecast(table: pd.DataFrame, origins: list[int], folder: Path, of: Series) -> tuple[Scored, Peers]:
    """Squared errors, scaled: `weft init forecast`, and models fitted again at each origin on its 500 last rows."""
    table.to_csv(folder / "train.csv")
    seconds = _train(folder, "forecast", folder / "train.csv", "--horizon", str(of.horizon))
    model = weft.load(folder / "run")
    scale = table.iloc[: round(0.7 * len(table))].std()
    names = list(table.columns)
    found = []
    for at in origins:
        answer = model.predict(table.iloc[:at].reset_index())
        found.append(answer.pivot(index="ds", columns="unique_id", values="y")[names].to_numpy())
    return _near(found, table, origins, scale, seconds), _statsforecast(table, origins, scale, of)


def _near(
    found: list[np.ndarray], table: pd.DataFrame, origins: list[int], scale: pd.Series, seconds: float
) -> Scored:
    wrong = [
        float(np.square((one - table.iloc[at : at + len(one)].to_numpy()) / scale.to_numpy()).mean())
        for one, at in zip(found, origins, strict=True)
    ]
    return Scored(-np.array(wrong), float(np.mean(wrong)), seconds)


def _statsforecast(table: pd.DataFrame, origins: list[int], scale: pd.Series, of: Series) -> Peers:
    from statsforecast.models import AutoETS, AutoTheta

    for model in (AutoETS(season_length=of.season), AutoTheta(season_length=of.season)):
        begun = time.process_time()
        found = []
        for at in origins:
            past = table.iloc[max(0, at - 500) : at].to_numpy(float).T
            found.append(np.stack([model.forecast(y=one.copy(), h=of.horizon)["mean"] for one in past], 1))
        spent = time.process_time() - begun
        yield type(model).__name__, _near(found, table, origins, scale, spent)


def _train(folder: Path, task: str, *asked: object) -> float:
    """Write a recipe and train it, as they are; in CPU seconds."""
    begun = time.process_time()
    _command("init", task, *asked, "--output", folder / "r.yaml")
    _command("train", folder / "r.yaml", "--run", folder / "run", "training.tensorboard=false")
    return time.process_time() - begun


def _command(*words: object) -> str:
    """What a command of Weft prints; in this process, so that loading torch is not in its seconds."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.group.main(args=[str(word) for word in words], prog_name="weft", standalone_mode=False)
    if code:
        raise SystemExit(f"weft {words[0]}: {err.getvalue()}")
    return out.getvalue()


def _sib(language: str, train: int, test: int) -> Texts:
    files = "cls/sib200/train.tsv.gz", "cls/sib200/dev.tsv.gz"
    return Texts(files, "category", (language,), train, test)


def _films(name: str, train: int, test: int) -> Texts:
    return Texts((f"cls/{name}/train.tsv.gz",), "label", ("text",), train, test, f"cls/{name}/dev.tsv.gz")


def _trec(label: str, train: int) -> Texts:
    return Texts(("cls/trec/train.tsv.gz",), label, ("text",), train, 1500)


def _table(file: str, train: int, test: int, text: Sequence[str] = ("text",)) -> Texts:
    return Texts((f"cls/{file}.tsv.gz",), "label", text, train, test)


NEWS = "title", "description"
SETS: Mapping[str, Texts | Sentences | Series] = {
    "trec-3000": _trec("coarse", 3000),
    "trec-300": _trec("coarse", 300),
    "sst2-3000": _films("sst2", 3000, 872),
    "sst2-300": _films("sst2", 300, 872),
    "sst5-3000": _films("sst5", 3000, 1100),
    "sst5-300": _films("sst5", 300, 1100),
    "mr-3000": _table("mr/mr", 3000, 1500),
    "mr-300": _table("mr/mr", 300, 1500),
    "ag-3000": _table("ag_news/ag_news_7600", 3000, 1500, NEWS),
    "ag-300": _table("ag_news/ag_news_7600", 300, 1500, NEWS),
    "sib-en-500": _sib("en", 500, 200),
    "sib-en-300": _sib("en", 300, 300),
    "sib-hr-500": _sib("hr", 500, 200),
    "sib-hr-300": _sib("hr", 300, 300),
    "movies-1300": _table("movie_reviews/reviews", 1300, 500),
    "movies-300": _table("movie_reviews/reviews", 300, 500),
    "trec-fine-3000": _trec("fine", 3000),
    "subj-3000": _table("subj/subj", 3000, 1500),
    "sib-ru-500": _sib("ru", 500, 200),
    "sib-pl-500": _sib("pl", 500, 200),
    "tags-en-1500": Sentences("pos/en_ewt/en_ewt-ud-train.conllu.gz", 1500, 700),
    "tags-hr-720": Sentences("pos/hr_set/hr_set-ud-dev.conllu.gz", 720, 240),
    "tags-es-1050": Sentences("pos/es_gsd/es_gsd-ud-dev.conllu.gz", 1050, 350),
    "tags-pl-700": Sentences("pos/pl_pdb/pl_pdb-ud-dev.conllu.gz", 700, 700),
    "tags-ru-400": Sentences("pos/ru_gsd/ru_gsd-ud-dev.conllu.gz", 400, 179),
    "sunspots-24": Series("ts/monthly-sunspots.csv", ("Sunspots",), 24, 12, "Month"),
    "melbourne-28": Series("ts/daily-min-temperatures.csv", ("Temp",), 28, 7, "Date"),
    "ett-ot-24": Series("ts/ETTh1.csv.gz", ("OT",), 24, 24, "date"),
    "ett-hufl-48": Series("ts/ETTh1.csv.gz", ("HUFL",), 48, 24, "date"),
    "exchange-12": Series("ts/exchange_rate.first80pct.csv.gz", tuple("01234567"), 12, 5),
}
"""By name. Those with 500 texts of SIB-200 have the 201 others as their test."""


def measure(folder: Path, name: str, seed: int) -> dict[str, Any]:
    """One set: scores, CPU seconds, and whether the items' differences are more than chance."""
    from scipy.stats import binomtest, permutation_test

    part = SETS[name]
    train, test = part.parts(folder, seed)
    with tempfile.TemporaryDirectory() as place:
        if isinstance(part, Series):
            ours, peers = forecast(train, test, Path(place), part)
        else:
            ours, peers = (classify if part.task == "classify" else tag)(train, test, Path(place))
    found: dict[str, Any] = {"set": name, "task": part.task, "seed": seed, "machine": machine()}
    found |= {"train": len(train), "test": len(test), "weft": _row(ours), "peers": {}}
    for peer, theirs in peers:
        apart = ours.items - theirs.items
        ahead, behind = int((apart > 0).sum()), int((apart < 0).sum())
        if part.task == "classify":  # McNemar's test, which is the test below with all exchanges
            p = float(binomtest(ahead, ahead + behind).pvalue) if ahead + behind else 1.0
        else:
            chance = np.random.default_rng(seed)
            tested = permutation_test(
                (apart,), np.mean, permutation_type="samples", n_resamples=99_999, rng=chance
            )
            p = float(tested.pvalue)
        found["peers"][peer] = _row(theirs) | {"p": p, "ahead": bool(apart.mean() > 0)}
    return found


def _row(one: Scored) -> dict[str, float]:
    return {"score": one.score, "seconds": one.seconds}


def finished() -> list[dict[str, Any]]:
    """The sets that are measured."""
    return [json.loads(line) for line in RUNS.read_text().splitlines()] if RUNS.exists() else []


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table for each task; verdicts corrected over all comparisons of the page."""
    pairs = [(n, peer) for n, row in enumerate(rows) for peer in row["peers"]]
    corrected = dict(zip(pairs, holm([rows[n]["peers"][peer]["p"] for n, peer in pairs]), strict=True))
    parts = []
    for task, told in TASKS.items():
        chosen = [n for n, row in enumerate(rows) if row["task"] == task]
        peers = list(dict.fromkeys(peer for n in chosen for peer in rows[n]["peers"]))
        lines = [
            told,
            "",
            f"| set | training, test | Weft | {' | '.join(peers)} |",
            "|---" * (3 + len(peers)) + "|",
        ]
        counts = {peer: {"better": 0, "equal": 0, "worse": 0} for peer in peers}
        for n in chosen:
            row = rows[n]
            cells = [row["set"], f"{row['train']:,}, {row['test']:,}", _shown(row["weft"], task)]
            for peer in peers:
                other = row["peers"][peer]
                side = "better" if other["ahead"] else "worse"
                verdict = side if corrected[n, peer] < LEVEL else "equal"
                counts[peer][verdict] += 1
                alone = f" (alone: {side})" if verdict == "equal" and other["p"] < LEVEL else ""
                cells.append(f"{_shown(other, task)}: {verdict}{alone}")
            lines.append(f"| {' | '.join(cells)} |")
        ends = [f"{peer}: " + ", ".join(f"{n} {word}" for word, n in counts[peer].items()) for peer in peers]
        parts.append("\n".join([*lines, "", *(f"- Weft against {end}." for end in ends)]) if chosen else "")
    return "\n\n".join(part for part in parts if part)


def _shown(one: Mapping[str, float], task: str) -> str:
    score = f"{one['score']:.3f}" if task == "forecast" else f"{100 * one['score']:.1f} %"
    return f"{score}, {one['seconds']:.1f} s"


HEAD = """# Defaults beside the usual library

Written by `python experiments/usual.py --write` after `python experiments/usual.py --data FOLDER`; a set that is missing here was
not measured. Weft trains what `weft init` writes, unchanged; its CPU seconds are those of `init` and `train` without the start of
Python, those of the others are of `fit`. Both have the same training part. One draw of the parts, seed {seed}. A verdict is that of
an exact or randomised paired test over texts, sentences or origins at 5 %, with Holm's correction over all comparisons of this
page; "alone" is a verdict that the correction takes away. Processor: {machine}, one thread, beside much other work.

"""
TASKS = {
    "classify": """## Classifiers

Accuracy. `weft init classify train.tsv --test test.tsv --model linear`: the model that `weft init` keeps unless its trial proves a network
better. Beside it LogisticRegression and LinearSVC of scikit-learn at their defaults over tf-idf of words 1-2 and letters 2-5.""",
    "tag": """## Taggers

Accuracy of UPOS with given tokens; treebanks shuffled. `weft init tag train.tsv --test test.tsv --model linear`. Beside it
sklearn-crfsuite with the features of its tutorial (without tags, which are the answer here), `c1` and `c2` 0.1.""",
    "forecast": """## Forecasters

Mean squared error in units of the training part's variance: lower is better. `weft init forecast train.csv --horizon H`: trained once on the first
70 % of the rows, a tenth chooses, the last fifth is the test; H stands at the end of the name. Beside it AutoETS and AutoTheta of
statsforecast, fitted again at each origin on its last 500 rows. The numbers are those of rows, and of origins, whose forecasts do not
overlap.""",
}
"""What is compared, by task."""


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
        print(page(rows))
    if asked.write:
        PAGE.write_text(HEAD.format(seed=asked.seed, machine=rows[0]["machine"]) + page(rows) + "\n")


if __name__ == "__main__":
    main()
