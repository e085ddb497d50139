"""The contract of `weft init <task>`: its options, the recipe that it writes, what it finds out about files.

A task that supports it has one such class in the file init.py of its folder, and weft/commands/init.py builds
the command; a task of a plugin returns it from `Task.init`. The recipe is a template,
recipes/templates/<task>.yaml, which `filled` fills with numbers and names. Heavy imports belong in `write`,
as listing the commands also loads the class.
Read next: tag/init.py, a short one.
"""

import json
import math
import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from glob import escape
from pathlib import Path
from string import Template
from typing import Any, ClassVar, Literal, NamedTuple

from weft.data.parallel import ParallelText, both, is_memory
from weft.data.plain import PlainText, no_words
from weft.data.several import each_file, parts_by_name
from weft.data.tables import is_table
from weft.errors import ConfigError, DataError
from weft.store.files import recipes_folder
from weft.text.characters import normalise
from weft.text.pieces import SPECIALS, count_parts, count_words
from weft.wording import plural
from weft.words import unit_of, units


class Option(NamedTuple):
    """An option of the command line, as plain data."""

    name: str  # as typed, without the dashes: hold-out; its key in `given` is hold_out
    help: str
    type: type = str  # str, int or Path; bool is a flag
    required: bool = False
    multiple: bool = False  # repeatable; the value is a tuple
    default: Any = None
    choices: Sequence[str] = ()
    old: str = ""  # an earlier name, which is still read


TRAIN = Option("train", "Training file.", Path)
VALID = Option("valid", "Validation file. Default: the one next to the training file, if any.", Path)
TEST = Option("test", "Test file. Default: the one next to the training file, if any.", Path)

START = Option(
    "start",
    "Run whose encoder and vocabulary the model starts with: of a masked or language model, a translator, or "
    "a checkpoint that weft import has read. Written without a trial.",
    Path,
)


class ModelCandidate(NamedTuple):
    """A model that `weft init` may try, a value of its option --model."""

    name: str
    about: str  # "a linear model of words and pairs of words"
    updates: int = 0  # most updates in a trial; 0 for those of its recipe
    needs: str = ""  # an option without which it is not tried


class Trial(NamedTuple):
    """What `weft init` of a task tries before it writes a recipe."""

    candidates: Sequence[ModelCandidate]  # the simplest first; another one is kept only if proven better
    untried: str  # the one that is written without a trial
    fewest: int  # training examples that a trial needs, to prove anything
    unit: str  # what they are, such as "text"
    most: int  # words or values that it reads in a short time
    part: str  # what these are, such as "word"
    meant: str = ""  # what a unit is, where its name does not say it

    def options(self, *others: ModelCandidate) -> tuple[Option, Option]:
        """Those of the command line; `others` are models that are only written if asked for."""
        known = [*self.candidates, *others]
        listed = ", ".join(f"{one.name} ({one.about})" for one in known)
        names = [one.name for one in known]
        asked = f"Write this model without a trial: {listed}. Default: the better one of a trial."
        untried = f"Write the model {self.untried} without a trial."
        return Option("model", asked, choices=names), Option("no-trial", untried, bool)

    def asked(self, given: Mapping[str, Any]) -> "Trial":
        """The same without candidates whose option is not given.

        Raises:
            ConfigError: an option and the model that reads it are not asked for together.
        """
        model, untried = given["model"], given["no_trial"] or given.get("start")
        for name, needs in ((one.name, one.needs) for one in self.candidates if one.needs):
            if model == name and given[needs] is None:
                raise ConfigError(f"--model {name}: expected --{needs}, got none; add it")
            if given[needs] is not None and (untried or model not in (None, name)):
                raise ConfigError(f"--{needs}: is read by a trial and by --model {name} alone; leave it out")
        kept = [one for one in self.candidates if not one.needs or given[one.needs] is not None]
        return self._replace(candidates=kept)

    def refusal(self, new: "NewRecipe") -> str:
        """Why no trial is made; empty if one is."""
        if new.examples < self.fewest:
            bound = f"fewer than {plural(self.fewest, self.unit)}{self.meant and f' ({self.meant})'}"
        elif new.parts > self.most:
            bound = f"more than {plural(self.most, self.part)}"
        else:
            return ""
        others = " or ".join(one.name for one in self.candidates if one.name != self.untried)
        return (
            f"with {bound}, no models are tried: the recipe is for {self.untried}; try --model {others} too"
        )


Train = Path | Sequence[Path]
"""Training files: one, or several."""

