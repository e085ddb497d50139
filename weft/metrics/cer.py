"""Character error rate: the word error rate, counted in characters. Read next: wer.py."""

from weft.metrics.wer import ErrorRate


class Cer(ErrorRate):
    """100 (S + D + I) / N over all lines, in characters; a run of white space counts as one space.

    Example:
        >>> Cer().score(["ond"], ["one two"]).value.__round__(2)
        71.43
    """

    name = "CER"
    unit = "character"

    def cut(self, line: str) -> str:
        return " ".join(line.split())
