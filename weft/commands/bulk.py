"""weft predict --output: answer large files with several processes, and resume after a kill.

The input is cut into chunks of lines. Each of N processes answers every N-th chunk and writes its answers
atomically as one file into the directory OUT.parts next to the output; at the end the files are joined in
order. Chunks that were answered before a kill are kept, if their lines are still the same: the name of the
file has their digest. Read next: predict.py; ray_job.py, the same on a cluster.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from weft.commands.options import given_one
from weft.errors import ConfigError, DataError
from weft.store import files, jsonfile
from weft.store.digests import named_files
from weft.wording import plural

if TYPE_CHECKING:
    from weft.run import LoadedRun
    from weft.tasks.task import PredictionSettings

CHUNK = 512  # lines per chunk
WRONG = ".wrong"
"""Suffix of the file that lists the lines of a chunk without an answer, with reasons."""

REMARKS = ".remarks"
"""Suffix of the file of what the answers of a chunk lack of their lines (`Remarks`)."""


class ChunkAnswers(NamedTuple):
    """The answers to a chunk of lines."""

    texts: list[str]
    wrong: list[str]  # place and reason of each line without an answer
    remarks: str = ""  # from Remarks.as_json


class JoinedOutput(NamedTuple):
    """What is known of an output after its chunks were written one after the other."""

    lines: int  # number of input lines
    wrong: list[str]
    remarks: Sequence[str] = ()
    named: int = 0
    """Answers of which the remarks say what is wrong."""


class Chunk(NamedTuple):
    """A numbered block of input lines."""

    number: int
    lines: list[str | DataError]  # an error for a line that is not UTF-8

    @property
    def name(self) -> str:
        """The name of the file of its answers."""
        text = "\n".join(line.why if isinstance(line, DataError) else line for line in self.lines)
        return f"{self.number:09}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def predict(opened: "LoadedRun", settings: "PredictionSettings", given: Mapping[str, Any]) -> None:
    """Answer this process's chunks that have no answers yet."""
    parts, file = begin(opened, given), given["file"]
    count, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    done = 0
    for part in pending(parts, file):
        if part.number % count == rank:
            write(parts, part, *answer(opened, part, settings, file))
            done += len(part.lines)
    click.echo(
        f"{plural(done, 'line')} answered" + (f" by process {rank} of {count}" if count > 1 else ""), err=True
    )


def begin(opened: Any, given: Mapping[str, Any]) -> Path:
    """Create the directory of answered chunks, or check that it is of the same command; returns its path."""
    parts, about = parts_of(given["output"]), _about(opened, given)
    known, remedy = parts / "command.json", "remove it, or choose another --output"
    if files.claim(parts, known.name, "answers", "move what is in it, or choose another --output"):
        then = jsonfile.load(known, dict[str, Any], remedy)
    else:
        with files.refusals(parts, remedy):
            files.replace(known, files.to_json(about))
        then = about
    differs = sorted(key for key in {**about, **then} if then.get(key) != about.get(key))
    if differs:
        raise ConfigError(
            f"{parts}: has chunks of a command with different {', '.join(differs)}; remove it to start "
            "over, or choose another --output"
        )
    return parts


def pending(parts: Path, file: Path) -> Iterator[Chunk]:
    """The chunks without answers."""
    before = {one.name[:9] for one in parts.iterdir() if not one.suffix}
    changed = 0
    for part in chunks(file):
        if not (parts / part.name).exists():
            changed += part.name[:9] in before
            yield part
    if changed:
        click.echo(f"answered again, since their lines have changed: {plural(changed, 'chunk')}", err=True)


def answer(opened: "LoadedRun", part: Chunk, settings: "PredictionSettings", file: Path) -> ChunkAnswers:
    """Answer a chunk with a predictor of its own, so that samples do not depend on other chunks."""
    from weft.tasks.predictor import Place, Remarks, answered

    predictor = opened.pipeline.predictor(opened.model, settings)
    first = part.number * CHUNK + 1
    given = (predictor.given(line, Place(str(file), number)) for number, line in enumerate(part.lines, first))
    remarks = Remarks()
    answers = list(answered(predictor, given, remarks=remarks))
    wrong = [answer.wrong for answer in answers if answer.wrong]
    return ChunkAnswers([answer.text() for answer in answers], wrong, remarks.as_json())


def write(parts: Path, part: Chunk, answers: Iterable[str], wrong: Iterable[str], remarks: str = "") -> None:
    """Write the answers to a chunk atomically, after the reasons for missing answers and the remarks."""
    place = parts / part.name
    with files.refusals(place, files.AGAIN):
        reasons = "".join(f"{one}\n" for one in wrong)
        if reasons:
            files.replace(place.with_suffix(WRONG), reasons.encode("utf-8", "replace"))
        if remarks:
            files.replace(place.with_suffix(REMARKS), remarks.encode())
        files.replace(place, "".join(f"{answer}\n" for answer in answers).encode("utf-8", "replace"))


def join(file: Path, output: Path) -> JoinedOutput:
    """Join the answered chunks in the order of the input, and remove them."""
    from weft.tasks.predictor import Remarks

    parts, lines, wrong, remarks = parts_of(output), 0, list[str](), Remarks()
    with files.refusals(output, files.AGAIN), files.replacing(output) as joined:
        for part in chunks(file):
            place = parts / part.name
            if not place.exists():
                raise DataError("is missing; run the same command again to resume", path=place)
            with open(place, "rb") as one:
                shutil.copyfileobj(one, joined)
            lines += len(part.lines)
            with contextlib.suppress(FileNotFoundError):
                wrong += place.with_suffix(WRONG).read_text("utf-8").removesuffix("\n").split("\n")
            with contextlib.suppress(FileNotFoundError):
                remarks.add(place.with_suffix(REMARKS).read_text("utf-8"))
    remove_parts(output)
    return JoinedOutput(lines, wrong, remarks.lines(), remarks.named)


def remove_parts(output: Path) -> None:
    """Remove the answered chunks of an output that is complete, all at once or not at all."""
    with contextlib.suppress(OSError):
        files.remove_directory(parts_of(output))


def parts_of(output: Path) -> Path:
    """The directory of the answered chunks of an output."""
    return output.with_name(f"{output.name}.parts")


def chunks(file: Path) -> Iterator[Chunk]:
    """The lines of a file, CHUNK at a time, numbered from 0."""
    from weft.data.lines import each_line

    lines = each_line(file)
    number = 0
    while held := list(islice(lines, CHUNK)):
        yield Chunk(number, held)
        number += 1


def _about(opened: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Model and options, with the digests of their files; all chunks of an output must have the same."""
    own_options = ("run", "file", "output", "processes", "ray", "device", "plot_limit")
    options = {
        key: value for key, value in sorted(given.items()) if key not in own_options and given_one(value)
    }
    recipe = {key: value for key, value in opened.recipe.plain().items() if key != "training"}
    decoding = getattr(opened.task, "decoding", None)  # only some tasks have one
    fields = dataclasses.fields(decoding) if dataclasses.is_dataclass(decoding) else ()
    settings = {field.name: getattr(decoding, field.name) for field in fields}
    return {
        "input": str(given["file"].absolute()),
        "model": [str(opened.path.absolute()), *named_files({"run": opened.path})["run"][0]],
        "recipe": hashlib.sha256(json.dumps(recipe, default=str).encode()).hexdigest(),
        "options": json.dumps({key: str(value) for key, value in options.items()}),
        "chunk": CHUNK,
    } | named_files({**settings, **options})
