"""`weft init classify`: a recipe for a user's labelled texts."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from weft.data.several import repeats
from weft.errors import ConfigError, DataError
from weft.tasks.init import (
    START,
    TEST,
    TRAIN,
    VALID,
    ModelCandidate,
    NewRecipe,
    Option,
    Survey,
    TemplateInit,
    Trial,
    each,
    files_of,
    only,
    planned,
    quoted,
    splits,
    started,
    survey,
)
from weft.wording import plural

if TYPE_CHECKING:
    from weft.data.labelled import LabelledText

TRIAL = Trial(
    (
        ModelCandidate("linear", "a linear model of words, pairs of words and pieces of words"),
        ModelCandidate("vectors", "the same, and the mean vector of the words", needs="vectors"),
        ModelCandidate("network", "a GRU with attention", updates=1500),
    ),
    untried="linear",
    fewest=250,
    unit="text",
    most=500_000,
    part="word",
)

FORM = (
    Option(
        "text",
        "Column of a table that holds the text (repeatable: several are joined). Default: guessed, and "
        "printed.",
        multiple=True,
    ),
    Option("label", "Column of a table that holds the class. Default: guessed, and printed."),
    Option(
        "labels",
        "How a line names its class: __label__CLASS (marked), its first word (first), or its first word up "
        "to the colon (coarse).",
        choices=("marked", "first", "coarse"),
        default="marked",
    ),
    Option("separator", 'Separator between the labels of a text (several or none), such as "|".'),
    Option("encoding", "Encoding of the files, such as latin-1.", default="utf-8"),
)
"""Options that say how the files are read."""


BATCH = 1000
"""Words of a batch in a training that starts with another run."""

USUAL = {"text": "text", "label": "label", "labels": "marked", "separator": None, "encoding": "utf-8"}
"""Defaults of the options; other values become part of the command that checks the files."""


class ClassifyInit(TemplateInit):
    """Reads labelled texts, lines or a table."""

    about: ClassVar[str] = "A classifier for texts."
    examples: ClassVar = (
        "reviews.tsv --label stars",
        "train_5500.label --labels coarse --encoding latin-1",
    )
    cells: ClassVar = ("text", "label")
    several: ClassVar = True
    options: ClassVar = (
        TRAIN._replace(help="Training file: lines __label__CLASS TEXT, or a table (.csv, .tsv, .xlsx)."),
        VALID,
        TEST,
        *FORM,
        *TRIAL.options(),
        Option(
            "vectors",
            "Word vectors of your unlabelled texts: a run of weft init embeddings, or a file. The trial "
            "keeps them only if they are better.",
            Path,
        ),
        START,
    )
    trial: ClassVar = TRIAL

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        from weft.tasks.classify.data import columns  # loads torch

        found = columns(each(given["train"])[0], given["text"], given["label"], given["encoding"])
        if found.note:
            say(found.note)
        given = {**given, "text": found.text, "label": found.label}
        said = []
        for name, value in _unusual(given).items():
            for one in value if isinstance(value, list) else [value]:
                said += [f"--{name}", one]
        return super().write(given, say)._replace(steps=[(*self.check(given["train"]), *said)])

    def values(self, given: Mapping[str, Any], say: Callable[[str], None]) -> Mapping[str, object]:
        from weft.data.labelled import OPTIONS, LabelledText, text_columns  # loads torch
        from weft.tasks.classify.data import MORE
        from weft.tasks.labels.splits import held_out, thinly_held_out, thinly_scored

        train, valid, test = files_of(given)
        if given["vectors"] is not None and not given["vectors"].exists():
            raise ConfigError(f"--vectors {given['vectors']}: no such run or file; correct the name")
        form: dict[str, Any] = {name: given[name] for name in ("text", "label", "labels", "encoding")}
        separator: str | None = given["separator"]
        several = separator is not None
        form |= {"named": OPTIONS, "unlabelled": several, "separator": separator}
        texts = [LabelledText(file, **form) for file in each(train)]
        notes = [note for text in texts if text.table for note in text.table.notes]
        again = repeats((str(text.path), (one[1:3] for one in text)) for text in texts) if texts[1:] else []
        for note in [*notes, *again]:
            say(note)
        seen, classes = _classes(texts, separator)
        few = given["model"] != "network" and not given["start"]
        names = [f"{name} {count:,}" for name, count in classes.most_common(6)]
        table = texts[0].table is not None
        columns = [quoted(column) for column in text_columns(form["text"])]
        every = None if valid else held_out(seen.texts)
        if valid is not None:
            kept = _classes([LabelledText(valid, **form)], separator)[1]
            thin = thinly_scored(classes, kept, f"add texts to {valid.name}")
        else:
            thin = thinly_held_out(classes, held_out(seen.texts), MORE)
        if thin and not several:
            say(thin)
        unusual = _unusual(given)
        return {
            **planned(seen.words / BATCH, epochs=12, warmup=100)._asdict(),
            "examples": seen.texts,
            "parts": seen.words,
            "counted": f"{plural(len(classes), 'class')}, {plural(seen.texts, 'training text')}",
            "mean": seen.counted(seen.mean),
            "longest": f"{seen.longest:,}",
            "classes": ", ".join([*names, "..."] if len(classes) > 6 else names),
            **splits(train, valid, test),
            "text": (columns[0] if len(columns) == 1 else f"[{', '.join(columns)}]") if table else None,
            "label": quoted(form["label"]) if table else None,
            "labels": unusual.get("labels"),
            "separator": None if separator is None else quoted(separator),
            "encoding": unusual.get("encoding"),
            "every": f"{every:<2}" if every else None,
            "kept": plural(seen.texts // every, "text") if every else None,
            "chosen": "penalty" if few else "checkpoint",
            "by": "what `weft tune` improves" if few else "what chooses the best checkpoint",
            "size": None if given["start"] else "null" if few else 20000,
            "few": only(few),
            "vectors": given["vectors"] if given["model"] == "vectors" else None,
            "unequal": only(few and not several and max(classes.values()) > 1.1 * min(classes.values())),
            "many": only(not few and not given["start"]),
            **started(given),
            "metric": "loss" if few else "accuracy",
            "refit": "true" if every and not several else "false",  # several labels have thresholds to fit
        }


def _unusual(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name, value in USUAL.items() if given[name] != value}


def _classes(texts: "Sequence[LabelledText]", separator: str | None) -> tuple[Survey, Counter[str]]:
    from weft.tasks.classify.data import names_of  # loads torch

    counts: Counter[str] = Counter()

    def counted() -> Iterator[tuple[str]]:
        for one in chain.from_iterable(texts):
            counts.update(names_of(one.label, separator))
            yield (one.text,)

    seen = survey(counted(), most=0)
    if len(counts) < (2 if separator is None else 1):
        raise DataError(
            f"expected at least 2 classes, got {len(counts)}; see weft data check", path=texts[0].path
        )
    return seen, counts
