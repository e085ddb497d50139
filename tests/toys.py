"""Tiny data and recipes of the tasks, learnt in seconds.

Each function writes into a folder and returns the recipe. Read next: shared.py, the runs that tests share;
commands/corpus.py, labelled.py and prose.py, the toys of translate, classify, tag and language.
"""

import lzma
import random
import struct
import wave
from math import pi, sin
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from weft.data.series import SeriesTable, TimeSeries
from weft.data.shapes import moving, shapes
from weft.tasks.forecast.data import waves

CAPTION = """task: caption
data: {train: train.tsv, valid: valid.tsv, images: pictures, batch_rows: 7}
model:
  front: {use: convolution, sizes: [5, 6]}
  decoder: {use: recurrent, cell: gru, sizes: [11]}
  width: 7
training: {max_updates: 3, validate_every: 3, precision: float32, device: cpu}
decoding: {beam: 1}
"""


def captions(folder: Path) -> Path:
    """13 training pictures and 3 others of 12 pixels, with their captions."""
    pixels, seen = shapes([1], range(16), 12)
    (folder / "pictures").mkdir(parents=True)
    lines = []
    for number, (picture, one) in enumerate(zip(pixels, seen, strict=True)):
        Image.fromarray(picture).save(folder / "pictures" / f"{number:02}.png")
        lines.append(f"{number:02}.png\t{one.caption}\n")
    (folder / "train.tsv").write_text("".join(lines[:13]))
    (folder / "valid.tsv").write_text("".join(lines[13:]))
    (folder / "recipe.yaml").write_text(CAPTION)
    return folder / "recipe.yaml"


DRAW = """task: draw
data: {train: train.tsv, valid: valid.tsv, images: pictures, batch_rows: 7, tile: 3, tiles: 300}
model:
  encoder: {use: recurrent, cell: gru, sizes: [5]}
  decoder: {use: transformer, size: 8, num_layers: 1, num_heads: 2, inner: 11}
  width: 7
training: {max_updates: 3, validate_every: 3, precision: float32, device: cpu}
decoding: {search: sample, temperature: 0.9, seed: 3}
"""


def drawings(folder: Path) -> Path:
    """The pictures of `captions`, to be drawn."""
    recipe = captions(folder)
    recipe.write_text(DRAW)
    return recipe


IMAGES = """task: images
data: {train: train, hold_out: 5, batch_rows: 7}
model:
  front: {use: convolution, sizes: [5, 6], non_local: [2]}
training: {max_updates: 3, validate_every: 3, precision: float32, device: cpu}
"""


def pictures(folder: Path, *, clips: bool = False) -> Path:
    """20 pictures or clips of 12 pixels, a folder for each class."""
    if clips:
        arrays, labels = moving([1], range(20), 12, 3)
    else:
        arrays, seen = shapes([1], range(20), 12)
        labels = [one.shape for one in seen]
    for number, (array, label) in enumerate(zip(arrays, labels, strict=True)):
        place = folder / "train" / label
        place.mkdir(parents=True, exist_ok=True)
        if clips:
            np.save(place / f"{number:02}.npy", array)
        else:
            Image.fromarray(array).save(place / f"{number:02}.png")
    (folder / "recipe.yaml").write_text(IMAGES)
    return folder / "recipe.yaml"


TONES = {"do": 400, "mi": 900, "so": 1700}
RATE = 8000


