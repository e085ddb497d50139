"""`weft init translate`: a recipe for a user's parallel text."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from weft.data.files import bare, file_bytes
from weft.data.guess import columns_of, sides_of
from weft.data.languages import SIDES, code_of
from weft.data.pairs import languages
from weft.data.parallel import ParallelText, both, hold_out, is_memory, names_side, pair_columns
from weft.data.several import inside, is_folder
from weft.data.sides import side_name
from weft.data.tables import TableFile, is_table
from weft.errors import ConfigError
from weft.metrics.baseline import nearest
from weft.metrics.bleu import Chrf
from weft.tasks.init import (
    MIDDLE,
    SMALL,
    TEST,
    TINY,
    TRAIN,
    VALID,
    VALID_NAMES,
    Init,
    NewRecipe,
    Option,
    Train,
    as_pairs,
    examples_held_out,
    filled,
    planned,
    quoted,
    sibling_pairs,
    splits,
    survey_pairs,
    vocabulary_size,
)
from weft.wording import plural


class TrainingText(NamedTuple):
    """A training text and its languages."""

    train: Train
    source: str
    target: str
    note: str = ""  # the languages found in the names of two files, or in a table
    valid: Path | None = None
    test: Path | None = None


class TranslateInit(Init):
    """A recipe for parallel text: two files of any names, files with a common prefix, or a table."""

    about: ClassVar[str] = "A translator for parallel text."
    details: ClassVar[str] = (
        "Two text files, aligned line by line, stand for one text, as FIRST,SECOND does. A table (.csv, "
        ".tsv, .xlsx) has a pair in each row, a memory (.tmx, .po, .xliff) in each unit; PREFIX stands for "
        "PREFIX.en and PREFIX.de, a folder for all files in it."
    )
    examples: ClassVar = (
        "english.txt croatian.txt",
        "data/train --source en --target de",
        "memory.xlsx extra.tmx --source English --target German",
    )
    cells: ClassVar = ("source", "target")
    several: ClassVar = True
    options: ClassVar = (
        TRAIN._replace(help="Training files: PREFIX of PREFIX.en and PREFIX.de, a table, or FIRST,SECOND."),
        Option("source", "Language to translate from: a file ending, a column name or any name."),
        Option(
            "target", "Language to translate into. Of two files, both languages default to the file names."
        ),
        VALID._replace(
            help="Validation files. Default: those next to the training files, else pairs held out of them."
        ),
        TEST._replace(help="Test files. Default: those next to the training files, if any."),
        Option(
            "glossary",
            "Table TERM TAB TRANSLATION whose terms the model learns to take as advice; for translating, see "
            "weft predict --glossary.",
            Path,
        ),
        Option(
            "domains",
            "Tag the sources of each training file with its name, for weft predict --domain NAME.",
            bool,
        ),
        Option(
            "split-off", "Number of pairs to write into validation files of their own.", int, old="hold-out"
        ),
    )
    output: ClassVar[str] = "SOURCE-TARGET.yaml"

    def with_files(self, given: Mapping[str, Any], files: Sequence[Path]) -> dict[str, Any]:
        return super().with_files(given, as_pairs(files))

    def file_name(self, given: Mapping[str, Any]) -> str:
        named = _named(given)
        return re.sub(r"[^\w.-]+", "-", f"{named.source}-{named.target}") + ".yaml"

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        if given["glossary"] is not None:
            from weft.tasks.seq2seq.glossary import reread  # loads torch

            reread(given["glossary"])
        train, source, target, note, valid, test = _named(given)
        if given["domains"] and isinstance(train, Path):
            train = inside(train)
        domains = _domains(train) if given["domains"] else None
        if note:
            say(note)
        if source == target:
            raise ConfigError(f"--source and --target are both {source!r}; name two languages")
        for path in (train, valid, test):
            if path is not None:
                text = ParallelText(path, source, target)  # raises before any file is written
                for note in [*text.notes, *text.repeats()]:
                    say(note)
        if given["split_off"] is not None:
            if valid is not None:
                raise ConfigError(
                    "--split-off and --valid: expected one of them, got both (each gives validation data); "
                    "leave one out"
                )
            if not isinstance(train, Path):
                raise ConfigError(
                    "--split-off: expected one training file, got several; leave it out, as the recipe holds "
                    "pairs out of them"
                )
            train, valid = hold_out(train, source, target, given["split_off"])
            ending = "" if is_table(train) else ".*"
            held = plural(given["split_off"], "pair")
            say(f"split into {train}{ending} and {valid}{ending} ({held} held out)")
        recipe_text = recipe(train, valid, test, source, target, given["glossary"], domains)
        for note in _to_beat(train, valid, source, target):
            say(note)
        if not isinstance(train, Path):
            files = ParallelText(train, source, target).files
            return NewRecipe(recipe_text, [("data", "check", *map(str, files))])
        if is_table(train):
            known = names_side(source) and names_side(target)  # so the check finds them
            columns = () if known else ("--source", source, "--target", target)
            return NewRecipe(recipe_text, [("data", "check", str(train), *columns)])
        sides = dict.fromkeys(map(str, ParallelText(train, source, target).files))
        return NewRecipe(recipe_text, [] if is_memory(train) else [("data", "check", *sides)])


def recipe(
    train: Train,
    valid: Path | None,
    test: Path | None,
    source: str,
    target: str,
    glossary: Path | None = None,
    domains: str | None = None,
) -> str:
    """A commented recipe; `domains` is the value of its setting."""
    valid = valid or sibling_pairs(train, VALID_NAMES, source, target)
    test = test or sibling_pairs(train, ("test",), source, target)
    seen, repeated = survey_pairs(train, source, target)
    width, dropout = (256, 0.3) if seen.texts < SMALL else (256, 0.2) if seen.texts < MIDDLE else (512, 0.1)
    epochs = 30 if seen.texts < SMALL else 15 if seen.texts < MIDDLE else 5
    tokens = 2048 if seen.texts > TINY else 512  # per batch
    pieces = vocabulary_size(seen, repeated)
    return filled(
        "translate",
        {
            "from_language": source,
            "to_language": target,
            "pairs": f"{seen.texts:,}",
            "mean": seen.counted(seen.mean),
            "longest": f"{seen.longest:,}",
            "quick": _quick(train, valid, source, target, examples_held_out(seen.texts), pieces),
            "source": quoted(source),
            "target": quoted(target),
            **splits(train, valid, test),
            "glossary": glossary,
            "domains": domains,
            "every": examples_held_out(seen.texts),
            "meaning": _meaning(train, source, target),
            "pieces": pieces,
            "tokens": f"{tokens:<4}",
            "width": width,
            "wide": width * 3 // 2,
            "dropout": dropout,
            **planned(1.3 * seen.texts * seen.mean / tokens, epochs=epochs, warmup=400)._asdict(),
        },
    )


DEMO_PIECES = 4000
"""Size of the vocabulary of the recipe help-demo."""


def _quick(train: Train, valid: Path | None, source: str, target: str, every: int, pieces: int) -> str:
    """The command that trains the demo's model on this text, which takes minutes."""
    listed = quoted(train) if isinstance(train, Path) else f"[{', '.join(map(quoted, train))}]"
    held = f"hold_out={every}" if valid is None else f"valid={quoted(valid)}"
    settings = (
        "corpus=null",
        f"source={quoted(source)}",
        f"target={quoted(target)}",
        f"train={listed}",
        held,
        *([f"vocabulary.size={pieces}"] if pieces < DEMO_PIECES else []),
    )
    return shlex.join(["weft", "train", "help-demo", *(f"data.{one}" for one in settings)])


