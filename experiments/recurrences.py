"""Recurrences at equal budget: every cell on the same tasks, with equal parameters and CPU seconds.

    python experiments/recurrences.py                            # everything that is not measured yet
    python experiments/recurrences.py --models lstm gru mamba --seeds 3 --seconds 2
    python experiments/recurrences.py --write --seconds 2        # docs/appendix/recurrences.md

All data comes with Weft or is drawn, so the command needs no files: three memory problems, English help texts letter
by letter, help texts from English to Spanish, the ends of words in texts without spaces (tagging), and noisy waves
(forecasting). Every finished run is one line of JSON in docs/pictures/memory/recurrences.jsonl; a run that is there,
or in runs.jsonl of memory.py, is not repeated, so the script can be stopped at any time. Read next: equal.py, the cells and the budget; memory.py and
texts.py, the same at more length.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import memory
import numpy as np
import texts
import torch
from equal import CELLS, FOLDER, block, compare, finished, machines, parameters, train, width_for
from text_data import PIECES, Parallel, Running, counted

from problems import Labels, english_letters, padded, sentences
from study import ROOT, interval, learn, plant, shown
from weft.data.corpora import corpus
from weft.models import Labeller
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.point import Point
from weft.text.vocabulary import Vocabulary

RUNS, PAGE = FOLDER / "recurrences.jsonl", ROOT / "docs" / "appendix" / "recurrences.md"
MEMORY = ("parity", "recall", "copying")
RATE, EMBEDDING, LETTERS, STEPS = 4e-3, 32, 60, 96
FEWEST, BESIDE = 3, "lstm"


class Column(NamedTuple):
    """A task of the table: what its score is, and whether less is better."""

    heading: str
    about: str
    less: bool = False


COLUMNS = {
    "parity": Column("parity", "share right, 16 bits (chance 0.5)"),
    "recall": Column("recall", "share right, 8 keys (chance 0.125)"),
    "copying": Column("copying", "share right, 16 letters of 5"),
    "language": Column("language, bits per letter", "English help texts, validation part", less=True),
    "translation": Column("translation, nats per piece", "English to Spanish help texts", less=True),
    "tagging": Column("tagging, F1", "the ends of words in English help texts without spaces"),
    "forecasting": Column(
        "forecasting, MSE", "the next value of three waves in noise of variance 0.09", less=True
    ),
}


def encoder(name: str, size: int, width: int, *, both: bool) -> Encoder:
    """One block around a cell, or two Transformer layers; `both` reads also from right to left."""
    if name == "transformer":
        made = partial(
            TransformerEncoder, size=width, num_layers=2, num_heads=2, inner=2 * width, dropout=0.0
        )
        return made(size, positions="rotary", norm_kind="rms", activation="geglu")
    return RecurrentEncoder(
        size, sizes=(width,), cell=block(name, width), last_norm="rms", bidirectional=both
    )


class WordEnds:
    """Tagging: a text without spaces, letter by letter; a tag says whether a word ends here."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.train, self.valid = (self._read(split) for split in ("train", "valid"))

    def _read(self, split: str) -> list[tuple[list[int], list[int]]]:
        rows = []
        for text in sentences("en", split):
            words = text.split()
            letters = "".join(words)[:LETTERS]
            ends = np.cumsum([len(word) for word in words]) - 1
            if split == "train":
                for letter in letters:
                    self.known.setdefault(letter, len(self.known) + 1)
            rows.append(
                ([self.known.get(one, 0) for one in letters], np.isin(range(len(letters)), ends).tolist())
            )
        return [row for row in rows if row[0]]

    def model(self, name: str, width: int) -> Labeller:
        """A tagger that reads in both directions."""
        symbols = len(self.known) + 1
        made = encoder(name, EMBEDDING, width, both=True)
        return Labeller(Tokens(symbols, EMBEDDING), made, Categorical(made.size, 2))

    def draw(self, chance: np.random.Generator) -> Labels:
        """32 sentences."""
        return self._batch([self.train[one] for one in chance.integers(0, len(self.train), 32)])

    @torch.no_grad()
    def score(self, model: Labeller) -> float:
        """F1 of the ends of words over the validation part."""
        model.eval()
        both = found = true = 0
        for at in range(0, len(self.valid), 100):
            batch = self._batch(self.valid[at : at + 100])
            said = (model.best(batch.source, batch.source_mask) == 1) & batch.source_mask
            real = (batch.target == 1) & batch.source_mask
            both, found, true = (
                both + int((said & real).sum()),
                found + int(said.sum()),
                true + int(real.sum()),
            )
        return 2 * both / max(1, found + true)

    @staticmethod
    def _batch(rows: Sequence[tuple[list[int], list[int]]]) -> Labels:
        source, mask = padded([letters for letters, _ in rows])
        return Labels(source, mask, padded([[int(one) for one in ends] for _, ends in rows])[0])


