"""The continuation of a text, as the answer of a language model. Read next: predictor.py."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from weft.tasks.predictor import Answer, Json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from weft.tasks.language.predictor import Writer


class Generated(NamedTuple):
    """A text and its continuation."""

    text: str  # the given text and its continuation
    added: str  # the continuation
    logp: float  # nats, of the continuation, before temperature, top_k and top_p


class Continuation(Answer):
    """The continuations of a text.

    Args:
        writer: wrote them.
        found: best first.
    """

    def __init__(self, writer: "Writer", found: Sequence[Generated]) -> None:
        self._writer = writer
        self._found = found

    def text(self) -> str:
        """Each continuation on its own line; with scores, after its log-probability and a tab."""
        shown = [f"{one.logp:.4f}\t{one.text}" if self._writer.scores else one.text for one in self._found]
        return "\n".join([*shown, *[""] * (self._writer.lines - len(shown))])

    def json(self) -> Json:
        """The first continuation and its log-probability."""
        return {"text": self._found[0].text, "logp": self._found[0].logp}

    def figure(self) -> "Figure":
        """The first text, coloured by how likely the model finds each of its tokens."""
        from weft.tasks.language.figure import coloured_text

        text = self._found[0].text
        return coloured_text(self._writer.score(text), title=text[:80])
