"""`weft init classify` writes a recipe for a user's texts, with reasons as comments."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from weft.errors import DataError
from weft.tasks.init import TEST, TRAIN, VALID, Init, NewRecipe, Option
from weft.tasks.shared.recipe_text import VALID_NAMES, quoted, sibling
from weft.wording import plural

if TYPE_CHECKING:
    from weft.data.labelled import LabelledText, Labels

FEW = 1000
"""Texts below which a linear model of words and pairs is the safer choice."""

NETWORK = """  # also: bag, ngram, self_attention, transformer, convolution; cell lstm, elman, ...
  encoder: {use: recurrent, cell: gru, sizes: [100], bidirectional: true, dropout: 0.3}
  pool: {use: queries, num_queries: 4, score: additive}   # also: last, mean, max, summary
  embedding: {size: 128, dropout: 0.4}
  dropout: 0.4"""
LINEAR = """  # words and pairs of words, whatever their order; with more texts try an encoder and a pool
  bag: {ngrams: 2, weight: presence, naive_bayes: false}"""

FORM = (
    Option("text", "Column of a table that holds the text. Default: guessed, and printed."),
    Option("label", "Column of a table that holds the class. Default: guessed, and printed."),
    Option(
        "labels",
        "How a line names its class: __label__CLASS (marked), its first word (first), or its first word up "
        "to the colon (coarse).",
        choices=("marked", "first", "coarse"),
        default="marked",
    ),
    Option("separator", 'Separator between the labels of a text (several or none), such as "|".'),
    Option("encoding", "Encoding of the files, such as latin-1.", default="utf-8"),
)
"""Options that say how the files are read."""


class Classify(Init):
    """Reads labelled texts, lines or a table."""

    about: ClassVar[str] = "A classifier for texts."
    examples: ClassVar = (
        "--train reviews.tsv --label stars",
        "--train train_5500.label --labels coarse --encoding latin-1",
    )
    options: ClassVar = (
        TRAIN._replace(help="Training file: lines __label__CLASS TEXT, or a .tsv or .csv table."),
        VALID,
        TEST,
        *FORM,
    )

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        """A recipe for the classifier; says which columns it guessed."""
        from weft.tasks.classify.check import columns  # loads torch

        train, encoding = given["train"], given["encoding"]
        text, label, note = columns(train, given["text"], given["label"], encoding)
        if note:
            say(note)
        form = {"text": text, "label": label, "labels": given["labels"]}
        form |= {"separator": given["separator"], "encoding": encoding}
        written = recipe(train, given["valid"], given["test"], **form)
        usual = {"text": "text", "label": "label", "labels": "marked", "separator": None}
        usual |= {"encoding": "utf-8"}
        said = [word for name in form if form[name] != usual[name] for word in (f"--{name}", form[name])]
        return NewRecipe(written, [(*self.check(train), *said)])


class _Counted(NamedTuple):
    """The texts of a training file."""

    classes: Counter[str]
    texts: int
    words: int
    longest: int  # words of the longest text

    @property
    def few(self) -> bool:
        """Whether a linear model is the safer choice."""
        return self.texts < FEW

    def about(self) -> str:
        """Two lines of the recipe's header."""
        total, names = self.texts, self.classes.most_common(6)
        shown = ", ".join(f"{name} {count:,}" for name, count in names)
        shown += ", ..." if len(self.classes) > 6 else ""
        return (
            f"# {plural(len(self.classes), 'class')}, {plural(total, 'training text')} of "
            f"{self.words / total:.0f} words on average\n# (the longest has {self.longest:,}): {shown}."
        )


def recipe(
    train: Path,
    valid: Path | None,
    test: Path | None,
    *,
    text: str,
    label: str,
    labels: "Labels" = "marked",
    separator: str | None = None,
    encoding: str = "utf-8",
) -> str:
    """A commented recipe.

    Args:
        train, valid, test: labelled texts; the last two default to the files next to the first.
        text, label: columns of a table; labels, encoding: see LabelledText.
        separator: between the labels of a text that may have several or none.

    Raises:
        DataError: files are missing or damaged, or hold one class only.
    """
    from weft.data.labelled import OPTIONS, LabelledText, kind_of  # loads torch

    counted = _count(
        LabelledText(
            train,
            text=text,
            label=label,
            labels=labels,
            encoding=encoding,
            named=OPTIONS,
            unlabelled=separator is not None,
        ),
        separator,
    )
    form = f"\n  text: {quoted(text)}\n  label: {quoted(label)}" if kind_of(train) != "lines" else ""
    form += f"\n  labels: {labels}" if labels != "marked" else ""
    form += f"\n  separator: {quoted(separator)}" if separator is not None else ""
    form += f"\n  encoding: {encoding}" if encoding != "utf-8" else ""
    size, metric = ("null", "loss") if counted.few else ("20000", "accuracy")
    optimiser = "lr: 0.01, weight_decay: 0.0" if counted.few else "lr: 0.002, weight_decay: 0.01"
    return f"""{counted.about()} Written by `weft init`; change any line you like.
#   weft train THIS-FILE
task: classify
data:
  train: {quoted(train)}{form}
{_splits(train, valid, test, counted.texts)}
  # folds: 10                         cross-validation instead of test: fold 0 to 9, a run each
  # fold: 0
  vocabulary: {{kind: word, size: {size}, lowercase: true}}   # also space, character, bpe, unigram
  max_length: 400                   # tokens that are read of a text
model:
{LINEAR if counted.few else NETWORK}
training:
  optimiser: {{use: adamw, {optimiser}}}
  max_epochs: 8
  metric: {metric}                      # what chooses the best checkpoint; also f1
  seed: 1
"""


def _count(texts: "LabelledText", separator: str | None) -> _Counted:
    from weft.tasks.classify.data import names_of  # loads torch

    counts: Counter[str] = Counter()
    total = words = longest = 0
    for one in texts:
        counts.update(names_of(one.label, separator))
        length = len(one.text.split())
        total, words, longest = total + 1, words + length, max(longest, length)
    if len(counts) < (2 if separator is None else 1):
        raise DataError(
            f"expected at least 2 classes, got {len(counts)}; see weft data check", path=texts.path
        )
    return _Counted(counts, total, words, longest)


def _splits(train: Path, valid: Path | None, test: Path | None, total: int) -> str:
    """The lines of the recipe that name validation and test texts."""
    from weft.tasks.labels.splits import held_out  # loads torch

    valid, test = valid or sibling(train, VALID_NAMES), test or sibling(train, ("test",))
    if valid:
        chosen = f"  valid: {quoted(valid)}"
    else:
        every = held_out(total)
        kept = plural(total // every, "text")
        chosen = f"""  hold_out: {every:<2}                      # {kept} for choosing the checkpoint
  split_seed: 1                     # shuffled first, every class in proportion"""
    tested = f"  test: {quoted(test)}" if test else "  # test: path/test                 for `weft evaluate`"
    return f"{chosen}\n{tested}"
