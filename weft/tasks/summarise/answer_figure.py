"""Where summaries looked: the pictures of translations, with a long side. Read next:
../translate/answer_figure.py.
"""

from weft.tasks.translate.answer_figure import TranslateLook


class SummariseLook(TranslateLook):
    """Heat maps of the words of a text under those of its summary; see TranslateLook."""