MOST_COMPARED = 20_000
"""Pairs up to which finding the nearest takes seconds."""

FEW_PAIRS = 1000
"""Training pairs below which a new model learns little; with 300 sentences of help it had BLEU 1.2."""


def _to_beat(train: Train, valid: Path | None, source: str, target: str) -> list[str]:
    """The score of the nearest training sentence's translation, which a model has to beat; of few pairs."""
    pairs = list(islice(ParallelText(train, source, target, complete=True), MOST_COMPARED + 1))
    if len(pairs) > MOST_COMPARED:
        return []
    every = examples_held_out(len(pairs))
    valid = valid or sibling_pairs(train, VALID_NAMES, source, target)
    if valid is None:
        held = [*ParallelText(train, source, target, complete=True, hold_out=every, held=True)]
        pairs = [*ParallelText(train, source, target, complete=True, hold_out=every)]
    else:
        held = [*islice(ParallelText(valid, source, target, complete=True), MOST_COMPARED // 20)]
    if not (pairs and held):
        return []
    _, known, translations = zip(*pairs, strict=True)
    _, sources, references = zip(*held, strict=True)
    score = Chrf().score(nearest(known, translations, sources), references).value
    few = plural(len(pairs), "training pair")
    notes = [
        f"the translation of the nearest of {few} has chrF2 {score:.1f} on {plural(len(held), 'pair')} kept "
        "for validation: a model has to be better to be of use"
    ]
    if len(pairs) < FEW_PAIRS:
        notes.append(
            f"{few} are few: a model learns little from them beyond sentences nearly alike; more pairs "
            "help most, then a model that was trained elsewhere (weft import, training.start) and a glossary"
        )
    return notes


def _domains(train: Train) -> str:
    """The domains of training files, called after these."""
    assert not isinstance(train, Path)
    if len(train) < 2:
        raise ConfigError(
            f"--domains: expected two training files or more, got {len(train) or 1}; leave it out"
        )
    names = {quoted(file): re.sub(r"[^\w-]+", "-", bare(file).stem).strip("-") for file in train}
    return f"{{{', '.join(f'{file}: {quoted(name)}' for file, name in names.items())}}}"


def _meaning(train: Train, source: str, target: str) -> str:
    if not isinstance(train, Path):
        return f"their pairs in {source} and {target}; data.mixed weighs files"
    if is_folder(train):
        return f"all files in it, {source} and {target}"
    if is_table(train):
        table = TableFile(train)
        named = pair_columns(table, source, target).header or len(table.names()) > 2
        return f"its columns {source} and {target}" if named else "its two columns"
    if is_memory(train):
        return f"its texts in {source} and {target}"
    if both(train) is not None:
        return f"two files, {source} and {target}, line by line"
    return f"{train.name}.{source} and {train.name}.{target}; or a table"


def _languages(file: Path) -> tuple[str, str] | None:
    """The languages that a memory or the columns of a table name."""
    if is_memory(file):
        named = languages(file_bytes(file), str(bare(file)))
        return None if {*named} & {*SIDES} else named
    found = sides_of(columns_of(file)) if is_table(file) else None
    codes = [code_of(name) or name for name in found or ()]
    return (codes[0], codes[1]) if codes else None


def _named(given: Mapping[str, Any]) -> TrainingText:
    """The texts and their languages; for two files from their names, for a table from its columns."""
    train, valid, test, source, target = (
        given[name] for name in ("train", "valid", "test", "source", "target")
    )
    note = ""
    several = [train] if isinstance(train, Path) and is_memory(train) else train
    if not isinstance(several, Path):
        if not (source and target) and (named := next(filter(None, map(_languages, several)), None)):
            source, target = source or named[0], target or named[1]
            note = f"read as {source} to {target}; --source and --target name others"
    elif (two := both(train)) is not None:
        names = [side_name(str(file)) for file in two]
        if not (source and target):
            note = f"{two[0]} is called {names[0]}, {two[1]} {names[1]}; --source, --target name others"
        source, target = source or names[0], target or names[1]
    table = isinstance(several, Path) and is_table(train) and not (source or target)
    if table and (found := sides_of(columns_of(train))) is not None:
        source, target = found
        note = f"{train}: columns {source!r} and {target!r} are read as source and target; --source and "
        note += "--target name others"
    if not source or not target:
        why = f"{train} has no header that names its two columns; " if table else ""
        raise ConfigError(
            f"--source and --target: {why}name the languages, as file endings or columns, such as "
            "--source en --target es" + ", or by number, such as --source 1 --target 2" * table
        )
    return TrainingText(train, source, target, note, valid, test)
