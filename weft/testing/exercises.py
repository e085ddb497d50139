"""The exercises of the course that have a checkable answer: what an answer defines, and how it is checked.

    from weft.testing import check_exercise

    check_exercise("lstm-parameters", {"lstm": 240_800, "elman": 60_200})

`weft check EXERCISE FILE` does the same for a file. The exercises themselves are in docs/course, under
the same names, and docs/course/solutions.py has an answer to each. Of an exercise with a training or a
question in words, the part that code can answer is checked.
Read next: exercises_recurrent.py, the checks of the first chapters.
"""

from collections.abc import Mapping
from types import FunctionType
from typing import Any

from weft.errors import ConfigError
from weft.testing import exercises_attention, exercises_recurrent
from weft.testing.exercise_answers import Answers, Exercise
from weft.testing.translations import translated
from weft.wording import close_name

EXERCISES: dict[str, Exercise] = {
    name.replace("_", "-"): Exercise(str(check.__doc__), check)
    for part in (exercises_recurrent, exercises_attention)
    for name, check in vars(part).items()
    if isinstance(check, FunctionType) and check.__module__ == part.__name__ and not name.startswith("_")
}
"""Every checkable exercise, in the order of the course."""


def check_exercise(name: str, given: Mapping[str, Any], *, language: str = "en") -> None:
    """Check an answer to an exercise of the course, and print that it is right.

    Args:
        name: of the exercise, as in the course.
        given: the names that the answer defines, such as globals() in a notebook.
        language: of the hints: en, es, hr, pl or ru, also as HR or hr_HR.UTF-8.

    Raises:
        ConfigError: there is no such exercise or language.
        AssertionError: the answer is wrong; says in one sentence what to look at.

    Example:
        >>> check_exercise("bptt-number", {"steps": 135})
        ✓ bptt-number
    """
    exercise = exercise_of(name, language)
    try:
        exercise.check(Answers(given))
    except AssertionError as wrong:
        wrong.args = (translated(str(wrong), language),)
        raise
    print(f"✓ {name}")


def exercise_of(name: str, language: str = "en") -> Exercise:
    """The exercise of that name; if there is none, that is said in the language."""
    if name not in EXERCISES:
        near = close_name(name, EXERCISES)
        hint = f"did you mean {near!r}?" if near else "weft check lists them"
        raise ConfigError(translated(f"no exercise with a check is named {name!r}; {hint}", language))
    return EXERCISES[name]
