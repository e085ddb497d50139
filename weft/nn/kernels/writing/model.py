"""A model that offers its step to searches in compiled code. Read next: ends.py, transformer.py."""

from collections.abc import Callable
from typing import Any

from weft.native import WholeStep
from weft.nn.kernels.writing.ends import Ends
from weft.tree import State


class WholeSteps:
    """The base of a model with `step`, made of token vectors, a decoder and a head.

    A class that derives from such a model and has a `step` of its own is searched by calling that.
    """

    embed: Any
    decoder: Any
    head: Any
    training: bool
    between_steps: Callable[[], None] | None = None
    """Called between the steps of a search; an error raised here ends the search."""

    def pause(self) -> None:
        """Call `between_steps`."""
        if self.between_steps is not None:
            self.between_steps()

    def whole_step(self, state: State, width: int, steps: int) -> WholeStep | None:
        """`step` in compiled code, for many steps in one call; None where it cannot be.

        Args:
            state: the state before the first step, one row per source; stays as it is.
            width: most hypotheses of a source.
            steps: most steps.
        """
        stepping = next(kind for kind in type(self).__mro__ if "step" in vars(kind))
        vectors, output = getattr(self.embed, "vectors", None), self.head.output()
        if self.training or vectors is None or output is None or WholeSteps not in stepping.__bases__:
            return None
        found: WholeStep | None = self.decoder.whole_step(state, Ends(vectors(), output, width, steps))
        if found is None:
            return None
        prepare = found.before

        def before(time: int) -> None:
            self.pause()
            prepare(time)

        return found._replace(before=before)
