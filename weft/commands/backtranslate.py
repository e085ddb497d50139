"""weft backtranslate: make training pairs from monolingual text with a model of the reverse direction.

    OUT/texts.es            the texts, one per line
    OUT/scored.txt          score TAB translation of each text
    OUT/back.en, back.es    the kept pairs: the tag with the model's translation, and the original text
    OUT/back.json, a README the model, its search settings, the texts

Each file is written atomically, so whatever exists is complete, and the same command resumes. Read next:
../data/synthetic.py, which pairs are kept; predict.py, which does the work.

Source: Sennrich, Haddow and Birch 2016, "Improving Neural Machine Translation Models with Monolingual Data";
Edunov et al. 2018, "Understanding Back-Translation at Scale", sampling; Caswell, Chelba and Grangier 2019,
"Tagged Back-Translation".
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.commands import options
from weft.data.lines import each_line, read_lines
from weft.errors import ConfigError, DataError
from weft.store import files, jsonfile
from weft.wording import plural

if TYPE_CHECKING:
    from weft.data.synthetic import PairVerdicts
    from weft.run import LoadedRun

HEADINGS = {
    "Corpus": ("out", "mark", "processes"),
    "Which pairs are kept": ("least", "share", "ratio"),
    "Search": options.SEARCH,
    "Sampling": options.SAMPLING,
    "Multilingual models only": ("source", "target"),
}
OWN = ("run", "mono", "out", "mark", "least", "share", "ratio")
"""Parameters that `weft predict` does not have; it receives the others."""
COMPUTING = ("processes", "device", "plugins")  # parameters that do not change what is written


@click.command(cls=options.GroupedCommand, headings=HEADINGS)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("mono", nargs=-1, required=True, type=click.Path(path_type=Path))
@options.file_option("--folder", "-o", "out", required=True, metavar="DIR", help="Directory for the pairs.")
@click.option(
    "--tag",
    "mark",
    default="<bt>",
    show_default=True,
    help="Word before each machine-made source, so that the new model can tell it from human text; "
    '"" for none.',
)
@click.option(
    "--min-score",
    "least",
    type=float,
    metavar="X",
    default=float("-inf"),
    show_default="none",
    help="Minimum score of a pair (log-probability divided by length), such as -0.8.",
)
@click.option(
    "--keep",
    "share",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    default=1.0,
    show_default=True,
    help="Share of the remaining pairs to keep, best scores first, such as 0.8.",
)
@click.option(
    "--max-ratio",
    "ratio",
    type=click.FloatRange(1),
    metavar="X",
    default=3.0,
    show_default=True,
    help="Maximum factor between a pair's length ratio and the median, for pairs of 30 characters or more.",
)
@options.sampling
@options.searching
@click.option("--source", metavar="LANGUAGE", help="Language of MONO.")
@click.option("--target", metavar="LANGUAGE", help="Language to translate MONO into.")
@options.processes
@options.device
@options.plugin
def command(**given: Any) -> int:
    """Make training pairs from monolingual text, with a RUN of the reverse direction.

    To train English to Spanish with Spanish text that has no translation, use a RUN that translates Spanish
    to English. It translates each line of the files MONO. The result is the source of a pair, the line
    itself the target: mistakes are in the sources only, and the new model learns to write human text.
    The command ends with the lines to add to the recipe.

    If the command is stopped or killed, the same command resumes. With another --tag, --min-score, --keep or
    --max-ratio it filters the same translations again, in seconds.

    \b
    Examples:
      weft backtranslate runs/es-en news.es --folder back
      weft backtranslate runs/es-en news.es.gz more.es --folder back --beam 1 --keep 0.8 --processes 2
      weft backtranslate runs/es-en news.es --folder back --sample --top-k 10 --seed 3
    """  # noqa: D301  click reads the \b
    from weft.commands import bulk, predict
    from weft.store.run_directory import check_idle, lock

    run, out = given["run"], given["out"]
    check_idle(run)
    search = {name: value for name, value in given.items() if name not in OWN}
    opened = options.open_asked(given, device="cpu")
    source, target = options.direction_of(opened, given["source"], given["target"])
    options.check_members(opened, given["ensemble"], given["plugins"])
    texts, lines = out / f"texts.{source}", out / "scored.txt"
    _check(given["mono"])
    _begin(out, opened, search, given["mono"])
    with lock(out, "writing these pairs", "--folder"):
        files.remove_leftovers(out)
        _copy(given["mono"], texts)
        if not lines.exists() and (
            code := predict.answer_file(run, texts, lines, {**search, "scores": True})
        ):
            return code
        bulk.remove_parts(lines)
        found = _kept(texts, lines, out / f"back.{target}", out / f"back.{source}", given)
    _report(found, out, (source, target))
    return 0


def _begin(out: Path, opened: "LoadedRun", search: Mapping[str, Any], mono: Sequence[Path]) -> None:
    """Create the folder, or check that it has pairs of the same texts, model and search."""
    from weft.commands import predict, rewritten
    from weft.store.digests import file_digest, named_files
    from weft.tasks.abilities import Rewrites

    how = {name: value for name, value in search.items() if name not in COMPUTING}
    pipeline = opened.pipeline
    assert isinstance(pipeline, Rewrites)
    decoding = pipeline.decoding.with_settings(options.search_of(how))
    stats = [(file.absolute(), file.stat()) for file in mono]
    about: dict[str, Any] = {
        "model": str(opened.path.resolve()),
        "weights": file_digest(opened.path / "model.safetensors"),
        "decoding": decoding.describe(),
        "options": options.as_words(predict.command, how),
        "texts": [[str(path), stat.st_size, stat.st_mtime_ns] for path, stat in stats],
        "files": named_files({**how, "texts": tuple(mono)}),
    }
    known, other = out / "back.json", "choose another --folder"
    begun = files.claim(out, known.name, "translated pairs", other)
    with files.refusals(out, other):
        begun = begun and any(out.glob("texts.*"))  # of any direction
        remedy = f"remove {out}, or {other}"
        then = jsonfile.load(known, dict[str, Any], remedy) if begun else about
        if changed := ", ".join(sorted(name for name in then if then[name] != about.get(name))):
            raise ConfigError(f"{out}: {changed} changed since its pairs were made; {remedy}")
        files.replace(known, files.to_json(about))
    names = ", ".join(str(path) for path, _ in stats)
    text = (
        f"The sources were written by the run `{about['model']}` ({opened.task.about()}): "
        f"{about['decoding']}, for the texts of {names}, which are the targets. "
        f"SHA-256 of the run's weights: `{about['weights']}`."
    )
    rewritten.write(out / "README.md", f"# {out.name}\n\n{text}\n".encode())


def _copy(mono: Sequence[Path], texts: Path) -> None:
    """Write the texts of all files, one per line, without empty and unreadable ones."""
    if texts.exists():
        return
    counts = Counter[str]()
    with files.replacing(texts) as file:
        file.writelines(f"{text}\n".encode() for text in _texts(mono, counts))
    click.echo(f"{plural(counts['used'], 'line')} to translate{_shown(counts)}", err=True)


def _check(mono: Sequence[Path]) -> None:
    """Check before anything is written that every file can be read and that there is text."""
    for file in mono:
        next(each_line(file), None)
    counts = Counter[str]()
    if next(_texts(mono, counts), None) is None:
        why = f"expected at least one line with text{_shown(counts)}; name another file"
        raise DataError(why, path=mono[0])


def _texts(mono: Sequence[Path], counts: Counter[str]) -> Iterator[str]:
    """The texts of all files; empty and unreadable lines are counted."""
    for file in mono:
        for line in each_line(file):
            text = "" if isinstance(line, DataError) else " ".join(line.split())
            counts["not UTF-8" if isinstance(line, DataError) else "used" if text else "empty"] += 1
            if text:
                yield text


def _shown(counts: Counter[str]) -> str:
    return "".join(f", {counts[kind]:,} {kind}" for kind in ("empty", "not UTF-8") if counts[kind])


def _kept(texts: Path, lines: Path, source: Path, target: Path, given: Mapping[str, Any]) -> "PairVerdicts":
    """Write the pairs to keep; raises DataError if there are none."""
    from weft.data.synthetic import PairLimits, judged, pairs

    limits = PairLimits(given["least"], given["share"], given["ratio"])
    found = judged(read_lines(texts), read_lines(lines), limits)
    if not found.kept:
        left = ", ".join(f"{count:,} {reason}" for reason, count in found.dropped.items())
        raise DataError(f"no pairs are left ({left}); change --min-score, --keep or --max-ratio", path=lines)
    with files.replacing(source) as first, files.replacing(target) as second:
        for written, text in pairs(read_lines(texts), read_lines(lines), found, given["mark"].strip()):
            first.write(f"{written}\n".encode("utf-8", "replace"))
            second.write(f"{text}\n".encode())
    return found


def _report(found: "PairVerdicts", out: Path, languages: tuple[str, str]) -> None:
    """Print what was kept, and how to train on it."""
    import json
    import shlex

    total, (source, target) = len(found.reasons), languages
    click.echo(f"{found.kept:,} of {plural(total, 'pair')} kept ({100 * found.kept / total:.1f} %)")
    for reason, count in found.dropped.items():
        click.echo(f"  left out: {count:,} {reason}")
    click.echo(f"lowest score kept: {found.lowest:.3f}; median length ratio: {found.usual:.2f}")
    mixed = f"{{{json.dumps(str(out.absolute() / 'back'))}: 1.0}}"
    click.echo(f"pairs: {out / 'back'}.{target} and .{source}")
    click.echo(f"to train {target} to {source} on them too, add to the recipe:\n\ndata:\n  mixed: {mixed}\n")
    click.echo(f"or to its command: {shlex.quote(f'data.mixed={mixed}')}")
