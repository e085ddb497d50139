"""What answers lack of their inputs, for standard error: placeholders, and characters without a token.

Read next: predictor.py; ../commands/predict.py, which prints them.
"""

import json
from collections.abc import Sequence

from weft.text.characters import named
from weft.wording import plural


class Remarks:
    r"""Remarks on many answers.

    Example:
        >>> remarks = Remarks()
        >>> remarks.see("in.txt:3", lost="expected placeholders %s, got none")
        >>> remarks.see("in.txt:4", lacking=["🙂"], lacked="the answers copy them")
        >>> remarks.see("in.txt:7", lacking=["🙂", "京"], lacked="the answers copy them")
        >>> print(*remarks.lines(), sep="\n")
        in.txt:3: expected placeholders %s, got none
        the vocabulary lacks 🙂 京, in 2 inputs, the first in.txt:4; the answers copy them
    """

    def __init__(self) -> None:
        self._lost: list[str] = []
        self._lacking: dict[str, None] = {}
        self._places = 0
        self._first = self._lacked = ""

    def see(self, place: str, *, lost: str = "", lacking: Sequence[str] = (), lacked: str = "") -> None:
        """Note what one answer lacks.

        Args:
            place: of its input.
            lost: what is wrong with its placeholders.
            lacking: characters of the input that the vocabulary lacks.
            lacked: what becomes of them.
        """
        if lost:
            self._lost.append(f"{place}: {lost}")
        if lacking:
            self._first, self._lacked = self._first or place, lacked
            self._lacking |= dict.fromkeys(lacking)
            self._places += 1

    def lines(self) -> list[str]:
        """A line for each answer with a wrong placeholder, and one that names the characters."""
        if not self._lacking:
            return self._lost
        where = f"in {plural(self._places, 'input')}, the first {self._first}"
        return [*self._lost, f"the vocabulary lacks {named(list(self._lacking))}, {where}; {self._lacked}"]

    def as_json(self) -> str:
        """For `add`; empty if there is none."""
        held = self._lost, list(self._lacking), self._places, self._first, self._lacked
        return json.dumps(held) if self._lost or self._lacking else ""

    def add(self, text: str) -> None:
        """Add later remarks, from `as_json`."""
        lost, lacking, places, first, lacked = json.loads(text)
        self._lost += lost
        self._lacking |= dict.fromkeys(lacking)
        self._places += places
        self._first, self._lacked = self._first or first, lacked or self._lacked
