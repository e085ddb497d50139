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
from weft.data.vectors import read_vectors
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
    """The linear model, and what vectors of all texts of the folder add: in a network, and beside tf-idf."""
    linear, _ = usual.classify(train, test, folder)
    yield "linear", linear
    (folder / "texts.txt").write_text("\n".join(texts), "utf-8")
    begun = time.process_time()
    usual._command("init", "embeddings", folder / "texts.txt", "--output", folder / "vectors.yaml")
    usual._command(
        "train", folder / "vectors.yaml", "--run", folder / "vectors", "training.tensorboard=false"
    )
    usual._command("export", folder / "vectors", "--vectors", folder / "vectors.txt")
    spent = time.process_time() - begun
    files = folder / "train.tsv", "--test", folder / "test.tsv"
    usual._command("init", "classify", *files, "--model", "network", "--output", folder / "network.yaml")
    for name, changes in {
        "network": (),
        "network, vectors": (
            f"model.embedding.vectors={folder / 'vectors.txt'}",
            "model.embedding.size=100",
        ),
    }.items():
        begun, run = time.process_time(), folder / name
        recipe = folder / "network.yaml", "--run", run, "training.tensorboard=false", "training.refit=true"
        usual._command("train", *recipe, *changes)
        seconds = time.process_time() - begun + (spent if changes else 0)
        found = weft.load(run).predict([text for _, text in test])
        yield name, usual._right(list(found), test, seconds)
    for name, words in (("words", None), ("words, vectors", folder / "vectors.txt")):
        begun = time.process_time()
        answers = by_scikit_learn(train, test, words)
        yield name, usual._right(answers, test, time.process_time() - begun + (spent if words else 0))


def by_scikit_learn(train: usual.Rows, test: usual.Rows, vectors: Path | None) -> list[str]:
    """LogisticRegression over tf-idf of words 1-2 and letters 2-5, and the means of given vectors of the words."""
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_union

    (labels, texts), (_, asked) = zip(*train, strict=True), zip(*test, strict=True)
    items = make_union(
        TfidfVectorizer(ngram_range=(1, 2)), TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5))
    )
    learnt, answered = items.fit_transform(texts), items.transform(asked)
    if vectors is not None:
        table = read_vectors(vectors)[0]
        counts, weigh = CountVectorizer(vocabulary=list(table)), TfidfTransformer()
        means = [
            one @ np.stack(list(table.values()))
            for one in (
                weigh.fit_transform(counts.transform(texts)),
                weigh.transform(counts.transform(asked)),
            )
        ]
        deviation = np.sqrt(np.square(means[0]).sum(1).mean())
        learnt, answered = (
            hstack([one, mean / deviation]) for one, mean in zip((learnt, answered), means, strict=True)
        )
    search = GridSearchCV(LogisticRegression(max_iter=1000), {"C": [1, 4, 16, 64]})
    return list(search.fit(learnt, labels).predict(answered))


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