FILES = ("train", "valid", "test")
"""Options that files without a name stand for, in this order."""

_WORDS = ("null", "true", "false")  # YAML 1.2 does not read these as text


def filled(name: str, values: Mapping[str, object]) -> str:
    """The recipe that a template becomes.

    A line with a value that is None is left out, such as one whose end is `$few`; see `only`.
    """
    lines = []
    texts = {name: quoted(value) if isinstance(value, Path) else value for name, value in values.items()}
    for line in (recipes_folder() / "templates" / f"{name}.yaml").read_text("utf-8").splitlines():
        if all(texts[name] is not None for name in Template(line).get_identifiers()):
            lines.append(Template(line).substitute(texts))
    return "\n".join(lines) + "\n"


def only(condition: object) -> str | None:
    """The value at the end of a line of a template that is left out unless the condition holds."""
    return "" if condition else None


def splits(train: Train, valid: Path | None, test: Path | None) -> dict[str, object]:
    """The values of a template about its files: `$train`, `$valid` or `$held_out`, `$test` or `$untested`."""
    held_out, untested = only(not valid), only(not test)
    named = train if isinstance(train, Path) else f"[{', '.join(map(quoted, train))}]"
    return {"train": named, "valid": valid, "held_out": held_out, "test": test, "untested": untested}


def quoted(value: object) -> str:
    """A text as YAML, in quotes unless it is safe without."""
    text = str(value)
    plain = re.fullmatch(r"[A-Za-z_/][\w./-]*", text, re.ASCII) and text.lower() not in _WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)


class NewRecipe(NamedTuple):
    """The result of `weft init`."""

    recipe: str
    steps: Sequence[Sequence[str]] = ()  # weft commands to run before `weft train`, as words
    examples: int = 0  # training examples and their parts, as `Trial` counts them
    parts: int = 0
    run: Path | None = None  # of a trial that trained this recipe to its end


class Init(ABC):
    """The options of `weft init` for one task, and the recipe made from them.

    `task` is the task as recipes name it; "" is the name of the class's folder.
    """

    about: ClassVar[str]  # a phrase for the list of commands: "A tagger for words in sentences."
    details: ClassVar[str] = ""
    examples: ClassVar[Sequence[str]] = ()  # of arguments, without `weft init <task>`
    options: ClassVar[Sequence[Option]]
    output: ClassVar[str] = ""  # default name of the recipe; if empty, <task>.yaml
    cells: ClassVar[Sequence[str]] = ()  # options that name the columns of tuples in Python (weft.fit)
    several: ClassVar[bool] = False  # whether the training data may be several files, a list then
    trial: ClassVar[Trial | None] = None  # the models that are tried first; None for a task with one
    reads: ClassVar[Literal["table", "texts", "sentences"]] = "table"  # what a table of Python may hold
    lists_files: ClassVar[bool] = False  # whether such a table names files, also of the working folder

    def __init__(self, task: str = "") -> None:
        self.folder = type(self).__module__.split(".")[-2]
        self.task = task or self.folder

    @property
    def files(self) -> list[str]:
        """Names of the options that files without a name stand for, in this order."""
        return [name for name in FILES if name in {one.name for one in self.options}]

    def with_files(self, given: Mapping[str, Any], files: Sequence[Path]) -> dict[str, Any]:
        """The options, with files that were named without an option."""
        names = self.files
        said = dict(given)
        parts = parts_by_name(files) if self.several and given["train"] is None and len(files) > 1 else None
        named: Sequence[Path | Sequence[Path] | None] = files
        if parts is not None:
            train, *held = parts
            named = [train if len(train) > 1 else train[0], *held]
        elif files and not names:
            raise ConfigError(f"{files[0]}: expected no FILES, as the examples of {self.task} are generated")
        elif len(files) > len(names):
            raise ConfigError(
                f"expected at most {len(names)} FILES ({', '.join(names)}), got {len(files)}; leave some out"
            )
        for name, file in zip(names, named, strict=False):
            if file is not None and said[name] is not None:
                raise ConfigError(f"--{name} {said[name]} and {file}: expected one of them; leave one out")
            said[name] = file or said[name]
        if names and said[names[0]] is None:
            raise ConfigError(f"expected a training file, got none; name it, or give it with --{names[0]}")
        return said

    def file_name(self, given: Mapping[str, Any]) -> str:
        """The default name of the recipe."""
        return self.output or f"{self.folder}.yaml"

    @abstractmethod
    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        """Read the user's files and write a commented recipe for them; options not given are None."""

    def check(self, *words: object) -> tuple[str, ...]:
        """The command that checks these files, with these options, as files of this task."""
        listed = [one for word in words for one in (word if isinstance(word, list) else [word])]
        return ("data", "check", *map(str, listed), "--task", self.task, *self.plugin())

    def plugin(self) -> tuple[str, ...]:
        """The arguments that name a plugin's package; empty for a task of Weft."""
        package = type(self).__module__.partition(".")[0]
        return () if package == "weft" else ("--plugin", package)


