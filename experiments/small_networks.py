"""Networks where linear models win: a tagger that has both, and a classifier over vectors of one's own texts.

    python experiments/small_networks.py --data FOLDER --sets tags-hr-720 trec-300 --seed 2

The sets are those of usual.py, and the linear model is what `weft init` writes there, on the same training part. Each try is
one line of JSON in build/small_networks.jsonl, with its CPU seconds. Read next: usual.py; ../docs/appendix/tagging.md.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import usual

import weft
from study import ROOT, machine
from weft.tasks.tag.predictor import WordTagger

RUNS = ROOT / "build" / "small_networks.jsonl"
Tries = Iterator[tuple[str, usual.Scored]]
"""Names of models, and what they score; the first is the linear one."""


def tag(train: list[usual.Rows], test: list[usual.Rows], folder: Path) -> Tries:
    """The linear CRF of `weft init`, a network with a CRF, and both, neither given back what was held out."""
    linear, _ = usual.tag(train, test, folder)
    yield "linear", linear
    recipe, words = folder / "network.yaml", [[word for _, word in one] for one in test]
    usual._command("init", "tag", folder / "train.tsv", "--model", "network", "--output", recipe)
    alone = "model.features=null", "model.crf=true"
    for name, changes in {"network with a CRF": alone, "both": ()}.items():
        begun = time.process_time()
        usual._command("train", recipe, "--run", folder / name, "training.refit=false", *changes)
        spent = time.process_time() - begun
        tagger = weft.load(folder / name)
        assert isinstance(tagger, WordTagger)
        yield name, usual._tagged([one.tags for one in tagger.tag(words)], test, spent)


def classify(train: usual.Rows, test: usual.Rows, folder: Path, texts: Sequence[str]) -> Tries:
    """The linear model and a network, without and with vectors of all texts of the folder, and what `weft init` keeps."""
    linear, _ = usual.classify(train, test, folder)
    yield "linear", linear
    vectors, every = folder / "vectors", folder / "texts.txt"
    every.write_text("\n".join(texts), "utf-8")
    begun = time.process_time()
    usual._command("init", "embeddings", every, "--output", folder / "vectors.yaml")
    usual._command("train", folder / "vectors.yaml", "--run", vectors, "training.tensorboard=false")
    spent, read = time.process_time() - begun, ("--vectors", vectors)
    alone, starts = ("--model", "network"), (f"model.embedding.vectors={vectors}", "model.embedding.size=100")
    tries: dict[str, tuple[tuple[object, ...], ...]] = {
        "linear, vectors": (("--model", "vectors", *read), ()),
        "kept by init": (read, ()),
        "network": (alone, ()),
        "network, vectors": (alone, starts),
    }
    for name, (options, changes) in tries.items():
        begun, recipe = time.process_time(), folder / f"{name}.yaml"
        usual._command("init", "classify", folder / "train.tsv", *options, "--output", recipe)
        run = "--run", folder / name, "training.tensorboard=false", "training.refit=true"
        usual._command("train", recipe, *run, *changes)
        seconds = time.process_time() - begun + (0 if name == "network" else spent)
        found = weft.load(folder / name).predict([text for _, text in test])
        yield name, usual._right(list(found), test, seconds)


def measure(data: Path, name: str, seed: int) -> Iterator[dict[str, Any]]:
    """Each try on one set, and whether it differs from the linear model by more than chance."""
    from scipy.stats import permutation_test

    part = usual.SETS[name]
    train, test = part.parts(data, seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if part.task == "tag":
            tries = tag(train, test, folder)
        else:
            kept = {text for _, text in test}
            every = [text for file in part.files for _, text in part.read(data, file) if text not in kept]
            tries = classify(train, test, folder, every)
        seen = dict[str, usual.Scored]()
        for tried, found in tries:
            seen[tried] = found
            row = {"set": name, "seed": seed, "try": tried, "machine": machine()}
            row |= {"score": found.score, "seconds": found.seconds}
            for other in {"linear", tried.removesuffix(", vectors")} - {tried}:
                apart = found.items - seen[other].items
                test_of = permutation_test((apart,), np.mean, permutation_type="samples", rng=1)
                row[f"p against {other}"] = float(test_of.pvalue)
            yield row


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--data", type=Path, required=True, help="folder with the sets")
    given.add_argument("--sets", nargs="+", choices=usual.SETS, required=True, metavar="SET")
    given.add_argument("--seed", type=int, default=0)
    asked = given.parse_args()
    for name in asked.sets:
        for row in measure(asked.data, name, asked.seed):
            print(json.dumps(row), flush=True)
            RUNS.parent.mkdir(exist_ok=True)
            with RUNS.open("a") as file:
                file.write(json.dumps(row) + "\n")
