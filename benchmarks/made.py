"""A made-up corpus of any size and a vocabulary of it. Read next: scale.py, which measures with them."""

import random
from itertools import islice
from pathlib import Path

from weft.data.corpora import corpus as embedded
from weft.data.parallel import ParallelText
from weft.text.vocabulary import Vocabulary


def corpus(folder: Path, pairs: int) -> ParallelText:
    """Short lines, three to nine words of the embedded corpus; after a million pairs the same again."""
    if not folder.exists():
        folder.mkdir()
        chance = random.Random(1)
        sides = [
            [side.split() for side in pair[1:]] for pair in embedded("libreoffice-help", "en", "es", "train")
        ]
        lines: tuple[list[str], list[str]] = [], []
        for _ in range(min(pairs, 10**6)):
            words, length = chance.choice(sides), chance.randint(3, 9)
            at = chance.randrange(max(1, len(words[0]) - length))
            lines[0].append(" ".join(words[0][at : at + length]) + "\n")
            lines[1].append(" ".join(words[1][at : at + length] or words[1][:length]) + "\n")
        for language, side in zip(("en", "es"), lines, strict=True):
            with open(folder / f"text.{language}", "w") as file:
                for begun in range(0, pairs, 10**6):
                    file.writelines(side[: pairs - begun])
    return ParallelText(str(folder / "text"), "en", "es")


def vocabulary_of(folder: Path, path: Path) -> Path:
    """A BPE of 8,000 pieces, learnt from the first lines of such a corpus, as a file."""
    text = islice(ParallelText(str(folder / "text"), "en", "es"), 200_000)
    Vocabulary.train((side for pair in text for side in pair[1:]), kind="bpe", size=8000).save(path)
    return path
