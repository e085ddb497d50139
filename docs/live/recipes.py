"""What the models of the live parts learn, and their recipes. Read next: make.py, which trains them."""

import random
import re
from collections import Counter
from itertools import chain, product
from pathlib import Path
from typing import Any

import yaml

from weft.data.corpora import corpus

ROOT = Path(__file__).resolve().parents[2]

LETTERS = "abcdefghijklmnop"
FEEL = ["like", "love", "enjoy", "want", "value", "praise"]
WORD = re.compile(r"[\w'-]+|[^\w\s]")
MEET = ["see", "read", "watch", "hear", "finish", "follow"]
GOOD = ["good", "great", "funny", "clever", "lovely", "exciting"]
BAD = ["bad", "boring", "dull", "poor", "silly", "slow"]


def texts(folder: Path) -> str:
    """Write the training data below a folder; returns the text of the letter models."""
    chance = random.Random(1)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [pair.source for pair in corpus("libreoffice-help", "en", "es", "train")]
    plain = [line for line in lines if line.isascii()]
    text = "\n".join(plain[::8]) + "\n"
    _write(folder / "letters" / "train.txt", text)
    _write(folder / "letters" / "valid.txt", "\n".join(plain[4::80]) + "\n")
    for name, count in (("train", 20000), ("valid", 200), ("test", 500)):
        rows = (chance.choices(LETTERS, k=chance.randint(3, 10)) for _ in range(count))
        _write(
            folder / "reverse" / f"{name}.tsv",
            "".join(f"{' '.join(row)}\t{' '.join(row[::-1])}\n" for row in rows),
        )
    sentences = [row for line in plain if 3 <= len(row := WORD.findall(line.lower())) <= 14]
    common = [word for word, _ in Counter(chain.from_iterable(sentences)).most_common(2000) if word.isalpha()]
    draws = random.Random(3)
    for name, count in (("train", 60000), ("valid", 300)):
        again = "".join(f"{repeated(sentences, common, draws)}\n" for _ in range(count))
        _write(folder / "repeats" / f"{name}.txt", again)
    said: dict[bool, list[str]] = {True: [], False: []}
    for a, b in product(range(6), repeat=2):  # of every word, one pair is kept out of the training
        said[(a + b) % 6 == 0] += [f"{label}\t{line}\n" for label, line in opinions(a, b)]
    chance.shuffle(said[False])
    for name in ("train", "valid", "test"):
        _write(folder / "opinions" / f"{name}.tsv", "".join(said[name != "train"]))
    return text


def repeated(sentences: list[list[str]], words: list[str], chance: random.Random) -> str:
    """A sentence, or random words, of which a part follows once more.

    Only what followed a word before tells which random word comes next: a head that looks it up is learnt.
    """
    random_words = chance.random() >= 0.5
    row = chance.choices(words, k=chance.randint(4, 12)) if random_words else chance.choice(sentences)
    return " ".join(row + row[chance.randint(0, len(row) - 3) :])


def opinions(a: int, b: int) -> list[tuple[str, str]]:
    """Sentences in pairs of the same words: in each, only their order tells whether someone liked it."""
    feel, meet, good, bad = FEEL[a], MEET[b], GOOD[a], BAD[b]
    return [
        ("liked", f"i did {feel} it , i did not {meet} all of it"),
        ("disliked", f"i did not {feel} it , i did {meet} all of it"),
        ("liked", f"i did not {meet} all of it , i did {feel} it"),
        ("disliked", f"i did {meet} all of it , i did not {feel} it"),
        ("liked", f"it was {good} , not {bad}"),
        ("disliked", f"it was {bad} , not {good}"),
        ("liked", f"it was not {bad} , it was {good}"),
        ("disliked", f"it was not {good} , it was {bad}"),
    ]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")


def letters(cell: str) -> dict[str, Any]:
    """A language model of letters."""
    return {
        "task": "language",
        "data": {
            "folder": "letters",
            "train": "train.txt",
            "valid": "valid.txt",
            "vocabulary": {"kind": "character"},
            "batches": "stream",
            "length": 64,
            "rows": 32,
        },
        "model": {
            "decoder": {"use": "recurrent", "cell": cell, "sizes": [128], "dropout": 0.0},
            "embedding": {"size": 48, "dropout": 0.0, "tied": False},
        },
        "training": {
            "optimiser": {"use": "adamw", "lr": 0.004},
            "schedule": {"use": "linear", "warmup": 50},
            "max_updates": 1500,
            "validate_every": 500,
            "seed": 1,
        },
        "decoding": {"search": "sample", "temperature": 0.8, "max_tokens": 200},
    }


