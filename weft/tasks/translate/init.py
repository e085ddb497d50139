"""What `weft init translate` writes: a recipe for a user's files, with the reasons as comments."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from weft.data.parallel import ParallelText, both, is_table
from weft.errors import ConfigError, DataError
from weft.tasks.shared.planned import planned
from weft.text.normalise import normalise
from weft.text.pieces import SPECIALS, count_parts, count_words

VALID_NAMES = ("valid", "val", "dev", "validation")
WORDS = ("null", "true", "false")  # what YAML 1.2 would not read as text
TINY, SMALL, MIDDLE = 3_000, 50_000, 500_000  # pairs


class Looked(NamedTuple):
    """What the files are like; characters and repeated words are those of the first SMALL pairs."""

    pairs: int
    mean_words: float
    longest_words: int
    characters: int  # different ones
    repeated_words: int  # of two characters or more, cut at punctuation, seen twice or more

    @property
    def vocabulary(self) -> int:
        """A size that byte-pair encoding can reach: all characters, and no more than surely become pieces."""
        usual = 4000 if self.pairs < SMALL else 8000 if self.pairs < MIDDLE else 32000
        least = self.characters + len(SPECIALS)
        most = least + self.repeated_words if self.pairs < SMALL else usual
        return max(least, min(max(usual, 2 * least), most))


def look(text: ParallelText) -> Looked:
    """Read all pairs once."""
    pairs, words, longest = 0, 0, 0
    first: Counter[str] = Counter()
    for _, source, target in text:
        count = max(len(source.split()), len(target.split()))
        pairs, words, longest = pairs + 1, words + count, max(longest, count)
        if pairs <= SMALL:
            first.update(count_words(map(normalise, (source, target)))[0])
    characters = {mark for word in first for mark in word}
    repeated = [part for part, count in count_parts(first, "bpe").items() if count > 1 and len(part) > 1]
    return Looked(pairs, words / max(1, pairs), longest, len(characters), len(repeated))


def beside(train: Path, names: tuple[str, ...], source: str, target: str) -> Path | None:
    """Files named like the training files, but valid (val, dev) or test instead of train."""
    parts = both(train) or (train,)
    for name in names:
        renamed = [part.with_name(part.name.replace("train", name)) for part in parts]
        if renamed == list(parts):
            continue
        candidate = Path(",".join(map(str, renamed)))
        try:
            ParallelText(candidate, source, target)
            return candidate
        except DataError:
            continue
    return None


def recipe(train: Path, valid: Path | None, test: Path | None, source: str, target: str) -> str:
    """A commented recipe.

    Args:
        train, valid, test: prefixes or .tsv files; the last two are looked for beside the first if None.
        source, target: languages.

    Raises:
        ConfigError: there are no validation files.
        DataError: files are missing or damaged.
    """
    valid = valid or beside(train, VALID_NAMES, source, target)
    test = test or beside(train, ("test",), source, target)
    seen = look(ParallelText(train, source, target))
    if not seen.pairs:
        raise DataError(f"{train}: there is no pair in it; give at least a few thousand")
    if valid is None:
        example = train.name.replace("train", "valid") + ("" if is_table(train) else f".{source}")
        shown = f" (such as {example})" if "train" in train.name and both(train) is None else ""
        raise ConfigError(
            f"no validation files stand beside {train}{shown}; name them with --valid, or split some "
            f"off with --hold-out {max(1, min(1000, seen.pairs // 20))}"
        )
    width, dropout = (256, 0.3) if seen.pairs < SMALL else (256, 0.2) if seen.pairs < MIDDLE else (512, 0.1)
    epochs = 30 if seen.pairs < SMALL else 15 if seen.pairs < MIDDLE else 5
    tokens = 2048 if seen.pairs > TINY else 512  # a batch
    plan = planned(1.3 * seen.pairs * seen.mean_words / tokens, epochs=epochs, warmup=400)
    test_line = f"  test: {quoted(test)}" if test else "  # test: path/test              for `weft evaluate`"
    return f"""# {source} to {target}: {seen.pairs:,} training pairs of {seen.mean_words:.0f} words on average
# (the longest has {seen.longest_words:,}). Written by `weft init`; every line may be changed.
#   weft train THIS-FILE
task: translate
data:
  source: {quoted(source)}
  target: {quoted(target)}
  train: {quoted(train)}              # {_meaning(train, source, target)}
  valid: {quoted(valid)}
{test_line}
  vocabulary: {{kind: bpe, size: {seen.vocabulary}, shared: true}}   # also unigram, word, character
  max_length: 128                   # tokens; longer pairs are left out and counted
  batch_tokens: {tokens:<4}                # target tokens a batch; less if memory runs out
model:
  # also: transformer. Any encoder goes with any decoder.
  encoder: {{use: recurrent, cell: lstm, sizes: [{width}, {width}], bidirectional: true, dropout: {dropout}}}
  decoder: {{use: recurrent, cell: lstm, sizes: [{width * 3 // 2}], score: bilinear, dropout: {dropout}}}
  embedding: {{size: {width}, dropout: {dropout}}}
  smoothing: 0.1
training:
  optimiser: {{use: adamw, lr: 0.002}}
  schedule: {{use: linear, warmup: {plan.warmup}}}   # falls to zero at max_epochs
  max_epochs: {plan.epochs}
  metric: bleu                      # what chooses the best checkpoint; also loss, chrf
  patience: 6                       # validations without a better score
  seed: 1
decoding:
  beam: 5
  length_penalty: 1.0
"""


def quoted(value: object) -> str:
    """A text as YAML: in quotes unless it is surely plain."""
    text = str(value)
    plain = re.fullmatch(r"[A-Za-z_/][\w./-]*", text, re.ASCII) and text.lower() not in WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)


def _meaning(train: Path, source: str, target: str) -> str:
    if is_table(train):
        return f"its columns {source} and {target}"
    if both(train) is not None:
        return f"two files, {source} and {target}, line by line"
    return f"{train.name}.{source} and {train.name}.{target}; or a .tsv"
