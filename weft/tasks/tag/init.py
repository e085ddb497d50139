"""`weft init tag` writes a recipe for a user's tagged sentences, with reasons as comments."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from weft.data.conllu import Column, read_sentences
from weft.errors import DataError
from weft.tasks.init import TEST, TRAIN, VALID, Init, NewRecipe, Option
from weft.tasks.shared.planned import planned
from weft.tasks.shared.recipe_text import VALID_NAMES, quoted, sibling

NO_TEST = """  # test: path/test                 for `weft evaluate`
  # folds: 10                       cross-validation instead of test: `weft folds THIS-FILE`"""


class Tag(Init):
    """Reads tagged sentences, in one file or three."""

    about: ClassVar[str] = "A tagger for words in sentences."
    examples: ClassVar = ("--train en_ewt-ud-train.conllu",)
    options: ClassVar = (
        TRAIN._replace(help="Training file: CoNLL-U, or lines WORD TAB TAG."),
        VALID,
        TEST,
        Option(
            "column", "Column of a CoNLL-U file to learn.", choices=("upos", "xpos", "feats"), default="upos"
        ),
    )

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        """A recipe for the tagger."""
        text = recipe(given["train"], given["valid"], given["test"], column=given["column"])
        return NewRecipe(text, [self.check(given["train"])])


def recipe(train: Path, valid: Path | None, test: Path | None, *, column: Column) -> str:
    """A commented recipe.

    Args:
        train, valid, test: tagged sentences; the last two are looked for beside the first if None.
        column: of CoNLL-U.

    Raises:
        DataError: files are missing or damaged, or without tags.
    """
    valid, test = valid or sibling(train, VALID_NAMES), test or sibling(train, ("test",))
    sentences = words = documents = 0
    tags: set[str] = set()
    for one in read_sentences(train, column=column):
        if one.forms and one.tags is None:
            raise DataError("expected word TAB tag, got words without tags", path=train, line=one.first)
        sentences, words = sentences + bool(one.forms), words + len(one.forms)
        tags.update(one.tags or [])
        documents += any(line.startswith("# newdoc") for line in one.lines)
    if not words or tags == {"_"}:
        raise DataError(f"expected tags in column {column}, got none; give tagged sentences", path=train)
    if valid:
        chosen = f"  valid: {quoted(valid)}"
    else:
        chosen = """  hold_out: 20                      # a twentieth of the sentences chooses the checkpoint
  split_seed: 1                     # shuffled first"""
        if documents >= 20:
            chosen += "\n  group: newdoc                     # sentences of a document stay together"
    tested = f"  test: {quoted(test)}" if test else NO_TEST
    plan = planned(words / 800, epochs=12, warmup=100)
    dropout = 0.4 if words < 500_000 else 0.25
    return f"""# {len(tags)} tags ({column}), {sentences:,} training sentences, {words:,} words.
# Written by `weft init`; change any line you like.
#   weft train THIS-FILE
task: tag
data:
  train: {quoted(train)}
{chosen}
{tested}
  column: {column}                      # of CoNLL-U: upos, xpos or feats
  batch_tokens: 800                 # words a batch; less if memory runs out
model:
  encoder: {{use: recurrent, cell: lstm, sizes: [200], bidirectional: true, dropout: {dropout}}}
  # vectors: path/glove.txt           a text file of word2vec or GloVe, of the same size
  embedding: {{size: 100, characters: convolution, letter_size: 32, spelled: 100, dropout: {dropout}}}
  crf: false                        # true chooses all tags of a sentence together
training:
  optimiser: {{use: adamw, lr: 0.004, betas: [0.9, 0.95]}}
  schedule: {{use: linear, warmup: {plan.warmup}}}   # falls to zero at max_epochs
  max_epochs: {plan.epochs}
  metric: accuracy
  average: 3
  seed: 1
"""
