"""weft predict --document: a file in, the same file in another language out.

Read next: ../documents/files.py.
"""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.commands import outputs
from weft.commands.options import direction_of
from weft.data.magic import check_document, kind_of_file
from weft.errors import ConfigError, DataError
from weft.wording import plural

if TYPE_CHECKING:
    from weft.tasks.task import PredictionSettings

OTHERS = ("file", "nbest", "scores", "plot", "alignments", "split_sentences", "processes", "ray")
"""Options that do not go together with --document."""


def check_options(given: Mapping[str, Any]) -> None:
    """Check the options that go with --document."""
    for name in OTHERS:
        if given[name]:
            option = "FILE" if name == "file" else f"--{name.replace('_', '-')}"
            raise ConfigError(f"--document: cannot be combined with {option}; leave out one of them")
    file: Path = given["document"]
    if not given["output"] and sys.stdout.isatty() and kind_of_file(file) is not None:
        other = shlex.quote(str(file.with_name(f"{file.stem}.translated{file.suffix}")))
        raise ConfigError(
            f"--document {file}: expected --output, since a terminal shows no such file; add --output {other}"
        )


def translate(opened: Any, given: Mapping[str, Any], settings: "PredictionSettings") -> list[str]:
    """Translate the document and write it; the sentences that stay as they are, with reasons."""
    from weft.documents.files import opened as document_of
    from weft.tasks.predictor import Remarks
    from weft.tasks.seq2seq.documents import translated
    from weft.text.sentences import DocumentPlan

    file: Path = given["document"]
    source, target = direction_of(opened, given["source"], given["target"])
    lost: list[str] = []
    document = document_of(_read(file), str(file), source, target, lost)
    plan = DocumentPlan(document.segments, source, target)
    predictor = opened.pipeline.predictor(opened.model, settings)
    wrong: list[str] = []
    found = list(translated(predictor, plan.sentences, wrong))
    data = document.written(plan.joined(found))
    remarks = Remarks()
    for sentence, one in zip(plan.sentences, found, strict=True):
        place = f"{file}: {sentence.text[:60]!r}"
        told = any(one.lost in line for line in lost)  # a catalogue names the lines of its entries itself
        remarks.see(place, lost="" if told else one.lost, lacking=one.lacking, lacked=one.lacked)
    if given["output"]:
        outputs.write_bytes(given["output"], data)
        click.echo(f"{plural(len(plan.sentences), 'sentence')}: {given['output']}", err=True)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    outputs.remarked([*lost, *remarks.lines()], sum(bool(one.lost) for one in found))
    return [f"{file}: {one}" for one in wrong]


def _read(file: Path) -> bytes:
    """The content of a document."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror}); check the name", path=file) from error
    check_document(data, str(file))
    return data
