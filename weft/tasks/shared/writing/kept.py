"""Chooses the pairs to score: those with text on both sides, as in training. Read next: evaluation.py."""

from collections.abc import Sequence
from typing import NamedTuple

from weft.data.parallel import complete
from weft.errors import DataError, ShapeError
from weft.models import Generator
from weft.nn.positions import most_positions
from weft.tasks.predictor import Place
from weft.tasks.shared.writing.translator import Translator
from weft.wording import plural


def scorable(sources: Sequence[str], references: Sequence[str], title: str) -> list[int]:
    """The numbers of the pairs that can be scored.

    Raises:
        DataError: no pair can be scored.
    """
    kept = complete(sources, references)
    if not kept:
        raise DataError(
            f"{title}: expected pairs with text on both sides, got {plural(len(sources), 'pair')}, "
            "each without a source or a reference; give both"
        )
    return kept


class Outputs(NamedTuple):
    """What a model wrote for the sources to score."""

    texts: list[str]  # a line for each source; empty if it could not be answered
    wrong: list[str]  # place and reason of each source without an answer


def written(translator: Translator, sources: Sequence[str], numbers: Sequence[int], title: str) -> Outputs:
    """The best output for each source; one that cannot be answered gets an empty one, which is scored.

    Args:
        translator: searches the outputs.
        sources: the texts.
        numbers: of the sources in the data, from 0.
        title: names the data.
    """
    texts, wrong = list[str](), list[str]()
    for number, found in zip(numbers, translator.texts(sources), strict=True):
        failed = isinstance(found, DataError | ShapeError)
        texts.append("" if failed else str(found))
        wrong += [Place(title, number + 1).why(found)] if isinstance(found, DataError | ShapeError) else []
    return Outputs(texts, wrong)


def fitting(
    model: Generator, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[int]:
    """The numbers of the pairs for which a model has positions.

    Raises:
        DataError: it has positions for none.
    """
    sides = zip(sources, targets, strict=True)
    found = [n for n, (source, target) in enumerate(sides) if _fits(model, len(source), len(target))]
    if not found:
        raise DataError(
            f"expected pairs that fit into the model's positions, got {len(sources):,} that are all longer; "
            "shorten them, or train a model with a larger max_length"
        )
    return found


def counted(kept: int, left_out: int, what: str) -> str:
    """The number of scored pairs, for a title.

    Example:
        >>> counted(748, 110, "pair"), counted(1, 0, "pair")
        ('748 pairs (110 more left out, with an empty side)', '1 pair')
    """
    more = f" ({left_out:,} more left out, with an empty side)" if left_out else ""
    return f"{plural(kept, what)}{more}"


def aligned(outputs: Sequence[str], kept: Sequence[int], count: int) -> list[str]:
    """A line for each pair of the data, an empty one if the pair was left out."""
    lines = [""] * count
    for number, output in zip(kept, outputs, strict=True):
        lines[number] = output
    return lines


def _fits(model: Generator, read: int, written: int) -> bool:
    """Whether a model has positions for so many source tokens, and target tokens without <eos>."""
    most, room = None if model.encoder is None else most_positions(model.encoder), model.max_output(read)
    return (most is None or read <= most) and (room is None or written < room)
