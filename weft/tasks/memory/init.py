"""`weft init memory`: a recipe for a generated problem."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, get_args

from weft.tasks.init import Init, NewRecipe, Option, filled, only

SIZES = {
    "adding": (200, 10),
    "copying": (100, 10),
    "selective": (100, 10),
    "induction": (50, 10),
    "recall": (8, 10),
    "cups": (50, 5),
}
"""The usual length and number of symbols of each problem."""


class MemoryInit(Init):
    """A recipe for a problem of a given length; no files are read."""

    about: ClassVar[str] = "Generated problems that test what a model remembers."
    examples: ClassVar = ("--problem copying --length 200",)
    options: ClassVar = (
        Option(
            "problem",
            "What to remember; see data.problem of the task.",
            choices=tuple(SIZES),
            default="adding",
        ),
        Option(
            "length", "Number of inputs, steps of delay (copying) or pairs (recall). Default: usual.", int
        ),
        Option("symbols", "Number of symbols (copying, selective) or cups. Default: usual.", int),
    )

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        from weft.tasks.memory.data import MemoryData, ProblemName  # loads torch

        assert set(SIZES) == set(get_args(ProblemName))
        problem = given["problem"]
        length, symbols = (
            usual if own is None else own
            for usual, own in zip(SIZES[problem], (given["length"], given["symbols"]), strict=True)
        )
        MemoryData(problem=problem, length=length, symbols=symbols)  # raises if a size does not fit
        values = {
            "problem": problem,
            "length": length,
            "symbols": symbols if problem in ("copying", "selective", "cups") else None,
            "shortest": max(2, length // 10) if problem == "adding" else None,
            "sums": only(problem == "adding"),
            "signs": only(problem != "adding"),
            "copying": only(problem == "copying"),
            "others": only(problem not in ("adding", "copying")),
        }
        return NewRecipe(filled("memory", values))
