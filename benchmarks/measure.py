"""Engines measured in turns: A B C A B C ..., so that a busy neighbour touches all of them alike.

Read next: report.py, which makes medians and ratios of what comes back.
"""

from argparse import Namespace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from engines import NotHere, Process, Row
from tokenizers import Tokenizer

from weft.metrics.bleu import Bleu

TAKEN_OVER = {  # who decodes whose weights
    "ctranslate2": "transformers",
    "exported": "weft",
    "onnxruntime": "weft",
}
SEARCHES = {  # beam width, and whether sentences come one at a time
    "greedy": (1, False),
    "beam 5": (5, False),
    "greedy, one sentence at a time": (1, True),
    "beam 5, one sentence at a time": (5, True),
}
CHUNK = 5  # updates between two looks at a training budget

Answer = dict[str, Any]
Rounds = dict[str, list[Answer]]  # the worker's answers by the row's label, in order of rounds


class Measured(NamedTuple):
    """What one model gave."""

    model: str
    facts: dict[str, Answer]  # what `prepare` said of the rows that stayed to the end
    training: Rounds
    spent: dict[str, float]  # CPU seconds trained in all
    searching: dict[str, Rounds]  # by the name of the search
    bleu: dict[tuple[str, str], float]
    signature: str  # empty where outputs were forced


def giver(row: Row) -> str | None:
    """The row whose weights this one decodes, if it does not train."""
    if row.engine == "weft" and row.dtype == "int8":
        return "weft"
    return TAKEN_OVER.get(row.engine)


class Scorer:
    """BLEU of token ids.

    Args:
        vocabulary: the tokenizer's file.
        references: text of the whole test set.
        batches: numbers of the sentences of each test batch.
    """

    def __init__(self, vocabulary: Path, references: list[str], batches: list[np.ndarray]) -> None:
        self.coder = Tokenizer.from_file(str(vocabulary))
        self.references, self.batches = references, batches

    def score(self, outputs: list[list[int]], batches: list[int]) -> float:
        """BLEU of the outputs for these batches."""
        texts = [text.strip() for text in self.coder.decode_batch(outputs)]
        wanted = [self.references[row] for batch in batches for row in self.batches[batch]]
        return Bleu().score(texts, wanted).value


