"""`weft init translate`: a recipe for a user's parallel text."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from weft.data.guess import columns_of, sides_of
from weft.data.parallel import ParallelText, both, is_memory, names_side
from weft.data.sides import side_name
from weft.data.split import hold_out
from weft.data.tables import is_table
from weft.errors import ConfigError
from weft.tasks.init import (
    SMALL,
    VALID_NAMES,
    Init,
    NewRecipe,
    Option,
    Survey,
    filled,
    planned,
    quoted,
    sibling_pairs,
    splits,
    survey_pairs,
)
from weft.text.pieces import SPECIALS
from weft.wording import plural

TINY, MIDDLE = 3_000, 500_000  # pairs


class TrainingText(NamedTuple):
    """A training text and its languages."""

    train: Path
    source: str
    target: str
    note: str = ""  # the languages found in the names of two files, or in a table
    valid: Path | None = None
    test: Path | None = None


class TranslateInit(Init):
    """A recipe for parallel text: two files of any names, files with a common prefix, or a table."""

    about: ClassVar[str] = "A translator for parallel text."
    details: ClassVar[str] = (
        "FILES are two text files, aligned line by line; or tables (.csv, .tsv, .xlsx) with one pair in each "
        "row, for training, validation and test. Files with a common prefix are given with --train instead."
        "\n\nValidation and test files with other names: --valid FIRST,SECOND."
    )
    examples: ClassVar = (
        "english.txt croatian.txt --hold-out 500",
        "--train data/train --source en --target de",
        "memory.xlsx --source English --target German --hold-out 500",
    )
    options: ClassVar = (
        Option("files", "", Path, positional=True),
        Option("train", "Training files: PREFIX of PREFIX.en and PREFIX.de, a table, or FIRST,SECOND.", Path),
        Option("source", "Language to translate from: a file ending, a column name or any name."),
        Option(
            "target", "Language to translate into. With two FILES, both languages default to the file names."
        ),
        Option("valid", "Validation files. Default: those next to the training files, if any.", Path),
        Option("test", "Test files. Default: those next to the training files, if any.", Path),
        Option("hold-out", "Number of pairs to split off the training files for validation.", int),
    )
    output: ClassVar[str] = "SOURCE-TARGET.yaml"

    def file_name(self, given: Mapping[str, Any]) -> str:
        """Named after the languages."""
        named = _named(given)
        return re.sub(r"[^\w.-]+", "-", f"{named.source}-{named.target}") + ".yaml"

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        """A recipe for the translator; with --hold-out the training files are split first."""
        train, source, target, note, valid, test = _named(given)
        if note:
            say(note)
        if source == target:
            raise ConfigError(f"--source and --target are both {source!r}; name two languages")
        for path in (train, valid, test):
            if path is not None:
                text = ParallelText(path, source, target)  # raises before any file is written
                for note in text.notes:
                    say(note)
        if given["hold_out"] is not None:
            if valid is not None:
                raise ConfigError(
                    "--hold-out and --valid: expected one of them, got both (each gives validation data); "
                    "leave one out"
                )
            train, valid = hold_out(train, source, target, given["hold_out"])
            ending = "" if is_table(train) else ".*"
            held = plural(given["hold_out"], "pair")
            say(f"split into {train}{ending} and {valid}{ending} ({held} held out)")
        recipe_text = recipe(train, valid, test, source, target)
        if is_table(train):
            known = names_side(source) and names_side(target)  # so the check finds them
            columns = () if known else ("--source", source, "--target", target)
            return NewRecipe(recipe_text, [("data", "check", str(train), *columns)])
        files = dict.fromkeys(map(str, ParallelText(train, source, target).files))
        return NewRecipe(recipe_text, [] if is_memory(train) else [("data", "check", *files)])


def recipe(train: Path, valid: Path | None, test: Path | None, source: str, target: str) -> str:
    """A commented recipe.

    Args:
        train, valid, test: prefixes or tables; if None, the last two are looked for next to the first.
        source, target: languages.

    Raises:
        ConfigError: there are no validation files.
        DataError: files are missing or damaged.
    """
    valid = valid or sibling_pairs(train, VALID_NAMES, source, target)
    test = test or sibling_pairs(train, ("test",), source, target)
    seen, repeated = survey_pairs(train, source, target)
    if valid is None:
        example = train.name.replace("train", "valid") + (
            "" if is_table(train) or is_memory(train) else f".{source}"
        )
        shown = f" (such as {example})" if "train" in train.name and both(train) is None else ""
        raise ConfigError(
            f"no validation files next to {train}{shown}; name them with --valid, or split some "
            f"off with --hold-out {max(1, min(1000, seen.texts // 20))}"
        )
    width, dropout = (256, 0.3) if seen.texts < SMALL else (256, 0.2) if seen.texts < MIDDLE else (512, 0.1)
    epochs = 30 if seen.texts < SMALL else 15 if seen.texts < MIDDLE else 5
    tokens = 2048 if seen.texts > TINY else 512  # per batch
    plan = planned(1.3 * seen.texts * seen.mean / tokens, epochs=epochs, warmup=400)
    return filled(
        "translate",
        {
            "from_language": source,
            "to_language": target,
            "pairs": f"{seen.texts:,}",
            "mean": f"{seen.mean:.0f}",
            "longest": f"{seen.longest:,}",
            "source": quoted(source),
            "target": quoted(target),
            **splits(train, valid, test),
            "meaning": _meaning(train, source, target),
            "pieces": _pieces(seen, repeated),
            "tokens": f"{tokens:<4}",
            "width": width,
            "wide": width * 3 // 2,
            "dropout": dropout,
            "warmup": plan.warmup,
            "epochs": plan.epochs,
        },
    )


def _pieces(seen: Survey, repeated: int) -> int:
    """A size that byte-pair encoding can reach: all characters, and no more than surely become pieces."""
    usual = 4000 if seen.texts < SMALL else 8000 if seen.texts < MIDDLE else 32000
    least = len({mark for word in seen.seen for mark in word}) + len(SPECIALS)
    most = least + repeated if seen.texts < SMALL else usual
    return max(least, min(max(usual, 2 * least), most))


def _meaning(train: Path, source: str, target: str) -> str:
    if is_table(train):
        return f"its columns {source} and {target}"
    if is_memory(train):
        return f"its texts in {source} and {target}"
    if both(train) is not None:
        return f"two files, {source} and {target}, line by line"
    return f"{train.name}.{source} and {train.name}.{target}; or a table"


def _named(given: Mapping[str, Any]) -> TrainingText:
    """The texts and their languages; for two files from their names, for a table from its columns."""
    files, source, target = (given[name] for name in ("files", "source", "target"))
    train, valid, test = (given[name] for name in ("train", "valid", "test"))
    note = ""
    if files and all(map(is_table, files)):
        options: dict[str, Path | None] = {"train": train, "valid": valid, "test": test}
        for name, file in zip(options, files, strict=False):
            if options[name] is not None:
                raise ConfigError(f"--{name} {options[name]} and {file}: expected one of them; leave one out")
            options[name] = file
        (train, valid, test), files = options.values(), files[3:]
    if len(files) > 2 or (files and train is not None) or not (files or train):
        raise ConfigError(
            "expected two FILES, tables, one text, or --train with one; see weft init translate --help"
        )
    if len(files) == 2:
        train = Path(",".join(map(str, files)))
        names = [side_name(str(file)) for file in files]
        if not (source and target):
            note = f"{files[0]} is called {names[0]}, {files[1]} {names[1]}; --source, --target name others"
        source, target = source or names[0], target or names[1]
    elif files:
        train = files[0]
    table = train is not None and is_table(train) and not (source or target)
    if table and (found := sides_of(columns_of(train))) is not None:
        source, target = found
        note = f"{train}: columns {source!r} and {target!r} are read as source and target; --source and "
        note += "--target name others"
    if train is None or not source or not target:
        raise ConfigError("--source and --target: name the languages, as file endings or columns")
    return TrainingText(train, source, target, note, valid, test)
