"""What `weft init translate` writes: a recipe for a user's files, with the reasons as comments."""

from pathlib import Path
from typing import NamedTuple

from weft.data.parallel import ParallelText
from weft.errors import ConfigError, DataError

VALID_NAMES = ("valid", "val", "dev", "validation")
SMALL, MIDDLE = 50_000, 500_000  # pairs


class Looked(NamedTuple):
    """What the files are like."""

    pairs: int
    mean_words: float
    longest_words: int


def look(text: ParallelText) -> Looked:
    """Read all pairs once."""
    pairs, words, longest = 0, 0, 0
    for _, source, target in text:
        count = max(len(source.split()), len(target.split()))
        pairs, words, longest = pairs + 1, words + count, max(longest, count)
    return Looked(pairs, words / max(1, pairs), longest)


def beside(train: Path, names: tuple[str, ...], source: str, target: str) -> Path | None:
    """Files named like the training files, but valid (val, dev) or test instead of train."""
    for name in names:
        candidate = train.with_name(train.name.replace("train", name))
        if candidate == train:
            continue
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
    if valid is None:
        example = f"{train.name.replace('train', 'valid')}.{source}"
        raise ConfigError(
            f"no validation files stand beside {train} (such as {example}); "
            "name them with --valid, or split some off with --hold-out 1000"
        )
    seen = look(ParallelText(train, source, target))
    if not seen.pairs:
        raise DataError(f"{train}: there is no pair in it; give at least a few thousand")
    size = 4000 if seen.pairs < SMALL else 8000 if seen.pairs < MIDDLE else 32000
    width, dropout = (256, 0.3) if seen.pairs < SMALL else (256, 0.2) if seen.pairs < MIDDLE else (512, 0.1)
    epochs = 30 if seen.pairs < SMALL else 15 if seen.pairs < MIDDLE else 5
    test_line = f"  test: {test}" if test else "  # test: path/test              for `weft evaluate`"
    return f"""# {source} to {target}: {seen.pairs:,} training pairs of {seen.mean_words:.0f} words on average
# (the longest has {seen.longest_words:,}). Written by `weft init`; every line may be changed.
#   weft train THIS-FILE
task: translate
data:
  source: {source}
  target: {target}
  train: {train}              # {train}.{source} and .{target}, or a .tsv
  valid: {valid}
{test_line}
  vocabulary: {{kind: bpe, size: {size}, shared: true}}   # also unigram, word, character
  max_length: 128                   # tokens; longer pairs are left out and counted
  batch_tokens: 2048                # target tokens a batch; less if memory runs out
model:
  # also: transformer. Any encoder goes with any decoder.
  encoder: {{use: recurrent, cell: lstm, sizes: [{width}, {width}], bidirectional: true, dropout: {dropout}}}
  decoder: {{use: recurrent, cell: lstm, sizes: [{width * 3 // 2}], score: bilinear, dropout: {dropout}}}
  embedding: {{size: {width}, dropout: {dropout}}}
  smoothing: 0.1
training:
  optimiser: {{use: adamw, lr: 0.002}}
  schedule: {{use: linear, warmup: 400}}   # falls to zero at the end below
  max_epochs: {epochs}
  metric: bleu                      # what chooses the best checkpoint; also loss, chrf
  patience: 6                       # validations without a better score
  seed: 1
decoding:
  beam: 5
  length_penalty: 1.0
"""
