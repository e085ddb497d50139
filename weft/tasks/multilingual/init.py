"""`weft init multilingual`: a recipe for a user's text in several languages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, ClassVar

from weft.data.files import COMPRESSED
from weft.data.parallel import ParallelText, names_side
from weft.data.tables import header_of, is_table
from weft.errors import ConfigError
from weft.tasks.init import (
    MIDDLE,
    SMALL,
    TEST,
    TINY,
    TRAIN,
    VALID,
    VALID_NAMES,
    NewRecipe,
    Option,
    TemplateInit,
    examples_held_out,
    planned,
    quoted,
    sibling_pairs,
    splits,
    survey_sides,
    vocabulary_size,
)
from weft.wording import plural


class MultilingualInit(TemplateInit):
    """A recipe for texts in several languages, whose lines are translations of each other."""

    about: ClassVar[str] = "A translator for several languages."
    details: ClassVar[str] = (
        "PREFIX stands for PREFIX.en, PREFIX.de, ..., whose lines are translations of each other; a table "
        "has a column for each language."
    )
    examples: ClassVar = ("data/train", "phrases.tsv --pairs en-de,de-en,en-fr")
    options: ClassVar = (
        TRAIN._replace(help="Training text: PREFIX, or a table with a column for each language."),
        Option(
            "pairs",
            "Directions to train: en-de,de-en (repeatable). Default: all of the files.",
            multiple=True,
        ),
        VALID._replace(help="Validation text. Default: that next to the training text, else held-out lines."),
        TEST._replace(help="Test text. Default: that next to the training text, if any."),
    )

    def values(self, given: Mapping[str, Any], say: Callable[[str], None]) -> Mapping[str, object]:
        train: Path = given["train"]
        pairs = _directions(train, given["pairs"], say)
        first = pairs[0].split("-")
        seen, repeated = survey_sides(_sides(train, pairs), train)
        lines = sum(1 for _ in ParallelText(train, first[0], first[1]))
        tokens = 1500 if lines * len(pairs) > TINY else 512
        return {
            "languages": ", ".join(sorted({one for pair in pairs for one in pair.split("-")})),
            "counted": f"{plural(lines, 'line')}, {plural(len(pairs), 'direction')}",
            "mean": seen.counted(seen.mean),
            "pairs": ", ".join(map(quoted, pairs)),
            **splits(
                train,
                given["valid"] or sibling_pairs(train, VALID_NAMES, first[0], first[1]),
                given["test"] or sibling_pairs(train, ("test",), first[0], first[1]),
            ),
            "every": examples_held_out(lines),
            "pieces": vocabulary_size(seen, repeated),
            "tokens": tokens,
            "width": 256 if lines * len(pairs) < MIDDLE else 512,
            "wide": 384 if lines * len(pairs) < MIDDLE else 768,
            "dropout": 0.3 if lines * len(pairs) < SMALL else 0.2,
            **planned(1.3 * lines * len(pairs) * seen.mean / tokens, epochs=10, warmup=400)._asdict(),
        }

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        """The files of the first direction are checked before `weft train`."""
        written = super().write(given, say)
        one, other = _directions(given["train"], given["pairs"], lambda _: None)[0].split("-")
        text = ParallelText(given["train"], one, other)
        known = names_side(one) and names_side(other)  # so the check finds them
        columns = ("--source", one, "--target", other) if text.table and not known else ()
        return written._replace(steps=[(*self.check(*dict.fromkeys(text.files)), *columns)])


def _directions(train: Path, given: Sequence[str], say: Callable[[str], None]) -> list[str]:
    """The directions of --pairs, or all between the languages of the files."""
    pairs = [pair for one in given for pair in one.split(",") if pair]
    if not pairs:
        languages = _languages(train)
        pairs = ["-".join(two) for two in permutations(languages, 2)]
        count = plural(len(pairs), "direction")
        say(f"{train}: all {count} of {', '.join(languages)} are trained; --pairs names others")
    for pair in pairs:
        if pair.count("-") != 1:
            raise ConfigError(f"--pairs: expected a direction such as en-de, got {pair}")
        ParallelText(train, *pair.split("-"))  # raises if a language is missing
    return pairs


def _languages(train: Path) -> list[str]:
    """The columns of a table, or the endings of the files, in alphabetical order."""
    if is_table(train):
        found = [name for name in header_of(train) if names_side(name)]
    else:
        names = [path.name[len(train.name) + 1 :] for path in train.parent.glob(f"{train.name}.*")]
        bare = {name.removesuffix(end) for name in names for end in COMPRESSED if name.endswith(end)}
        found = sorted(name for name in {*bare, *names} if names_side(name))
    if len(found) < 2:
        raise ConfigError(
            f"{train}: expected texts in two or more languages, such as {train.name}.en and {train.name}.de, "
            f"got {', '.join(found) or 'none'}; name the directions with --pairs"
        )
    return found


def _sides(train: Path, pairs: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The texts of each language once."""
    seen: set[str] = set()
    for pair in pairs:
        source, target = pair.split("-")
        new = [place for place, one in enumerate((source, target), 1) if one not in seen]
        seen |= {source, target}
        for one in ParallelText(train, source, target) if new else ():
            yield tuple(str(one[place]) for place in new)
