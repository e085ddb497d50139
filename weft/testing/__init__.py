"""Checks of a part of your own: the laws that every cell, score and metric of Weft keeps, in one line.

    from weft.testing import check_cell

    def test_my_cell() -> None:
        check_cell(MyCell)

A broken law is an AssertionError that names it. Read next: cells.py.
"""

from weft import lazy

__getattr__, __dir__ = lazy.attach(__name__)
