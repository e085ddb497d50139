"""A tagger or a classifier that starts with an imported run, before it learns anything."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.commands.shell import weft
from weft.run import open_run

TAGGED = {"Click": "V", "the": "D", "button": "N", ".": "P"}
WORDS = list(TAGGED)
TEXT = " ".join(WORDS)


def started(run: Path, task: str, folder: Path) -> Any:
    """A run of the task, after an update with a learning rate of zero."""
    tagged = "".join(f"{word}\t{tag}\n" for word, tag in TAGGED.items()) + "\n"
    labelled = f"text\tlabel\n{TEXT}\ta\nClose it\tb\n"
    file, recipe = folder / f"{task}.tsv", folder / f"{task}.yaml"
    file.write_text(tagged * 30 if task == "tag" else labelled * 30, "utf-8")
    answer = weft("init", task, file, "--start", run, "--output", recipe)
    assert answer.code == 0, answer.err
    changes = ["training.max_updates=1", "training.optimiser.lr=0", "training.device=cpu"]
    answer = weft("train", recipe, "--run", folder / task, *changes)
    assert answer.code == 0, answer.err
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
