"""The scores of an evaluation as a DataFrame, whose text is the report of `weft evaluate`.

It stands apart because it needs pandas. Read next: evaluation.py, which makes it.
"""

import pandas as pd


class ScoreTable(pd.DataFrame):
    """A table of scores that prints whole: pandas leaves out columns where a line has no room for them.

    Parts of it, such as two of its columns, are pandas' own tables.
    """

    def __repr__(self) -> str:
        return str(self.attrs.get("report") or super().__repr__())
