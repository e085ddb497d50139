"""The effect of data augmentation with few pairs: BLEU of variants of help-demo, several seeds.

    python benchmarks/augmentation.py build/augmentation

Each variant is trained on the first pairs of the help pages with as many updates. For back-translation, a
model of the reverse direction, trained on the same pairs, translates the targets of the pairs that follow.
Three tests are translated greedily: the test part, the same with mistakes in the sources, and its pairs
joined two by two. A variant is compared with its baseline over seeds and test items
(weft/metrics/intervals.py). The same command resumes.
"""

import argparse
import json
import random
import time
from itertools import islice
from pathlib import Path

import numpy as np

from weft.commands.backtranslate import command as backtranslate
from weft.config import read_recipe
from weft.data import corpus
from weft.metrics import Bleu, compare_repeated
from weft.run import open_run
from weft.run.training import begin_run
from weft.text.augmentation import Noise
from weft.text.vocabulary import Vocabulary
from weft.train.loop import train

BACK = "back-translation"
UNIGRAM = "data.vocabulary.kind=unigram"
VARIANTS: dict[str, tuple[str, list[str]]] = {  # name: baseline, changes of the recipe; most important first
    "bpe": ("", []),
    "bpe, dropout 0.1": ("bpe", ["data.vocabulary.dropout=0.1"]),
    "unigram": ("", [UNIGRAM]),
    "unigram, alpha 0.2": ("unigram", [UNIGRAM, "data.vocabulary.alpha=0.2"]),
    "mistakes 0.05": ("bpe", ["data.augment={drop_words: 0.05, swap_words: 0.05, typos: 0.05}"]),
    BACK: ("bpe", []),
    "concatenate 0.2": ("bpe", ["data.augment.concatenate=0.2"]),
}
RECIPE = Path("recipes/translate/help-demo.yaml")
SIZE = 2000
"""Pieces of the vocabulary; fewer than the recipe's, because the pairs are fewer."""


def main() -> None:
    """Train what is missing, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("folder", type=Path, help="where data, runs and outputs go")
    add("--pairs", type=int, default=2000, help="number of training pairs (2000)")
    add("--updates", type=int, default=400, help="of each training (400)")
    add("--mono", type=int, default=6000, help="number of target sentences for back-translation (6000)")
    add("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options = parser.parse_args()
    tests = prepared(options.folder, options.pairs, options.mono)
    for name, (_, changes) in VARIANTS.items():
        for seed in options.seeds:
            common = [f"training.max_updates={options.updates}", f"training.seed={seed}", *changes]
            if name == BACK:
                common.append(f'data.mixed={{"{back(options.folder, seed, common)}": 1.0}}')
            said(options.folder, f"{name}, seed {seed}", common, tests)
    report(options.folder, tests, options.seeds)


def prepared(folder: Path, count: int, mono: int) -> dict[str, tuple[list[str], list[str]]]:
    """Write training and validation pairs and further targets; the sources and references of each test."""
    folder.mkdir(parents=True, exist_ok=True)
    further = islice(corpus("libreoffice-help", "en", "es", "train"), count, count + mono)
    (folder / "mono.es").write_text("".join(f"{one.target}\n" for one in further), "utf-8")
    for split, most in (("train", count), ("valid", 200)):
        pairs = list(islice(corpus("libreoffice-help", "en", "es", split), most))
        for side, texts in (("en", [one.source for one in pairs]), ("es", [one.target for one in pairs])):
            (folder / f"{split}.{side}").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    rows = list(corpus("libreoffice-help", "en", "es", "test"))
    sources, references = [one.source for one in rows], [one.target for one in rows]
    letters = Vocabulary.train(sources, kind="character", size=None)
    noise, chance = Noise(letters, drop=0.05, swap=0.05, typos=0.1), random.Random(1)
    wrong = [letters.decode(noise.draw(letters.encode(text), chance)) for text in sources]
    joined = [
        [f"{a} {b}" for a, b in zip(side[::2], side[1::2], strict=False)] for side in (sources, references)
    ]
    return {
        "test": (sources, references),
        "with mistakes": (wrong, references),
        "joined": (joined[0], joined[1]),
    }


def back(folder: Path, seed: int, common: list[str]) -> Path:
    """Translate the further targets with a model of the reverse direction; the path of the pairs."""
    place = folder / f"back, seed {seed}"
    if not (place / "back.en").exists():
        run = trained(folder, f"reverse, seed {seed}", ["data.source=es", "data.target=en", *common])
        arguments = [str(run), str(folder / "mono.es"), "--output", str(place), "--beam", "1"]
        if backtranslate.main(arguments, standalone_mode=False):
            raise SystemExit("stopped; the same command resumes")
    return (place / "back").absolute()


def trained(folder: Path, name: str, changes: list[str]) -> Path:
    """Train the run `name` on the pairs of the folder, or go on with it."""
    data = [f"data.folder={folder.absolute()}", "data.corpus=null", "data.train=train", "data.valid=valid"]
    common = [f"data.vocabulary.size={SIZE}", "training.accumulate=1"]
    common += ["training.validate_every=100000", "decoding.search=greedy", "decoding.beam=1"]
    run = folder / "runs" / name
    checked = begin_run(run, read_recipe(RECIPE, [*data, *common, *changes]))
    if train(checked.task, run, checked.settings).exit_code:
        raise SystemExit("stopped; the same command resumes")
    return run


def said(folder: Path, name: str, changes: list[str], tests: dict[str, tuple[list[str], list[str]]]) -> None:
    """Train a run and write its translations of the tests, unless they exist."""
    place = folder / f"{name}.json"
    if place.exists():
        return
    start = time.process_time()
    opened = open_run(trained(folder, name, changes), device="cpu")
    seconds = time.process_time() - start
    predictor = opened.pipeline.predictor(opened.model)
    found = {
        test: [answer.text() for answer in predictor.answers(sources)] for test, (sources, _) in tests.items()
    }
    place.write_text(json.dumps({"seconds": seconds, "texts": found}), "utf-8")


def report(folder: Path, tests: dict[str, tuple[list[str], list[str]]], seeds: list[int]) -> None:
    """Print each variant with the scores of its seeds, and its difference from the baseline."""
    metric, rows = Bleu(), dict[tuple[str, str], list[np.ndarray]]()
    for name, (baseline, _) in VARIANTS.items():
        files = [folder / f"{name}, seed {seed}.json" for seed in seeds]
        known = [json.loads(file.read_text("utf-8")) for file in files if file.exists()]
        for test, (sources, references) in tests.items():
            statistics = [metric.statistics(one["texts"][test], references, sources) for one in known]
            rows[name, test] = statistics
            scores = [f"{float(metric.value(one.sum(0))):.2f}" for one in statistics]
            line = f"{name} | {test} | {', '.join(scores)}"
            if baseline and statistics and rows[baseline, test]:
                value, low, high, _ = compare_repeated(metric, rows[baseline, test], statistics)
                line += f" | {value:+.2f} [{low:+.2f}, {high:+.2f}] from {baseline}"
            print(line)
        spent = ", ".join(f"{one['seconds']:.0f}" for one in known)
        print(f"{name} | CPU seconds | {spent}")


if __name__ == "__main__":
    main()
