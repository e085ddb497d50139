"""Toy texts with a class, and toy sentences with tags, both learnt in seconds."""

import random
from pathlib import Path

GOOD, BAD, PLAIN = ["fine", "great", "lovely"], ["awful", "dull", "grim"], ["a", "film", "this", "was", "it"]

CLASSIFY = """\
task: classify
data:
  train: {folder}/train.txt
  valid: {folder}/valid.tsv
  test: {folder}/test.csv
model:
  encoder: {{use: recurrent, cell: gru, sizes: [7], bidirectional: true}}
  pool: {{use: queries, num_queries: 2}}
  embedding: {{size: 11, dropout: 0.0}}
  dropout: 0.0
training:
  optimiser: {{use: adam, lr: 0.02}}
  max_updates: 60
  validate_every: 30
  precision: float32
  device: cpu
  tensorboard: false
  metric: accuracy
"""

TAG = """\
task: tag
data:
  train: {folder}/train.conllu
  test: {folder}/test.conllu
  hold_out: 10
  batch_rows: 20
model:
  encoder: {{use: recurrent, cell: gru, sizes: [11], bidirectional: true}}
  embedding: {{size: 7, spelled: 8, letter_size: 5, dropout: 0.0}}
  crf: true
training:
  optimiser: {{use: adam, lr: 0.03}}
  max_updates: 60
  validate_every: 30
  precision: float32
  device: cpu
  tensorboard: false
  metric: accuracy
"""


def texts(rows: int, seed: int) -> list[tuple[str, str]]:
    """(label, text): one word decides."""
    chance = random.Random(seed)
    found = []
    for row in range(rows):
        label, words = [("good", GOOD), ("bad", BAD)][row % 2]
        text = [*chance.choices(PLAIN, k=chance.randint(0, 5)), chance.choice(words)]
        chance.shuffle(text)
        found.append((label, " ".join(text)))
    return found


def make_texts(folder: Path) -> Path:
    """Three splits in the three forms and a recipe, which is returned."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"__label__{label} {text}\n" for label, text in texts(201, 1)]
    (folder / "train.txt").write_text("".join(lines))
    rows = [f"{text}\t{label}\n" for label, text in texts(23, 2)]
    (folder / "valid.tsv").write_text("text\tlabel\n" + "".join(rows))
    cells = [f'{number},"{text}",{label}\n' for number, (label, text) in enumerate(texts(29, 3))]
    (folder / "test.csv").write_text("id,text,label\n" + "".join(cells))
    (folder / "toy.yaml").write_text(CLASSIFY.format(folder=folder))
    return folder / "toy.yaml"


def sentences(rows: int, seed: int) -> str:
    """CoNLL-U: words in -ing are verbs, others nouns, a dot ends; each with a comment and a range."""
    chance = random.Random(seed)
    blocks = []
    for row in range(rows):
        stems = ["".join(chance.choices("bdglmnrst", k=3)) for _ in range(chance.randint(1, 5))]
        words = [stem + chance.choice(["ing", "o"]) for stem in stems] + ["."]
        lines = [f"# sent_id = {row}"]
        for number, word in enumerate(words, 1):
            if number == 1:
                lines.append(f"1-2\t{words[0]}{words[1]}\t" + "\t".join("_" * 7) + "\tSpaceAfter=No")
            tag = "VERB" if word.endswith("ing") else "PUNCT" if word == "." else "NOUN"
            lines.append(f"{number}\t{word}\t{word}\t{tag}\t_\t_\t{number - 1}\tdep\t_\t_")
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)


def make_sentences(folder: Path) -> Path:
    """Two files and a recipe, which is returned."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.conllu").write_text(sentences(200, 1))
    (folder / "test.conllu").write_text(sentences(29, 2))
    (folder / "toy.yaml").write_text(TAG.format(folder=folder))
    return folder / "toy.yaml"


TOPICS = {"news": "today", "sport": "goal", "music": "song"}
LINEAR = ("model.features={affixes: 3}", "model.crf=false", "training.max_updates=1")
"""Changes of the recipe of sentences for a linear CRF, which is solved."""

SEVERAL = (
    "data.train=train.csv",
    "data.valid=valid.csv",
    "data.test=test.tsv",
    "data.separator='|'",
    "training.max_updates=120",
    "training.validate_every=60",
    "training.metric=f1",
)
"""Changes of the recipe for texts with several labels."""


def topics(rows: int, seed: int) -> list[tuple[str, str]]:
    """(labels, text): each word of a topic gives its label; some texts have none."""
    chance = random.Random(seed)
    found = []
    for row in range(rows):
        some = [name for place, name in enumerate(TOPICS) if row >> place & 1]
        words = chance.choices(PLAIN, k=chance.randint(1, 4)) + [TOPICS[name] for name in some]
        chance.shuffle(words)
        chance.shuffle(some)
        found.append(("|".join(some), " ".join(words)))
    return found


def make_several(folder: Path) -> Path:
    """Tables of texts with several labels; the recipe is that of one label, see SEVERAL."""
    recipe = make_texts(folder)
    for name, rows in (("train.csv", 201), ("valid.csv", 31), ("test.tsv", 29)):
        mark = "\t" if name.endswith(".tsv") else ","
        lines = [
            f"{mark.join((text, label, str(n)))}\n" for n, (label, text) in enumerate(topics(rows, rows))
        ]
        (folder / name).write_text(mark.join(("text", "label", "id")) + "\n" + "".join(lines))
    return recipe