class TemplateInit(Init):
    """A recipe that is the template recipes/templates/TASK.yaml, filled with numbers and names."""

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        """Fill the template; the training file is checked before `weft train`."""
        values = self.values(given, say)
        counts = (values.get(name, 0) for name in ("examples", "parts"))  # of a task with a trial
        examples, parts = (one if isinstance(one, int) else 0 for one in counts)
        return NewRecipe(filled(self.folder, values), [self.check(given["train"])], examples, parts)

    @abstractmethod
    def values(self, given: Mapping[str, Any], say: Callable[[str], None]) -> Mapping[str, object]:
        """Read the user's files once, and choose the values of the template's placeholders."""


TINY, SMALL, MIDDLE = 3_000, 50_000, 500_000
"""Pairs below which a set of parallel text is of this size."""

VALID_NAMES = ("valid", "val", "dev", "validation")
UPDATES = 600
"""Minimum number of updates of a training."""

EPOCHS = 60
"""Maximum number of epochs to reach UPDATES."""


class Survey(NamedTuple):
    """Properties of the texts of a task."""

    texts: int
    words: int  # of a pair, those of the longer side; in scripts without spaces, signs
    longest: int
    characters: int  # with the ends of lines
    seen: Counter[str]  # how often each word occurs, in the first `most` texts
    units: Sequence[str] = ("word",)  # of `words`: word, character, or both if the sides of pairs differ

    def counted(self, number: float) -> str:
        """A number of words or characters with its unit."""
        first, *other = self.units
        return " or ".join([plural(round(number), first), *(f"{one}s" for one in other)])

    @property
    def mean(self) -> float:
        """Words of a text on average."""
        return self.words / max(1, self.texts)

    @property
    def repeated(self) -> int:
        """Number of words that occur twice or more."""
        return sum(count > 1 for count in self.seen.values())


def survey(
    texts: Iterable[tuple[str, ...]],
    *,
    cut: Callable[[str], Iterable[str] | Mapping[str, int]] = units,
    most: float = math.inf,
) -> Survey:
    """Read all texts once."""
    count = words = longest = characters = 0
    seen: Counter[str] = Counter()
    shown: dict[tuple[int, int], list[str]] = defaultdict(list)  # texts of each side
    for sides in texts:
        length = max(len(units(side)) for side in sides)
        if count < 1000 or count % 1000 == 0:
            for place, side in enumerate(sides):
                shown[len(sides), place].append(side)
        count, words, longest = count + 1, words + length, max(longest, length)
        characters += sum(len(side) + 1 for side in sides)
        if count <= most:
            for side in sides:
                seen.update(cut(side))
    kinds = sorted({unit_of(side) for side in shown.values()}, reverse=True)
    return Survey(count, words, longest, characters, seen, kinds or ["word"])


def survey_pairs(train: Train, source: str, target: str) -> tuple[Survey, int]:
    """Properties of parallel text, and how many parts of words occur twice or more.

    The words, cut at punctuation, are those of the first SMALL pairs; a part has two characters or more.
    """
    return survey_sides(((one, other) for _, one, other in ParallelText(train, source, target)), train)


def survey_sides(texts: Iterable[tuple[str, ...]], train: Train) -> tuple[Survey, int]:
    """Properties of texts with any number of sides; see `survey_pairs`."""
    path = train if isinstance(train, Path) else train[0]
    seen = survey(texts, cut=lambda text: count_words([normalise(text)])[0], most=SMALL)
    if not seen.texts:
        raise DataError("expected at least a few thousand pairs, got none", path=path)
    parts = count_parts(seen.seen, "bpe").items()
    return seen, sum(count > 1 and len(part) > 1 for part, count in parts)


def started(given: Mapping[str, Any]) -> dict[str, object]:
    """The values of a template about `--start`: `$start`, the run, and `$started`."""
    start = given["start"]
    if start is not None and given["model"] is not None:
        raise ConfigError(f"--model {given['model']}: --start {start} gives the model; leave one of them out")
    return {"start": start, "started": only(start)}


