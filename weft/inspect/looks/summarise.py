"""Where summaries looked: the pictures of translations, with a long side. Read next: translate.py."""

from weft.inspect.looks.translate import TranslateLook


class SummariseLook(TranslateLook):
    """Heat maps of the words of a text under those of its summary; see TranslateLook."""
