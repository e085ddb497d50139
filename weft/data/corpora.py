"""Corpora included in Weft, each a folder of corpora/ with its notice and licence.

libreoffice-help: 33,000 parallel help sentences in six languages, so any of 30 directions can be trained
without a download. Read next: parallel.py, whose interface a corpus has.
"""

from collections.abc import Sequence
from pathlib import Path

from weft.data.lines import read_lines
from weft.data.parallel import ParallelText
from weft.errors import ConfigError
from weft.wording import close_name

SPLITS = ("train", "valid", "test")
FOLDER = Path(__file__).parent / "corpora"


def names() -> list[str]:
    """The names of the corpora that ship with Weft, sorted."""
    return sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


def languages(name: str) -> list[str]:
    """The languages of a corpus.

    Raises:
        ConfigError: no such corpus.

    Example:
        >>> languages("libreoffice-help")
        ['en', 'de', 'es', 'fr', 'pl', 'ru']
    """
    return next(read_lines(_folder(name) / "train.tsv.xz")).split("\t")[1:]


def corpus(name: str, source: str, target: str, split: str) -> ParallelText:
    """The pairs of a split in one direction; rows with an empty side are left out.

    Args:
        name: such as "libreoffice-help".
        source, target: two of its languages.
        split: "train", "valid" or "test".

    Raises:
        ConfigError: no such corpus, language or split.

    Example:
        >>> next(iter(corpus("libreoffice-help", "en", "es", "test"))).target
        'Creación de una biblioteca nueva'
    """
    checked(name, [source, target], split)
    if source == target:
        raise ConfigError(f"corpus {name}: source and target are both {source!r}; choose two languages")
    return ParallelText(
        _folder(name) / f"{split}.tsv.xz", source, target, complete=True, name=f"{name}/{split}"
    )


def checked(name: str, wanted: Sequence[str], split: str) -> list[str]:
    """The languages of a corpus, which has the wanted ones and the split."""
    known, number = languages(name), "two" if wanted[1:] else "one"
    for language in wanted:
        if language not in known:
            raise ConfigError(
                f"corpus {name} has no language {language!r}; choose {number} of {', '.join(known)}"
            )
    if split not in SPLITS:
        raise ConfigError(f"corpus {name} has no split {split!r}; choose one of {', '.join(SPLITS)}")
    return known


def _folder(name: str) -> Path:
    if name not in names():
        near = close_name(name, names())
        hint = f"did you mean {near!r}?" if near else f"choose one of {', '.join(names())}"
        raise ConfigError(f"unknown corpus {name!r}; {hint}")
    return FOLDER / name
