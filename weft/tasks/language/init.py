"""What `weft init language` writes: a recipe for a user's text, with the reasons as comments."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from weft.data.plain import PlainText, no_words
from weft.errors import DataError
from weft.tasks.init import TEST, TRAIN, VALID, Init, NewRecipe, Option
from weft.tasks.shared.planned import planned
from weft.tasks.shared.recipe_text import VALID_NAMES, quoted, sibling
from weft.wording import plural

Kind = Literal["space", "word", "character", "bpe"]
Model = Literal["lstm", "gpt"]
SMALL = 2_000_000  # characters
FEWEST = 10
"""Lines of a text without validation text."""
_LOOSE = re.compile(r"(?<=\S) [.,;:?!](?= |$)", re.MULTILINE)
_TIGHT = re.compile(r"(?<=\w)[.,;:?!](?= |$)", re.MULTILINE)


class Language(Init):
    """A recipe for a text, with a choice of tokens and model."""

    about: ClassVar[str] = "A language model for plain text."
    examples: ClassVar = ("--train plays.txt --kind character --model gpt",)
    options: ClassVar = (
        TRAIN._replace(help="Training text; may be compressed."),
        VALID,
        TEST,
        Option(
            "kind",
            "Kind of tokens. Default: chosen from the text.",
            choices=("space", "word", "character", "bpe"),
        ),
        Option("model", "Model to train.", choices=("lstm", "gpt"), default="lstm"),
    )

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        """A recipe for the language model."""
        files = given["train"], given["valid"], given["test"]
        text = recipe(*files, kind=given["kind"], model=given["model"])
        return NewRecipe(text, [self.check(given["train"])])


class Survey(NamedTuple):
    """Properties of a text."""

    lines: int
    words: int
    characters: int
    different_words: int
    different_characters: int
    repeated_words: int
    tokenised: bool  # punctuation is separated by spaces, or words are replaced by <unk>

    @property
    def kind(self) -> Kind:
        """The vocabulary that suits it."""
        if self.tokenised and self.different_words <= 50_000:
            return "space"
        return "bpe" if self.different_words > 5_000 else "word"

    @property
    def pieces(self) -> int:
        """A size that byte-pair encoding can reach."""
        least = self.different_characters + 5
        usual = 2000 if self.characters < SMALL else 8000
        return max(least, min(usual, least + self.repeated_words // 2))


def survey(text: PlainText) -> Survey:
    """Read all of it once.

    Raises:
        DataError: there is no word in it.
    """
    lines = words = characters = loose = tight = 0
    seen: Counter[str] = Counter()
    marks: set[str] = set()
    for line in text:
        lines, characters = lines + 1, characters + len(line) + 1
        parts = line.split()
        words += len(parts)
        seen.update(parts)
        marks.update(line)
        loose, tight = loose + len(_LOOSE.findall(line)), tight + len(_TIGHT.findall(line))
    if not words:
        raise no_words(text.path)
    repeated = sum(count > 1 for count in seen.values())
    return Survey(lines, words, characters, len(seen), len(marks), repeated, loose > tight or "<unk>" in seen)


def recipe(
    train: Path, valid: Path | None, test: Path | None, *, kind: Kind | None = None, model: Model = "lstm"
) -> str:
    """A commented recipe.

    Args:
        train, valid, test: text files; if None, the last two are looked for next to the first; without a
            validation file, the last tenth of the first one is for validation.
        kind: of the vocabulary; None chooses it by the text.
        model: a recurrent network, or a Transformer.

    Raises:
        DataError: a file is missing, or holds no word.
    """
    seen = survey(PlainText(train))
    valid = valid or sibling(train, VALID_NAMES)
    test = test or sibling(train, ("test",))
    for path in (valid, test):
        if path is not None:
            survey(PlainText(path))
    if valid is None and seen.lines < FEWEST:
        raise DataError(
            f"expected {FEWEST} lines or more, got {seen.lines}; add text, or --valid", path=train
        )
    kind = kind or seen.kind
    size = f", size: {seen.pieces}" if kind == "bpe" else ""
    held = (
        f"valid: {quoted(valid)}" if valid else "valid_share: 0.1                  # the last tenth of train"
    )
    tested = f"test: {quoted(test)}" if test else "# test: path/test                 for `weft evaluate`"
    width, epochs = (200, 10) if seen.characters < 10 * SMALL else (512, 4)
    length = (128 if model == "gpt" else 64) if kind == "character" else (64 if model == "gpt" else 35)
    tokens = seen.characters if kind == "character" else seen.words
    plan = planned(tokens / (20 * length), epochs=epochs, warmup=200)
    about = f"{plural(seen.lines, 'line')}, {seen.words:,} words ({seen.different_words:,} different ones)"
    return f"""# {train.name}: {about}.
# Written by `weft init`; change any line you like.
#   weft train THIS-FILE
task: language
data:
  train: {quoted(train)}
  {held}
  {tested}
  vocabulary: {{kind: {kind}{size}}}   # space, word, character, bpe, unigram
  batches: {_batches(model)}
  length: {length}                        # tokens per piece
  rows: 20                          # pieces per batch; lower it if memory runs out
model:
{_model(model, width, length)}
training:
  optimiser: {{use: adamw, lr: 0.003, betas: [0.9, 0.99]}}
  schedule: {{use: linear, warmup: {plan.warmup}}}   # falls to zero at max_epochs
  max_epochs: {plan.epochs}
  patience: 3                       # stop after this many validations without improvement
  seed: 1
decoding:
  temperature: 0.8                  # for `weft predict`; or top_k, top_p, seed, search: greedy
  max_tokens: 100
  # mixture: tuned                  mixes in an n-gram model of the same text
"""


def _batches(model: Model) -> str:
    if model == "gpt":
        return "windows                  # drawn from anywhere; the model sees one window"
    return "stream                   # the state is carried from piece to piece; also windows, lines"


def _model(model: Model, width: int, length: int) -> str:
    if model == "gpt":
        settings = f"size: {width + width % 8}, num_layers: 4, num_heads: 4, max_length: {length}"
        settings += ", positions: learned, activation: gelu, dropout: 0.1"
        return (
            f"  decoder: {{use: transformer, {settings}}}\n"
            f"  embedding: {{size: {width + width % 8}, dropout: 0.1, tied: true}}"
        )
    return (
        f"  # also cell: gru, elman; or decoder: bag, window; transformer needs batches: windows\n"
        f"  decoder: {{use: recurrent, cell: lstm, sizes: [{width}, {width}], dropout: 0.2}}\n"
        f"  embedding: {{size: {width}, dropout: 0.2, tied: true}}"
    )