def examples_held_out(examples: int) -> int:
    """The `data.hold_out` of so many examples: a twentieth, at most about a thousand of them."""
    return max(20, examples // 1000)


def vocabulary_size(seen: Survey, repeated: int) -> int:
    """A size that byte-pair encoding can reach: all characters, and no more than surely become pieces."""
    usual = 4000 if seen.texts < SMALL else 8000 if seen.texts < MIDDLE else 32000
    least = len({mark for word in seen.seen for mark in word}) + len(SPECIALS)
    most = least + repeated if seen.texts < SMALL else usual
    return max(least, min(max(usual, 2 * least), most))


class TrainingLength(NamedTuple):
    """The length of a training, as values of a template."""

    epochs: int
    warmup: int  # updates, at most a tenth of all


def planned(batches: float, *, epochs: int, warmup: int) -> TrainingLength:
    """More epochs if the usual number gives too few updates, and a short warm-up."""
    batches = max(1.0, batches)
    epochs = max(epochs, min(EPOCHS, math.ceil(UPDATES / batches)))
    return TrainingLength(epochs, max(1, min(warmup, int(batches * epochs / 10))))


def as_pairs(files: Sequence[Path]) -> Sequence[Path]:
    """Parallel texts as they are named in recipes: two files in turn are the two sides of a text.

    A table, a translation memory and the beginning of two names are a whole text.
    """
    if len(files) % 2 or any(is_table(file) or is_memory(file) or _begins(file) for file in files):
        return files
    return [Path(f"{first},{second}") for first, second in zip(files[::2], files[1::2], strict=True)]


def _begins(path: Path) -> bool:
    return not path.is_file() and any(path.parent.glob(f"{escape(path.name)}.*"))


def sibling(train: Train, names: tuple[str, ...]) -> Path | None:
    """A file named like the training file, but valid (val, dev) or test instead of train."""
    for name in names if isinstance(train, Path) else ():
        assert isinstance(train, Path)
        candidate = train.with_name(train.name.replace("train", name))
        if candidate != train and candidate.is_file():
            return candidate
    return None


def each(train: Train) -> list[Path]:
    """The training files one by one."""
    return [train] if isinstance(train, Path) else each_file([*map(str, train)])


def files_of(given: Mapping[str, Any]) -> tuple[Any, Path | None, Path | None]:
    """The files for training, validation and test: as given, or found next to the training file."""
    train: Train = given["train"]
    return train, given["valid"] or sibling(train, VALID_NAMES), given["test"] or sibling(train, ("test",))


def sibling_pairs(train: Train, names: tuple[str, ...], source: str, target: str) -> Path | None:
    """Files of parallel text named like the training files, but valid (val, dev) or test instead of train."""
    if not isinstance(train, Path):
        return None
    parts = both(train) or (train,)
    for name in names:
        renamed = [part.with_name(part.name.replace("train", name)) for part in parts]
        if renamed == list(parts):
            continue
        candidate = Path(",".join(map(str, renamed)))
        try:
            ParallelText(candidate, source, target)
            return candidate
        except DataError:
            continue
    return None


FEWEST = 10
"""Lines of a text without validation text."""

MANY = 100_000
"""Words of a text whose rare words are left out."""


class ContextInit(TemplateInit):
    """A recipe for a text, a line at a time."""

    examples: ClassVar = ("text.txt",)
    options: ClassVar = (TRAIN._replace(help="Training text; may be compressed."), VALID, TEST)
    reads: ClassVar = "texts"
    epochs: ClassVar[int]

    def values(self, given: Mapping[str, Any], say: Callable[[str], None]) -> Mapping[str, object]:
        train, valid, test = files_of(given)
        seen = survey((line,) for line in PlainText(train))
        if not seen.words:
            raise no_words(train)
        if valid is None and seen.texts < FEWEST:
            why = f"expected {FEWEST} lines or more, got {seen.texts}; add text, or --valid"
            raise DataError(why, path=train)
        return {
            "name": train.name,
            "counted": plural(seen.texts, "line"),
            "words": seen.counted(seen.words),
            "different": f"{len(seen.seen):,}",
            **splits(train, valid, test),
            "least": 3 if seen.words >= MANY else 1,
            **planned(seen.words / 1000, epochs=self.epochs, warmup=100)._asdict(),
        }