class Waves:
    """Forecasting: three waves of random period and phase in noise; the next value at each position."""

    def model(self, name: str, width: int) -> Labeller:
        """A forecaster of one step."""
        made = encoder(name, EMBEDDING, width, both=False)
        return Labeller(torch.nn.Linear(1, EMBEDDING), made, Point(made.size))

    def draw(self, chance: np.random.Generator, rows: int = 32) -> Labels:
        """Series of 96 values, and the value after each."""
        period = chance.uniform(4, 32, (rows, 3, 1))
        at = np.arange(STEPS + 1)[None, None] / period + chance.uniform(0, 1, (rows, 3, 1))
        values = np.sin(2 * np.pi * at).sum(1) + 0.3 * chance.normal(size=(rows, STEPS + 1))
        series = torch.from_numpy(values.astype(np.float32))
        return Labels(series[:, :-1, None], torch.ones(rows, STEPS, dtype=torch.bool), series[:, 1:])

    @torch.no_grad()
    def score(self, model: Labeller) -> float:
        """Mean squared error over the second half of 500 series."""
        model.eval()
        batch = self.draw(np.random.default_rng(0), 500)
        said = model.best(batch.source, batch.source_mask)
        return float((said - batch.target).square()[:, STEPS // 2 :].mean())


@cache
def data(task: str) -> Any:
    """The data of a task, read once."""
    if task == "language":
        text = english_letters()
        return Running(text, 64, 16, counted(text.valid, 64), "bits")
    if task == "translation":
        return _parallel()
    return WordEnds() if task == "tagging" else Waves()


def _parallel() -> Parallel:
    """The first 8,000 short pairs from English to Spanish, and 300 of the validation part."""
    pairs = {}
    for split, most in (("train", 8000), ("valid", 300)):
        some = (pair for pair in corpus("libreoffice-help", "en", "es", split) if len(pair.source) <= 80)
        pairs[split] = [(one.source, one.target) for one, _ in zip(some, range(most), strict=False)]
    words = Vocabulary.train((text for pair in pairs["train"] for text in pair), kind="bpe", size=PIECES)
    coded = {
        split: list(zip(*map(words.encode_batch, zip(*found, strict=True)), strict=True))
        for split, found in pairs.items()
    }
    by_length = sorted(coded["train"], key=lambda pair: (len(pair[1]), len(pair[0])))
    return Parallel(by_length, coded["valid"], [one for _, one in pairs["valid"]], words, 32)


def run(key: Mapping[str, Any]) -> dict[str, Any]:
    """Train one model for its CPU seconds; its score on the validation part."""
    task, name = key["task"], key["model"]
    if task in MEMORY:
        found = memory.run({**key, "problem": task})
        return {"width": found["width"], "parameters": found["parameters"], "updates": found["updates"], "score": found["valid"]}  # fmt: skip
    here = data(task)
    written = task in ("language", "translation")
    made: Callable[[int], Any] = partial(texts.model, name, here) if written else partial(here.model, name)
    sized = partial(texts.decoder, name, texts.encoder_of(here)) if written else made
    width = width_for(sized, key["budget"])
    learn(made(width), partial(here.draw, plant(key["seed"])), 1)  # what is done once
    chance = plant(key["seed"])
    model = made(width)
    updates = train(model, partial(here.draw, chance), key["seconds"], RATE)
    score = here.score(model) if not written else here.scores(model)["bits" if task == "language" else "loss"]
    return {"width": width, "parameters": parameters(model), "updates": updates, "score": round(score, 4)}


def shared() -> list[dict[str, Any]]:
    """The runs of memory.py on the same problems, which need not be repeated."""
    return [
        {**one, "task": one["problem"], "score": one["valid"]}
        for one in finished(memory.RUNS)
        if one["problem"] in MEMORY
    ]


def said(found: Mapping[str, Any]) -> str:
    """A finished run."""
    return f"{found['task']}, {found['model']}, seed {found['seed']}: {found['score']:.4g}, {found['updates']} updates"


HEAD = """# Recurrences at equal budget

Which recurrence learns most from the same number of parameters and the same CPU time? Every cell is trained on the same tasks; all
data comes with Weft or is drawn. One command measures what is missing and one writes this page:

```console
$ python experiments/recurrences.py --seconds {seconds:g} --parameters {budget}
$ python experiments/recurrences.py --seconds {seconds:g} --parameters {budget} --write
```

Every model has at most {budget:,} parameters (for language and translation: of the decoder; widths found by bisection) and {seconds:g} CPU
seconds of training per run. A model is one block around a cell, or two Transformer layers; language and translation use two layers
([how](texts.md)). One learning rate for all cells, not tuned (0.01 for the memory problems, else 0.004). Processor: {machine}, one thread, shared with other work.

± is the 95 % interval of the mean over seeds (Student's t). **Bold**: its paired difference from `lstm` excludes 0 in its favour; *italics*:
against it. With many 95 % intervals, expect some to be wrong. These budgets are small: a ranking holds only for them. Equal CPU time
rewards cells that are fast on this processor. The runs are in `docs/pictures/memory/recurrences.jsonl`, those of the memory problems in
`runs.jsonl` beside it.

{tasks}

"""


def page(runs: Sequence[Mapping[str, Any]]) -> str:
    """The table of what was measured with at least three seeds."""
    scores: dict[tuple[str, str], dict[int, float]] = {}
    for one in runs:
        scores.setdefault((one["model"], one["task"]), {})[one["seed"]] = one["score"]
    scores = {key: found for key, found in scores.items() if len(found) >= FEWEST}
    tasks = [task for task in COLUMNS if any(key[1] == task for key in scores)]
    names = [name for name in CELLS if any(key[0] == name for key in scores)]
    assert tasks, (
        "no runs with this budget and three seeds; train first, or give their --seconds and --parameters"
    )
    about = [f"- **{COLUMNS[task].heading}**: {COLUMNS[task].about}." for task in tasks]
    head = HEAD.format(
        seconds=runs[0]["seconds"], budget=runs[0]["budget"], machine=machines(runs), tasks="\n".join(about)
    )
    lines = [f"| cell | seeds | {' | '.join(COLUMNS[task].heading for task in tasks)} |"]
    lines += [f"|---|---|{'---|' * len(tasks)}"]
    for name in names:
        seeds = sorted({len(scores[name, task]) for task in tasks if (name, task) in scores})
        cells = [_cell(scores, name, task) for task in tasks]
        lines.append(
            f"| {name} | {' to '.join(map(str, seeds[:1] + seeds[1:][-1:]))} | {' | '.join(cells)} |"
        )
    missing = [name for name in CELLS if name not in names]
    missing += [COLUMNS[task].heading for task in COLUMNS if task not in tasks]
    rest = f"\nNot measured with this budget yet: {'; '.join(missing)}.\n" if missing else ""
    return head + "\n".join(lines) + "\n" + rest


def _cell(scores: Mapping[tuple[str, str], Mapping[int, float]], name: str, task: str) -> str:
    own, other = scores.get((name, task)), scores.get((BESIDE, task), {})
    if own is None:
        return ""
    text = shown(*interval(np.array(list(own.values()))))
    both = sorted(own.keys() & other.keys())
    if name == BESIDE or len(both) < FEWEST:
        return text
    mean, half = interval(np.array([own[seed] - other[seed] for seed in both]))
    if abs(mean) <= half:
        return text
    return f"**{text}**" if (mean < 0) == COLUMNS[task].less else f"*{text}*"


def write(runs: list[dict[str, Any]]) -> None:
    """Write the page."""
    PAGE.write_text(page(runs), "utf-8")
    print(f"Written to {PAGE}")


def main() -> None:
    """Run what is missing, or write the page."""
    # as an encoder the Transformer would see what it is to foretell
    unfit = {("transformer", "forecasting")}
    compare(__doc__, RUNS, "task", [*COLUMNS], run, said, write, seconds=20, more=shared, without=unfit)


if __name__ == "__main__":
    main()
