"""Imported runs, and others that start with them: before they learn anything, they compute the same."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor

from tests.commands.shell import Answer, weft
from tests.laws.members import close
from weft.data.corpora import corpus
from weft.run import open_run

TAGGED = {"Click": "V", "the": "D", "button": "N", ".": "P"}
WORDS = list(TAGGED)
TEXT = " ".join(WORDS)


UNCHANGED = [f"training.{one}" for one in ("max_updates=2", "device=cpu", "workers=1")]
UNCHANGED += ["training.optimiser={use: adamw, lr: 1.0e-9}"]
"""Changes of a recipe with which training leaves the weights as they are."""


def imported_run(there: Path, train: Sequence[str], valid: Sequence[str]) -> Answer:
    """Import the checkpoint in a folder as a run beside it, with lines of texts to train on."""
    for split, lines in (("train", train), ("valid", valid)):
        (there / f"{split}.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    texts = ["--train", there / "train.txt", "--valid", there / "valid.txt"]
    return weft("import", there / "checkpoint", "--run", there / "run", *texts, code=0)


def trains_on(run: Path, tuned: Path, *changes: str) -> None:
    """See that further training starts with the weights of an imported run."""
    before = open_run(run, device="cpu").model.state_dict()
    start = () if tuned == run else (f"training.start={run}",)
    weft("train", run / "recipe.yaml", *UNCHANGED, *start, *changes, "--run", tuned, code=0)
    after = open_run(tuned, device="cpu").model.state_dict()
    for name, tensor in before.items():
        close(after[name], tensor, 1e-6)


def started(run: Path, task: str, folder: Path) -> Any:
    """A run of the task, after an update with a learning rate of zero."""
    tagged = "".join(f"{word}\t{tag}\n" for word, tag in TAGGED.items()) + "\n"
    labelled = f"text\tlabel\n{TEXT}\ta\nClose it\tb\n"
    file, recipe = folder / f"{task}.tsv", folder / f"{task}.yaml"
    file.write_text(tagged * 30 if task == "tag" else labelled * 30, "utf-8")
    weft("init", task, file, "--start", run, "--output", recipe, code=0)
    changes = ["training.max_updates=1", "training.optimiser.lr=0", "training.device=cpu"]
    weft("train", recipe, "--run", folder / task, *changes, code=0)
    return open_run(folder / task, device="cpu")


@torch.no_grad()
def states(opened: Any) -> Tensor:
    """The states of the pieces of TEXT in a classifier, or of its words in a tagger."""
    pipeline = opened.pipeline
    if hasattr(pipeline, "lexicon"):
        given, mask = pipeline.lexicon.read([WORDS])
    else:
        given, mask = pipeline.reader.source(pipeline.reader.encode([TEXT]), [TEXT])
    return opened.model.memory(given, mask).states[0]


def first_pieces(ends: list[int]) -> list[int]:
    """The first piece of each word, given where each piece of TEXT ends; a space may be its own piece."""
    before = [max(TEXT.index(word) - 1, 0) for word in WORDS]
    return [next(n for n, end in enumerate(ends) if end > place) for place in before]


SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]


def tokenizer(*symbols: str) -> Tokenizer:
    """A byte-level tokenizer like BART's, trained on a few sentences, with more special symbols."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=311, special_tokens=[*SPECIALS, *symbols], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(
        [source for _, source, _ in corpus("libreoffice-help", "en", "es", "test")], trainer
    )
    return made