def reverse(enters: str) -> dict[str, Any]:
    """A model that writes letters in reverse order; `enters` is the place of its attention."""
    return {
        "task": "translate",
        "data": {
            "folder": "reverse",
            "train": "train.tsv",
            "valid": "valid.tsv",
            "test": "test.tsv",
            "source": "letters",
            "target": "reversed",
            "vocabulary": {"kind": "space", "size": 20, "shared": True},
            "batch_tokens": 600,
        },
        "model": {
            "encoder": {"use": "recurrent", "cell": "gru", "sizes": [64], "bidirectional": True},
            "decoder": {"use": "recurrent", "cell": "gru", "sizes": [64], "enters": enters},
            "embedding": {"size": 32},
        },
        "training": {
            "optimiser": {"use": "adam", "lr": 0.003},
            "max_updates": 800,
            "validate_every": 800,
            "seed": 1,
        },
        "decoding": {"beam": 1},
    }


def smaller_demo() -> dict[str, Any]:
    """The recipe of `weft demo`, half as many word pieces, layers of five sixths: 1.5 MB in 8 bits."""
    recipe: dict[str, Any] = yaml.safe_load((ROOT / "recipes/translate/help-demo.yaml").read_text("utf-8"))
    recipe["data"]["vocabulary"]["size"] = 2000
    model = recipe["model"]
    model["encoder"]["sizes"], model["decoder"]["sizes"], model["embedding"]["size"] = [160], [208], 160
    recipe["training"]["seed"] = 1
    return recipe


HEADS: dict[str, Any] = {
    "task": "language",
    "data": {
        "folder": "repeats",
        "train": "train.txt",
        "valid": "valid.txt",
        "vocabulary": {"kind": "word", "size": 2000, "lowercase": True},
        "batches": "windows",
        "length": 48,
        "batch_rows": 48,
    },
    "model": {
        "decoder": {
            "use": "transformer",
            "size": 96,
            "num_layers": 2,
            "num_heads": 4,
            "activation": "gelu",
            "positions": "rotary",
            "dropout": 0.0,
        },
        "embedding": {"size": 96, "dropout": 0.0, "tied": True, "scaled": False},
    },
    "training": {
        "optimiser": {"use": "adamw", "lr": 0.0035, "betas": [0.9, 0.99]},
        "schedule": {"use": "linear", "warmup": 100},
        "max_updates": 1600,
        "validate_every": 800,
        "precision": "float32",
        "seed": 1,
    },
    "decoding": {"search": "sample", "max_tokens": 20},
}

LETTERS_HEADS: dict[str, Any] = {
    **letters("lstm"),
    "model": {
        "decoder": {**HEADS["model"]["decoder"], "size": 64},
        "embedding": {**HEADS["model"]["embedding"], "size": 64},
    },
}
LETTERS_HEADS["data"] |= {"batches": "windows", "batch_rows": LETTERS_HEADS["data"].pop("rows")}

VECTORS: dict[str, Any] = {
    "task": "embeddings",
    "data": {"corpus": "libreoffice-help", "language": "en", "min_count": 5},
    "model": {"objective": "skipgram", "size": 64},
    "training": {
        "optimiser": {"use": "adagrad", "lr": 0.1},
        "schedule": "linear",
        "clip_norm": 0,
        "max_epochs": 5,
        "precision": "float32",
        "seed": 1,
    },
}


def judge(**model: Any) -> dict[str, Any]:
    """A classifier of opinions."""
    return {
        "task": "classify",
        "data": {
            "folder": "opinions",
            "train": "train.tsv",
            "valid": "valid.tsv",
            "test": "test.tsv",
            "vocabulary": {"kind": "word", "lowercase": True},
            "batch_rows": 16,
        },
        "model": model,
        "training": {
            "optimiser": {"use": "adamw", "lr": 0.005},
            "max_updates": 600,
            "validate_every": 300,
            "metric": "loss",
            "seed": 1,
        },
    }


RECIPES: dict[str, dict[str, Any]] = {
    "letters-lstm": letters("lstm"),
    "letters-gru": letters("gru"),
    "letters-transformer": LETTERS_HEADS,
    "reverse-never": reverse("never"),
    "reverse-late": reverse("late"),
    "reverse-input": reverse("input"),
    "translator": smaller_demo(),
    "heads": HEADS,
    "vectors": VECTORS,
    "opinions-bag": judge(bag={"ngrams": 1, "weight": "presence", "naive_bayes": False}),
    "opinions-lstm": judge(
        encoder={"use": "recurrent", "cell": "lstm", "sizes": [24]}, pool="mean", embedding={"size": 16}
    ),
}

_CHANCE = random.Random(2)
_STRINGS = [" ".join(_CHANCE.choices(LETTERS, k=length)) for length in range(3, 11) for _ in range(3)]
_OPINIONS = [line for a, b in ((1, 5), (4, 2)) for _, line in opinions(a, b)]  # of pairs kept out
ASKED = {
    "reverse-never": _STRINGS,
    "reverse-late": _STRINGS,
    "reverse-input": _STRINGS,
    "opinions-bag": _OPINIONS,
    "opinions-lstm": _OPINIONS,
    "heads": ["the first page has a footer and the last page has a header ."],
    "translator": [
        "Click the button to open the dialog.",
        "Choose a file and press Enter.",
        "The cell is empty.",
        "Select the text that you want to format.",
    ],
}
"""What each model is asked, so that tests can compare the page's answers with those of `weft predict`."""