class Bench:
    """One model, all engines: started, warmed up, trained, searched with.

    Args:
        options: of the command line.
        model: "transformer", "rnn", or "hybrid", which is Weft's beside the peers' Transformer.
        rows: engines, each in a dtype.
        npz: the workload.
    """

    def __init__(self, options: Namespace, model: str, rows: list[Row], npz: Path) -> None:
        self.options = options
        self.model = model
        self.processes: dict[str, Process] = {}
        self.facts: dict[str, Answer] = {}
        common = {
            "workload": str(npz),
            "threads": options.threads,
            "seed": options.seed,
        }
        for row in rows:
            try:
                self.processes[row.label] = process = Process(row, options.venvs, options.threads)
                theirs = "transformer" if model == "hybrid" and row.engine != "weft" else model
                sizes = {"vocabulary": options.vocabulary, "model": theirs}
                self.facts[row.label] = process.ask(
                    "prepare", engine=row.engine, dtype=row.dtype, sizes=sizes, **common
                )
            except NotHere as reason:
                if row.engine == "weft":
                    self.end()
                    raise SystemExit(f"nothing was measured: {reason}") from None
                self.leave(row.label, str(reason))

    def run(self, scorer: Scorer) -> Measured:
        """Every measurement of this model."""
        training = self.train()
        spent = self.train_on(training)
        self.hand_over()
        forced = not self.options.train_seconds
        tests = spread(len(scorer.batches), -(-self.options.sentences // self.options.rows))
        searching, bleu = {}, {}
        for name, (width, alone) in SEARCHES.items():
            chosen = spread(len(scorer.batches), self.options.alone) if alone else tests
            if not chosen:
                continue
            searching[name] = self.search(width, chosen, forced, alone)
            for label, answers in searching[name].items():
                outputs = [answer.pop("outputs") for answer in answers]
                if not forced and not alone:
                    bleu[name, label] = scorer.score(outputs[-1], tests)
        signature = "" if forced else f"BLEU {Bleu().fitted(scorer.references).signature()}"
        full = self.complete
        found = {name: full(rounds) for name, rounds in searching.items()}
        return Measured(self.model, self.facts, full(training), spent, found, bleu, signature)

    def train(self) -> Rounds:
        """Rounds of updates, after one to warm up; every engine gets the same batches."""
        trainers, count = (
            [label for label, facts in self.facts.items() if facts["trains"]],
            self.options.batches,
        )
        self.each(trainers, "train", first=0, count=1)
        rounds: Rounds = {label: [] for label in trainers}
        for number in range(self.options.rounds):
            for label, answer in self.each(trainers, "train", first=1 + number * count, count=count):
                rounds[label].append(answer)
        return rounds

    def search(self, width: int, tests: list[int], forced: bool, alone: bool) -> Rounds:
        """Rounds of translating the same test batches, after one batch to warm up."""
        able = [label for label, facts in self.facts.items() if width in facts["widths"]]
        how = {"width": width, "alone": alone}
        self.each(able, "search", batches=tests[:1], forced=True, **how)
        rounds: Rounds = {label: [] for label in able}
        for _ in range(self.options.rounds):
            for label, answer in self.each(able, "search", batches=tests, forced=forced, **how):
                rounds[label].append(answer)
        return rounds

    def each(self, labels: list[str], do: str, **arguments: Any) -> list[tuple[str, Answer]]:
        """Ask one after the other; whoever fails leaves the benchmark, loudly."""
        answers = []
        for label in [label for label in labels if label in self.processes]:
            try:
                answers.append((label, self.processes[label].ask(do, **arguments)))
            except NotHere as reason:
                self.leave(label, str(reason))
        return answers

    def train_on(self, training: Rounds) -> dict[str, float]:
        """Train every engine up to the budget of CPU seconds, in turns; what was measured counts.

        Returns:
            CPU seconds by label; the last answers of `training` get the last loss.
        """
        spent = {
            label: sum(answer["cpu_seconds"] for answer in answers) for label, answers in training.items()
        }
        first = 1 + self.options.rounds * self.options.batches
        while late := [k for k, v in spent.items() if v < self.options.train_seconds and k in self.processes]:
            for label in late:
                at = training[label][-1].setdefault("next", first)
                for _, answer in self.each([label], "train", first=at, count=CHUNK):
                    spent[label] += answer["cpu_seconds"]
                    training[label][-1] |= {"loss": answer["loss"], "next": at + CHUNK}
        return spent

    def hand_over(self) -> None:
        """Give the trained weights to those who only decode."""
        folder = self.options.venvs / "weights"
        folder.mkdir(parents=True, exist_ok=True)
        saved: set[str] = set()
        for label in list(self.processes):
            whose = giver(self.processes[label].row)
            if whose is None:
                continue
            if whose in saved or self.each([whose], "save", folder=str(folder)):
                saved.add(whose)
                self.each([label], "load", folder=str(folder))
            else:
                self.leave(label, f"{label} decodes the weights of {whose}, which is not here")

    def complete(self, rounds: Rounds) -> Rounds:
        """Without the rows that left midway."""
        return {label: answers for label, answers in rounds.items() if label in self.processes}

    def leave(self, label: str, reason: str) -> None:
        """Say who is left out and why, and end its process."""
        print(f"LEFT OUT: {reason}", flush=True)
        self.facts.pop(label, None)
        if label in self.processes:
            self.processes.pop(label).end()

    def end(self) -> None:
        """Stop every worker."""
        for process in self.processes.values():
            process.end()


def spread(total: int, wanted: int) -> list[int]:
    """`wanted` numbers below `total`, evenly spread: test batches are in order of length."""
    wanted = min(total, wanted)
    return [i * total // wanted + total // (2 * wanted) for i in range(wanted)]