def sing(path: Path, words: list[str], rate: int = RATE) -> None:
    samples = [
        round(9000 * sin(2 * pi * TONES[word] * n / rate)) if n < rate // 10 else 0
        for word in words
        for n in range(rate // 8)
    ]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(struct.pack(f"<{len(samples)}h", *samples))


def songs(folder: Path) -> Path:
    """Lists of little songs and a recipe that learns them in seconds."""
    chance = random.Random(1)
    folder.mkdir(parents=True)
    for split, count in (("train", 60), ("valid", 11), ("test", 13)):
        lines = []
        for number in range(count):
            words = chance.choices(list(TONES), k=chance.randint(1, 3))
            sing(folder / f"{split}{number}.wav", words, 2 * RATE if number % 7 == 3 else RATE)
            lines.append(f"{split}{number}.wav\t{' '.join(words)}\n")
        (folder / f"{split}.tsv").write_text("".join(lines))
    recipe = folder / "speech.yaml"
    recipe.write_text(
        f"task: speech\ndata: {{folder: {folder}, test: test.tsv, sound: {{rate: {RATE}, bins: 16}}, "
        "batch_frames: 400}\n"
        "model:\n  front: {size: 16, masks: 0}\n"
        "  encoder: {use: pyramid, sizes: [16, 16], factors: [2, 2]}\n"
        "  decoder: {use: recurrent, sizes: [32], enters: both}\n  embedding: 16\n  smoothing: 0.0\n"
        "training:\n  optimiser: {use: adam, lr: 0.02}\n  max_epochs: 12\n"
        "  validate_every: 40\n  metric: wer\n"
        "decoding: {beam: 2}\n"
    )
    return recipe


CPU = "precision: float32, device: cpu, tensorboard: false"

MASKED = """\
task: masked
data:
  {{train: {folder}/train.txt, valid: {folder}/valid.txt, vocabulary: {{kind: word}}, batches: lines,
    length: 11, batch_rows: 13}}
model:
  size: 16
  dropout: 0.0
  encoder: {{use: transformer, size: 16, num_layers: 1, num_heads: 2, dropout: 0.0}}
  share: 0.3
training: {{optimiser: {{use: adam, lr: 0.01}}, max_updates: 120, validate_every: 60, {cpu}}}
"""


def gaps(folder: Path) -> Path:
    """Cats purr and dogs bark, on both sides of a gap."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(3)
    for name, rows in (("train", 300), ("valid", 30)):
        lines = [chance.choice(["the cat can purr", "a dog can bark"]) for _ in range(rows)]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    (folder / "toy.yaml").write_text(MASKED.format(folder=folder, cpu=CPU))
    return folder / "toy.yaml"


ELMO = """\
task: elmo
data:
  {{train: {folder}/train.txt, valid: {folder}/valid.txt, vocabulary: {{kind: space, min_count: 2}},
    batches: lines, length: 7, batch_rows: 11}}
model: {{size: 11, num_layers: 2, spelled: 12, letter_size: 5, dropout: 0.0}}
training: {{optimiser: {{use: adam, lr: 0.02}}, max_updates: 60, validate_every: 30, {cpu}}}
"""


def contexts(folder: Path) -> Path:
    """A noun follows `the`, and `go` stands before it."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(3)
    for name, rows in (("train", 200), ("valid", 20)):
        lines = [f"go the {chance.choice(['bank', 'lake'])} now" for _ in range(rows)]
        lines += ["bank"] + ["the bank"] * 3
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    (folder / "toy.yaml").write_text(ELMO.format(folder=folder, cpu=CPU))
    return folder / "toy.yaml"


FRUIT, TOOLS = ["apple", "pear", "plum", "fig"], ["saw", "drill", "axe", "file"]

EMBEDDINGS = """\
task: embeddings
data:
  {{train: {folder}/train.txt, test: {folder}/pairs.tsv, min_count: 2, window: 3, subsample: 0, length: 31,
    batch_rows: 5}}
model: {{objective: skipgram, size: 7}}
training: {{optimiser: {{use: adagrad, lr: 0.3}}, max_epochs: 4, clip_norm: 0, {cpu}}}
"""


def words(folder: Path) -> Path:
    """Fruit is eaten and tools are used; pairs say so."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(1)
    lines = []
    for _ in range(300):
        kind, verbs = chance.choice([(FRUIT, ["eat", "peel", "ripe"]), (TOOLS, ["use", "sharp", "steel"])])
        lines.append(" ".join(chance.choices(kind, k=2) + chance.choices(verbs, k=3)))
    (folder / "train.txt").write_text("\n".join(lines) + "\n")
    pairs = [(a, b, 9.0) for kind in (FRUIT, TOOLS) for a in kind for b in kind if a < b]
    pairs += [(a, b, 1.0) for a in FRUIT for b in TOOLS] + [("apple", "zebra", 0.5)]
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in pairs))
    (folder / "toy.yaml").write_text(EMBEDDINGS.format(folder=folder, cpu=CPU))
    return folder / "toy.yaml"


TEXT_WORDS = ("alpha", "beta", "gamma", "delta", "omega")


def digests(folder: Path) -> Path:
    """The marked word of each text is its summary."""
    chance = random.Random(1)
    folder.mkdir(parents=True)
    for split, count in (("train", 200), ("valid", 11), ("test", 13)):
        lines = ["text\tsummary\n"]
        for _ in range(count):
            words = chance.choices(TEXT_WORDS, k=5)
            lines.append(f"{words[0]} {words[1]}. It is {words[2]} here.\t{words[2]}\n")
        (folder / f"{split}.tsv").write_text("".join(lines))
    recipe = folder / "x.yaml"
    recipe.write_text(
        f"task: summarise\ndata: {{folder: {folder}, source: text, target: summary, train: train.tsv, "
        "valid: valid.tsv, test: test.tsv, vocabulary: {kind: word, size: null}, batch_tokens: 40}\n"
        "model:\n  encoder: {use: recurrent, cell: gru, sizes: [16], bidirectional: true}\n"
        "  decoder: {use: recurrent, cell: gru, sizes: [16]}\n  embedding: {size: 16, dropout: 0.0}\n"
        "training:\n  optimiser: {use: adam, lr: 0.02}\n  max_epochs: 8\n  metric: rouge_l\n"
        "decoding: {beam: 2}\n"
    )
    return recipe


POINTER = """\
task: {task}
data:
  {{folder: {folder}, source: text, target: summary, train: train.tsv, valid: valid.tsv, test: test.tsv,
    vocabulary: {{kind: word, size: null, min_count: 9}}, batch_tokens: 60, cut_source: 9}}
model:
  encoder: {{use: recurrent, cell: gru, sizes: [16], bidirectional: true}}
  decoder: {{use: pointer, decoder: {{use: recurrent, cell: gru, sizes: [16], enters: never}}, coverage: 0.1}}
  embedding: {{size: 16, dropout: 0.0}}
  smoothing: 0.0
training:
  optimiser: {{use: adam, lr: 0.02}}
  max_epochs: 10
decoding: {{beam: 2}}
"""


def names(folder: Path, task: str = "summarise") -> Path:
    """A name that no other text has stands after "is"; it is the summary. What follows is cut off."""
    chance = random.Random(1)
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", 300), ("valid", 11), ("test", 23)):
        lines = ["text\tsummary\n"]
        for _ in range(count):
            words, name = chance.choices(TEXT_WORDS, k=6), "".join(chance.choices("bcdfgklmaeiou", k=7))
            lines.append(f"{words[0]} {words[1]} . It is {name} {words[2]} {words[3]} {words[4]} .\t{name}\n")
        (folder / f"{split}.tsv").write_text("".join(lines))
    (folder / "x.yaml").write_text(POINTER.format(task=task, folder=folder))
    return folder / "x.yaml"


NUMBERS = {
    "aa": ["one", "two", "three", "four", "five"],
    "bb": ["un", "deux", "trois", "quatre", "cinq"],
    "cc": ["eins", "zwei", "drei", "vier", "sechs"],
}


def many(folder: Path) -> Path:
    """Numbers in three languages, of which one pair is never trained."""
    folder.mkdir()
    generator = torch.Generator().manual_seed(5)
    for split, rows in (("train", 400), ("valid", 12)):
        numbers = [torch.randint(5, (2 + n % 3,), generator=generator).tolist() for n in range(rows)]
        for language, words in NUMBERS.items():
            text = "".join(" ".join(words[n] for n in row) + "\n" for row in numbers)
            with lzma.open(folder / f"{split}.{language}.xz", "wt", encoding="utf-8") as file:
                file.write(text)
    recipe = folder / "many.yaml"
    recipe.write_text(
        "task: multilingual\n"
        f"data:\n  folder: {folder}\n  pairs: [aa-bb, bb-aa, aa-cc, cc-aa]\n  zero_shot: [bb-cc]\n"
        "  train: train\n  valid: valid\n  vocabulary: {kind: word, size: null}\n  batch_tokens: 200\n"
        "model:\n  embedding: {size: 32, dropout: 0.0}\n  smoothing: 0.0\n"
        "training:\n  optimiser: {use: adam, lr: 0.01}\n  max_updates: 160\n  validate_every: 80\n"
        "  precision: float32\n  tensorboard: false\n"
    )
    return recipe


def table(path: Path, rows: int = 700) -> Path:
    series = waves(1, rows).series[0]
    lines = ["date,one,two,three"]
    lines += [
        f"{str(t).replace('T', ' ')},{a:.5f},{b:.5f},{c:.5f}"
        for t, (a, b, c) in zip(series.times, series.values, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def series_table(
    values: np.ndarray, names: tuple[str, ...] = ("y",), times: Any = None, frequency: str = ""
) -> SeriesTable:
    """A wide table of values [T, F] without covariates, and without dates unless times are given."""
    none = np.zeros((len(values), 0))
    times = np.arange(len(values)) if times is None else times
    return SeriesTable([TimeSeries("", times, values, none, none, none[:0], frequency)], names, (), (), False)


def series(folder: Path) -> Path:
    """Three waves, 151 hours long."""
    folder.mkdir(parents=True)
    (folder / "toy.yaml").write_text(
        f"task: forecast\ndata:\n  file: {table(folder / 'x.csv', 151)}\n  lookback: 13\n  horizon: 5\n"
        "  batch_rows: 31\nmodel:\n  forecaster: {use: recurrent, cell: gru, sizes: [7]}\n  head: normal\n"
        "training:\n  optimiser: {use: adam, lr: 0.01}\n  metric: mse\n"
    )
    return folder / "toy.yaml"


def sums(folder: Path) -> Path:
    """Two marked numbers are added."""
    folder.mkdir(parents=True)
    (folder / "toy.yaml").write_text(
        "task: memory\n"
        "data: {problem: adding, length: 11, shortest: 3, examples: 59, batch_rows: 7, valid: 13, test: 5}\n"
        "model:\n  encoder: {use: recurrent, cell: gru, sizes: [5, 7]}\n"
        "training:\n  optimiser: {use: adam, lr: 0.01}\n  precision: float32\n"
    )
    return folder / "toy.yaml"
