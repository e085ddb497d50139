"""What `weft init embeddings` writes: a recipe for a user's text, with the reasons as comments."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from weft.data.plain import no_words
from weft.data.questions import read_questions
from weft.tasks.init import TEST, TRAIN, Init, NewRecipe
from weft.tasks.shared.recipe_text import quoted
from weft.wording import plural


class Embeddings(Init):
    """A recipe for a text and, optionally, questions about its words."""

    about: ClassVar[str] = "Vectors for the words of a text."
    examples: ClassVar = ("--train text.txt",)
    options: ClassVar = (
        TRAIN._replace(help="Plain text; may be compressed."),
        TEST._replace(help="Word pairs with their similarity, or analogies."),
    )

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        """A recipe for the vectors."""
        steps = [("data", "check", "--task", self.task, str(given["train"]))]
        return NewRecipe(recipe(given["train"], given["test"]), steps)


def recipe(train: Path, test: Path | None) -> str:
    """A commented recipe.

    Args:
        train: plain text.
        test: word pairs or analogies.

    Raises:
        DataError: files are missing or damaged, or the text has no words.
    """
    from weft.tasks.embeddings.data import WordsData  # loads torch

    counts: Counter[str] = Counter()
    for words in WordsData(train=str(train)).lines():
        counts.update(words)
    total = sum(counts.values())
    if not total:
        raise no_words(train)
    least = 5 if total >= 500_000 else 2 if total >= 20_000 else 1
    kept = sum(count >= least for count in counts.values())
    epochs = max(2, min(30, 10_000_000 // total))
    if test is not None:
        read_questions(test)
    asked = (
        f"  test: {quoted(test)}"
        if test
        else "  # test: pairs.tsv                 word TAB word TAB similarity, or four words per line"
    )
    times = plural(least, "time")
    return f"""# {total:,} words of text; {kept:,} of {len(counts):,} different words occur {times} or more.
# Written by `weft init`; change any line you like.
#   weft train THIS-FILE
task: embeddings
data:
  train: {quoted(train)}
{asked}
  tokens: word                      # cut at punctuation; use space for tokenised text
  lowercase: true
  min_count: {least}                      # rarer words have no vector
  window: 5                         # neighbours on each side
  subsample: 0.001                  # a smaller value drops more of the frequent words
model:
  objective: skipgram               # or cbow (faster), glove
  size: 100
  subwords: false                   # true adds letter n-grams, for unseen and rare words
training:
  optimiser: {{use: adagrad, lr: 0.1}}
  schedule: linear
  clip_norm: 0
  max_epochs: {epochs}
  precision: float32
  seed: 1
"""
