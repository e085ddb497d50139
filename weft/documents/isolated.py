"""Documents of strangers, opened in a process of their own that may use only so much memory and time.

A small file can unpack to a large one, and a library written in C can fail on it. So the server never opens
one itself: each step (detect the language, read the sentences, write the translation) is a child process that
ends after it, or with its client. Both speak JSON, as neither has to trust the other.
Read next: files.py; ../serve/translation.py, which uses it.
"""

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np

from weft.data.pairs import languages
from weft.documents.files import Document, opened
from weft.errors import ConfigError, DataError, WeftError
from weft.text.segments import Links, Segment, Sentence, WrittenSentence
from weft.text.sentences import DocumentPlan
from weft.wording import plural
from weft.words import base

_MIB = 2**20
_ARCHIVES = (".docx", ".odt")  # their bytes are not lines
_NAMING = (".tmx", ".xliff", ".xlf")  # they name their languages
_BEGINNING = 100  # texts of another file whose language is detected
_LARGEST = 100 * _MIB  # of an answer
_PACKAGE = Path(__file__).resolve().parents[2]


class DocumentBounds(NamedTuple):
    """What a document may cost; each is a maximum."""

    characters: int = 200_000  # of all its texts; it has no more lines than that
    sentences: int = 20_000
    memory_mib: int = 768  # of the process that opens it
    cpu_seconds: int = 20
    seconds: float = 60.0  # until it has answered


async def document_language(
    data: bytes, name: str, bounds: DocumentBounds, characters: int
) -> tuple[str, str]:
    """The language that a document names, or its beginning, to detect it: one of the two is empty."""
    found = await _child("detection", bounds, data, name, characters)
    return str(found[0]), str(found[1])


async def document_sentences(
    data: bytes, name: str, source: str, target: str, bounds: DocumentBounds
) -> list[Sentence]:
    """The sentences of a document; the arguments and errors are those of `document_language`."""
    found = await _child("reading", bounds, data, name, source, target)
    return [Sentence(str(text), bool(linked)) for text, linked in found]


async def translated_document(
    data: bytes, name: str, source: str, target: str, found: Sequence[WrittenSentence], bounds: DocumentBounds
) -> bytes:
    """A document with its translation; the arguments and errors are those of `document_sentences`."""
    texts = [(one.text, one.links) for one in found]
    return bytes.fromhex(await _child("writing", bounds, data, name, source, target, texts))


async def _child(step: str, bounds: DocumentBounds, *arguments: Any) -> Any:
    name = arguments[1]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = str(_PACKAGE)  # this Weft; -P keeps the current folder off the path
    given = await asyncio.to_thread(json.dumps, [step, bounds, arguments], default=_plain)
    command = (sys.executable, "-P", "-m", "weft.documents.isolated")
    done = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    try:
        async with asyncio.timeout(bounds.seconds):
            answered, said = await done.communicate(given.encode())
    except TimeoutError:
        raise _too_much(name, f"more than {bounds.seconds:g} seconds") from None
    finally:
        if done.returncode is None:
            done.kill()
            await done.communicate()  # wait() alone would wait for ever while an answer is half read
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise _too_much(name, f"more than {plural(bounds.cpu_seconds, 'second')} of computing") from None
    if done.returncode:
        print(said.decode("utf-8", "replace")[-2000:], file=sys.stderr, flush=True)
        raise DataError("cannot be read; save it again with another program, or as plain text", path=name)
    answer = await asyncio.to_thread(json.loads, answered)
    if "exceeded" in answer:
        raise _too_much(name, f"more than {bounds.memory_mib} MiB of memory")
    if "config" in answer:
        raise ConfigError(str(answer["config"]))
    if "error" in answer:
        why, line = answer["error"]
        raise DataError(str(why), path=name, line=None if line is None else int(line))
    return answer["found"]


def _too_much(name: str, what: str) -> DataError:
    return DataError(f"opening it takes {what}; send a part of it, or a simpler file", path=name)


def _language(bounds: DocumentBounds, data: bytes, name: str, characters: int) -> tuple[str, str]:
    _check_lines(data, name, bounds)
    if PurePath(name).suffix.lower() in _NAMING:
        return base(languages([data], name)[0]), ""
    begun = islice(opened(data, name, "", "").segments, _BEGINNING)
    return "", " ".join(one.text for one in begun)[:characters]


def _sentences(bounds: DocumentBounds, data: bytes, name: str, source: str, target: str) -> list[Sentence]:
    return _planned(bounds, data, name, source, target)[1].sentences


def _translation(
    bounds: DocumentBounds, data: bytes, name: str, source: str, target: str, found: list[Any]
) -> str:
    document, plan = _planned(bounds, data, name, source, target)
    return document.written(plan.joined([_sentence(*one) for one in found])).hex()


def _check_lines(data: bytes, name: str, bounds: DocumentBounds) -> None:
    lines = data.count(b"\n") + data.count(b"\r")
    if lines > bounds.characters and PurePath(name).suffix.lower() not in _ARCHIVES:
        raise DataError(
            f"expected at most {bounds.characters:,} lines, got {lines:,}; send a part of it", path=name
        )


def _planned(
    bounds: DocumentBounds, data: bytes, name: str, source: str, target: str
) -> tuple[Document, DocumentPlan]:
    _check_lines(data, name, bounds)
    document = opened(data, name, source, target)
    segments: Sequence[Segment] = document.segments
    counts = {"characters": (sum(len(one.text) for one in segments), bounds.characters)}
    plan = DocumentPlan(segments if counts["characters"][0] <= bounds.characters else [], source, target)
    counts["sentences"] = len(plan.sentences), bounds.sentences
    for what, (count, most) in counts.items():
        if count > most:
            raise DataError(f"expected at most {most:,} {what}, got {count:,}; send a part of it", path=name)
    return document, plan


def _plain(value: Any) -> Any:
    """What JSON lacks: bytes, and matrices of weights."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value.tolist()


def _sentence(text: str, links: list[Any] | None) -> WrittenSentence:
    if links is None:
        return WrittenSentence(text)
    weights, *spans = links
    source, target = ([(begin, end) for begin, end in side] for side in spans)
    shaped = np.array(weights, np.float32).reshape(len(target), len(source))
    return WrittenSentence(text, Links(shaped, source, target))


_STEPS: dict[str, Callable[..., Any]] = {
    "detection": _language,
    "reading": _sentences,
    "writing": _translation,
}


def _limit(bounds: DocumentBounds) -> None:
    """Let the system end this process where it takes too much; only the clock does on Windows."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (bounds.memory_mib * _MIB,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (bounds.cpu_seconds,) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer() -> dict[str, Any]:
    step, given, (data, *arguments) = json.loads(sys.stdin.buffer.read())
    bounds = DocumentBounds(*given)
    _limit(bounds)
    try:
        return {"found": _STEPS[step](bounds, base64.b64decode(data), *arguments)}
    except MemoryError:
        return {"exceeded": True}
    except ConfigError as error:
        return {"config": str(error)}
    except DataError as error:
        return {"error": (error.why, error.line)}
    except WeftError as error:
        return {"error": (str(error), None)}


if __name__ == "__main__":
    text = json.dumps(_answer())
    print(text if len(text) <= _LARGEST else json.dumps({"exceeded": True}))
