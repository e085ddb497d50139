"""Properties of parallel text, for the recipe that `weft init` writes."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from weft.data.parallel import ParallelText, both
from weft.errors import DataError
from weft.text.normalise import normalise
from weft.text.pieces import SPECIALS, count_parts, count_words

TINY, SMALL, MIDDLE = 3_000, 50_000, 500_000  # pairs


class Survey(NamedTuple):
    """Properties of the files; characters and repeated words are from the first SMALL pairs."""

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


def survey(text: ParallelText) -> Survey:
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
    return Survey(pairs, words / max(1, pairs), longest, len(characters), len(repeated))


def sibling(train: Path, names: tuple[str, ...], source: str, target: str) -> Path | None:
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
