"""What is prepared from sequence pairs: vocabularies, and a token store of each training text.

Read next: ../../../data/store.py, ../../../text/vocabulary.py.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from weft.data.joined import Joined
from weft.data.shortlist import Shortlist
from weft.data.store import TokenStore, content_key
from weft.errors import CheckpointError, DataError
from weft.store.cache import cache_directory
from weft.tasks.shared.writing.data import PairData
from weft.tasks.shared.writing.reading import SourceReader
from weft.tasks.task import Progress
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import Vocabulary
from weft.wording import plural

SHORTLIST = "shortlist.json"
LEARNING = "learning the vocabulary"
TOLD = 2**17  # lines between progress reports


class Vocabularies(NamedTuple):
    """The vocabularies of a run."""

    source: Vocabulary
    target: Vocabulary  # the same object if both sides share it
    reading: SourceReader  # reads sources
    run: Path  # which keeps them


def vocabularies(run: Path, data: PairData, *, copies: bool) -> Vocabularies:
    """Read the vocabularies that a run keeps.

    Args:
        run: the run directory.
        data: the recipe's section.
        copies: whether the model copies unknown words of a source.

    Raises:
        CheckpointError: the vocabularies are missing.
    """
    source, target = vocabulary_paths(run, data)
    if not source.exists():
        raise CheckpointError(
            f"{source}: is missing; this is not a run directory, or training has not started"
        )
    first = load_vocabulary(source)
    second = first if source == target else load_vocabulary(target)
    return Vocabularies(first, second, SourceReader(first, cut=data.cut_source, copies=copies), run)


def vocabulary_paths(run: Path, data: PairData) -> tuple[Path, Path]:
    """The run's files of the source and target vocabularies; the same file if they share one."""
    if data.vocabulary.shared:
        return run / "tokenizer.json", run / "tokenizer.json"
    return run / "tokenizer.source.json", run / "tokenizer.target.json"


def learn(data: PairData, run: Path, progress: Progress) -> None:
    """Learn the vocabularies of all training texts, and write them into the run."""
    settings = data.vocabulary
    how: dict[str, Any] = {
        "kind": settings.kind,
        "size": settings.size,
        "min_count": settings.min_count,
        "form": settings.form,
        "lowercase": settings.lowercase,
    }
    source_path, target_path = vocabulary_paths(run, data)
    progress(LEARNING, 0, None)
    texts = data.texts()
    if settings.shared:
        both = (side for pair in chain.from_iterable(texts) for side in pair[1:])
        Vocabulary.train(_reported(both, progress), **how).save(source_path)
        return
    targets = (target for _, _, target in chain.from_iterable(texts))
    target = Vocabulary.train(_reported(targets, progress), **how)
    sources = (source for _, source, _ in chain.from_iterable(texts))
    source = Vocabulary.train(_reported(sources, progress), **how)
    target.save(target_path)
    source.save(source_path)  # last, since its existence means that both are saved


def _reported(lines: Iterable[str], progress: Progress) -> Iterator[str]:
    """The lines; progress is reported every TOLD lines."""
    for number, line in enumerate(lines, 1):
        if number % TOLD == 0:
            progress(LEARNING, number, None)
        yield line


def stored(
    text: Any, data: PairData, reading: SourceReader, target: Vocabulary, run: Path, progress: Progress
) -> TokenStore:
    """The token store of a training text; an existing one is opened."""
    length = data.max_length
    key = content_key(
        text.files,
        vocabularies=[path.read_text("utf-8") for path in vocabulary_paths(run, data)],
        max_length=length,
        languages=[data.source, data.target],
        reading=[reading.cut, reading.copies],
    )
    store = TokenStore.build(
        cache_directory() / "stores" / key[:32],
        text,
        reading.counted(target),
        max_length=length,
        key=key,
        progress=lambda lines: progress("reading training pairs", lines, None),
    )
    report = store.report
    cut = f", {plural(report['cut'], 'source')} cut after {reading.cut} tokens" if report["cut"] else ""
    name = f" of {text.name}" if data.mixed else ""
    progress(
        f"training pairs{name}: {report['kept']:,} of {report['pairs']:,} kept "
        f"({report['too_long']:,} longer than {length} tokens, {report['empty']:,} with an empty side"
        f"{cut})",
        0,
        0,
    )
    return store


def shortlist(known: Vocabularies, data: PairData, progress: Progress) -> Shortlist:
    """The run's shortlist (`decoding.shortlist`); made from the training texts unless the run has it.

    Raises:
        CheckpointError: it is missing, and so are the training texts.
    """
    source, target, reading, run = known
    path, sizes = run / SHORTLIST, (len(source), len(target))
    key = content_key(vocabulary_paths(run, data), cut=reading.cut)
    found = Shortlist.open(path, key, *sizes)
    if found is not None:
        return found
    try:
        texts = data.texts()
    except DataError as error:
        raise CheckpointError(
            f"shortlist: {path} is missing, and so is the training data to make it from; where the data is, "
            f"type `weft evaluate {run} --set shortlist=100` and copy the file ({error})"
        ) from error
    progress(f"making {SHORTLIST} from the training pairs, for decoding.shortlist", 0, None)
    pairs = Joined([stored(text, data, reading, target, run, progress) for text in texts])
    found = Shortlist.learn(pairs, *sizes, shared=source is target)
    found.save(path, key)
    return found
