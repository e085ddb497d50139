r"""ARPA files: n-gram models as text, the format of SRILM, KenLM and others.

    \data\
    ngram 1=4
    ...
    \1-grams:
    log10 p TAB words TAB log10 back-off

Logarithms have base 10; <s> is never predicted, so it is listed with -99. Read next: model.py.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from weft.errors import DataError
from weft.ngram.model import NGram, OrderGrams, find_rows

TEN = math.log(10)
NOTHING = -99.0  # SRILM's log10 of zero
START, END, UNKNOWN = "<s>", "</s>", "<unk>"


class Arpa(NamedTuple):
    """A model and the words of its tokens."""

    model: NGram
    words: tuple[str, ...]


def arpa_lines(model: NGram, words: Sequence[str]) -> Iterator[str]:
    """The lines of an ARPA file, without line ends; a token with an empty word is left out."""
    if len(words) != model.size:
        raise DataError(f"expected {model.size} words, one for each token, got {len(words)}")
    wrong = next((word for word in words if word != "".join(word.split())), None)
    if wrong is not None:
        raise DataError(f"{wrong!r} contains white space, which separates words in an ARPA file; replace it")
    kept = np.array([bool(word) for word in words])
    sizes = counts(model, words)
    if len({word for word in words if word}) < kept.sum():
        twice = next(word for place, word in enumerate(words) if word and word in words[:place])
        raise DataError(f"{twice!r} is both a word and a special symbol; spell it differently in the text")
    yield "\\data\\"
    for number in range(1, model.order + 1):
        yield f"ngram {number}={sizes[number - 1]}"
    names: list[str] = []
    for number, grams in enumerate(model.orders, 1):
        yield ""
        yield f"\\{number}-grams:"
        if number == 1:
            names = list(words)
        else:
            context, last = np.divmod(grams.keys, model.size)
            names = [
                f"{names[one]} {words[two]}" for one, two in zip(context.tolist(), last.tolist(), strict=True)
            ]
        logp = np.maximum(grams.logp / TEN, NOTHING).tolist()
        away = (grams.backoff / TEN).tolist()
        for place, name in enumerate(names):
            if number == 1 and not kept[place]:
                continue
            tail = f"\t{away[place]:.9g}" if number < model.order else ""
            yield f"{logp[place]:.9g}\t{name}{tail}"
    yield ""
    yield "\\end\\"


def counts(model: NGram, words: Sequence[str]) -> list[int]:
    """How many n-grams of each order are written; unigrams include <unk> and <s>, but not padding."""
    return [sum(map(bool, words)), *(len(grams.keys) for grams in model.orders[1:])]


def read_arpa(lines: Iterable[str], name: str = "the ARPA file") -> Arpa:
    """Read a model from the lines of an ARPA file."""
    sections = _sections(lines, name)
    words: dict[str, int] = {}
    orders: list[OrderGrams] = []
    for order, rows in sections:
        if order == 1:
            words = {spelt[0]: number for number, (_, spelt, _) in enumerate(rows)}
            if len(words) < len(rows) or START not in words:
                raise DataError(f"its 1-grams repeat a word or lack {START}; create it again", path=name)
            keys = np.arange(len(words))
        else:
            keys = _keys(rows, words, orders, name)
        logp = np.array([one for one, _, _ in rows]) * TEN
        away = np.array([one for _, _, one in rows]) * TEN
        logp[logp <= NOTHING * TEN] = -np.inf
        place = np.argsort(keys, kind="stable")
        orders.append(OrderGrams(keys[place], logp[place], away[place]))
    return Arpa(NGram(orders, size=len(words), start=words[START]), tuple(words))


Row = tuple[float, list[str], float]


def _keys(rows: list[Row], words: dict[str, int], orders: list[OrderGrams], name: str) -> np.ndarray:
    what = f"{len(orders) + 1}-grams"
    try:
        tokens = np.array([[words[word] for word in spelt] for _, spelt, _ in rows], np.int64)
    except KeyError as error:
        raise DataError(
            f"{what}: the word {error.args[0][:60]!r} is not among its 1-grams; create it again", path=name
        ) from None
    tokens = tokens.reshape(len(rows), len(orders) + 1)
    number = tokens[:, 0]
    for step in range(1, len(orders)):
        number = find_rows(orders[step].keys, number * len(words) + tokens[:, step])
        if len(number) and number.min() < 0:
            lost = " ".join(rows[int(number.argmin())][1])[:60]
            why = f"{what}: of {lost!r} the shorter n-gram before its last word is not there"
            raise DataError(why, path=name)
    return number * len(words) + tokens[:, -1]


def _sections(lines: Iterable[str], name: str) -> list[tuple[int, list[Row]]]:
    found: list[tuple[int, list[Row]]] = []
    promised: dict[int, int] = {}
    ended = False
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or line == "\\data\\" or ended:
            continue
        try:
            if line == "\\end\\":
                ended = True
            elif line.startswith("ngram ") and not found:
                head, _, count = line[6:].partition("=")
                promised[int(head)] = int(count)
            elif line.startswith("\\") and line.endswith("-grams:"):
                found.append((int(line[1:-7]), []))
            elif found:
                found[-1][1].append(_row(line, found[-1][0]))
            # Lines before \data\ are comments.
        except ValueError as error:
            raise DataError(
                f"{line[:50]!r} is not a line of an ARPA file ({str(error)[:60]}); correct it",
                path=name,
                line=number,
            ) from None
    if not ended or [order for order, _ in found] != list(range(1, len(found) + 1)) or not found:
        raise DataError("incomplete ARPA file (expected \\1-grams: to \\end\\); copy it again", path=name)
    for order, rows in found:
        if promised.get(order) != len(rows):
            raise DataError(
                f"expected {promised.get(order)} {order}-grams as its header says, got {len(rows)}", path=name
            )
    return found


def _row(line: str, order: int) -> Row:
    parts = re.split("[ \t]+", line)
    if len(parts) not in (order + 1, order + 2):
        raise ValueError(f"{len(parts)} columns for a {order}-gram")
    away = float(parts[order + 1]) if len(parts) == order + 2 else 0.0
    logp = float(parts[0])
    if not (logp < math.inf and away < math.inf):
        raise ValueError("expected finite numbers")
    return logp, parts[1 : order + 1], away
