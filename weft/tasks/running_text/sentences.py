"""Text as sentences of words: each line is a sentence; longer ones are cut to pieces of `data.length`."""

from collections import Counter
from collections.abc import Iterable, Iterator

from weft.errors import ConfigError
from weft.tasks.lexicon import Lexicon
from weft.tasks.running_text.data import ProseData
from weft.tasks.task import Split
from weft.text.normalise import normalise
from weft.text.pieces import cutter


def words_of(data: ProseData, line: str) -> list[str]:
    """The words of a line, split as data.vocabulary sets."""
    settings = data.vocabulary
    plain = normalise(line, form=settings.form, lowercase=settings.lowercase)
    if settings.kind == "space":
        return plain.split(" ") if plain else []
    return [part.strip() for part, _ in cutter("word").pre_tokenize_str(plain) if part != " "]


def sentences(data: ProseData, lines: Iterable[str]) -> Iterator[list[str]]:
    """Pieces of at most `data.length` words; empty lines are left out."""
    for line in lines:
        words = words_of(data, line)
        yield from (words[at : at + data.length] for at in range(0, len(words), data.length))


def sentences_of(data: ProseData, split: Split) -> list[list[str]]:
    """The sentences of a split."""
    return list(sentences(data, data.open(split)))


def learn_lexicon(some: Iterable[list[str]], *, min_count: int) -> Lexicon:
    """A lexicon of the words that occur at least `min_count` times, and of all letters."""
    words: Counter[str] = Counter()
    for sentence in some:
        words.update(sentence)
    letters = sorted({letter for word in words for letter in word})
    kept = sorted((word for word, count in words.items() if count >= min_count))
    return Lexicon(kept, [words[word] for word in kept], letters, [], lowercase=False)


def check_lines(data: ProseData, *, words: bool) -> None:
    """Check that the settings fit a model that reads whole lines.

    Raises:
        ConfigError: the settings do not fit.
    """
    if data.batches != "lines":
        raise ConfigError(
            f"data: batches is {data.batches}, but this task reads each line separately; set batches: lines"
        )
    if words and data.vocabulary.kind not in ("word", "space"):
        raise ConfigError(
            f"data: vocabulary.kind: expected word, or space for tokenised text, got "
            f"{data.vocabulary.kind}; this task predicts whole words"
        )
