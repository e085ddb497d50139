"""What `weft init summarise` writes: a recipe for a user's texts, with the reasons as comments."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from weft.data.parallel import ParallelText
from weft.errors import ConfigError, DataError
from weft.tasks.init import TEST, TRAIN, VALID, Init, NewRecipe, Option
from weft.tasks.seq2seq.survey import SMALL, sibling, survey
from weft.tasks.shared.planned import planned
from weft.tasks.shared.recipe_text import VALID_NAMES, quoted
from weft.wording import plural

WORDS = 15  # typical length of a summary; Survey counts the longer side
USUAL = 10_000  # words of the vocabulary


class Summarise(Init):
    """A recipe for texts and their summaries, in two columns or two files."""

    about: ClassVar[str] = "A summariser for texts."
    details: ClassVar[str] = "Texts and summaries are two columns of a .tsv file, or two files."
    examples: ClassVar = ("--train data/train.tsv --text article --summary headline",)
    options: ClassVar = (
        TRAIN._replace(help="Training data: a .tsv, or PREFIX of two files."),
        Option("text", "Column, or file ending, of the texts.", default="text"),
        Option("summary", "Column, or file ending, of the summaries.", default="summary"),
        VALID._replace(help="Validation data. Default: the files next to the training data, if any."),
        TEST._replace(help="Test data. Default: the files next to the training data, if any."),
    )

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        """A recipe for the summariser."""
        files = given["train"], given["valid"], given["test"]
        columns = given["text"], given["summary"]
        text = recipe(*files, *columns)
        return NewRecipe(text, [self.check(*dict.fromkeys(ParallelText(given["train"], *columns).files))])


def recipe(train: Path, valid: Path | None, test: Path | None, source: str, target: str) -> str:
    """A commented recipe.

    Args:
        train, valid, test: prefixes or .tsv files; if None, the last two are looked for next to the first.
        source, target: the columns, or file endings, of text and summary.

    Raises:
        ConfigError: there are no validation files.
        DataError: files are missing or damaged.
    """
    valid = valid or sibling(train, VALID_NAMES, source, target)
    test = test or sibling(train, ("test",), source, target)
    if valid is None:
        raise ConfigError(f"no validation files next to {train}; name them with --valid")
    seen = survey(ParallelText(train, source, target))
    if not seen.pairs:
        raise DataError("expected at least a few thousand pairs, got none", path=train)
    tested = (
        f"  test: {quoted(test)}" if test else "  # test: path/test.tsv               for `weft evaluate`"
    )
    plan = planned(seen.pairs * WORDS / 600, epochs=10, warmup=200)
    width = 128 if seen.pairs < SMALL else 256
    kept = f"size: {USUAL}" if seen.repeated_words > USUAL else "size: null, min_count: 2"
    return f"""# {plural(seen.pairs, "text")}; the longest has {plural(seen.longest_words, "word")}.
# Written by `weft init`; change any line you like.
#   weft train THIS-FILE
task: summarise
data:
  source: {quoted(source)}                      # the text: a column of the TSV file, or a file ending
  target: {quoted(target)}                   # its summary
  train: {quoted(train)}
  valid: {quoted(valid)}
{tested}
  vocabulary: {{kind: word, {kept}, shared: true}}   # other words are copied from the text
  max_length: 400                   # tokens; pairs with a longer side are left out and counted
  cut_source: 400                   # tokens read of a text; a longer one is cut and counted
  batch_tokens: 600                 # target tokens per batch; lower it if memory runs out
  validate_rows: 200                # texts to summarise for ROUGE; the loss uses all
model:
  encoder: {{use: recurrent, cell: lstm, sizes: [{width}], bidirectional: true, dropout: 0.2}}
  decoder:
    use: pointer                    # writes its own words or copies words of the text (See et al. 2017)
    decoder: {{use: recurrent, cell: lstm, sizes: [{width * 3 // 2}], enters: never, dropout: 0.2}}
    score: {{use: additive, inner: {width}}}
    coverage: 1.0                   # keeps it from reading the same words twice; null is faster
    dropout: 0.2
  embedding: {{size: {width}, dropout: 0.1}}
  smoothing: 0.0
training:
  optimiser: {{use: adamw, lr: 0.003}}
  schedule: {{use: linear, warmup: {plan.warmup}}}   # falls to zero at max_epochs
  max_epochs: {plan.epochs}
  metric: rouge_l                   # chooses the best checkpoint; or rouge_1, rouge_2, loss
  patience: 4
  seed: 1
decoding:
  beam: 4
  no_repeat_ngram: 3                # no three tokens in a row are repeated
"""
