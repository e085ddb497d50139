"""weft distill: a teacher translates training sources, and a student learns from its translations.

Read next: rewritten.py, the corpus that the teacher writes; predict.py and train.py, which do the work.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.commands import options
from weft.errors import ConfigError, DataError
from weft.store.run_directory import check_idle, lock

if TYPE_CHECKING:
    from weft.commands.rewritten import RewriteJob
    from weft.run.train import Teacher
    from weft.run.training import CheckedRecipe

HEADINGS = {
    "Student": ("student", "run", "mix"),
    "Corpus": ("sources", "corpus", "processes"),
    "Search of the teacher": options.SEARCH,
}
OWN = ("teacher", "overrides", "student", "run", "mix", "sources", "corpus")
"""Parameters that `weft predict` does not have; it receives the others."""


@click.command(cls=options.GroupedCommand, headings=HEADINGS)
@click.argument("teacher", type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, metavar="[SECTION.KEY=VALUE]...")
@click.option(
    "--student",
    required=True,
    metavar="RECIPE",
    type=options.RecipeFile(),
    help="Recipe of the student: a file, or one that comes with Weft. Its validation and test data are kept.",
)
@options.file_option(
    "--run",
    metavar="DIR",
    show_default="runs/NAME-distilled of the recipe",
    help="Run directory of the student.",
)
@click.option(
    "--mix",
    is_flag=True,
    help="Train on the original pairs of the student's recipe as well as the teacher's.",
)
@options.file_option(
    "--sources",
    multiple=True,
    show_default="training sources of TEACHER",
    help="File of texts for the teacher, one per line (repeatable).",
)
@options.file_option(
    "--corpus",
    metavar="DIR",
    show_default="RUN.corpus",
    help="Directory for the teacher's texts. Students with the same one share them.",
)
@options.searching
@options.processes
@options.device
@options.plugin
def command(**given: Any) -> int:
    """Train a student on what the run TEACHER writes for its training sources.

    A small model learns more easily from the regular output of a large one than from human text
    (sequence-level distillation, Kim & Rush 2016), and then often needs no beam search. The student may be
    any recipe of the same task and languages. SECTION.KEY=VALUE changes one setting of it.

    If the command is stopped or killed, the same command resumes.

    \b
    Examples:
      weft distill runs/help-demo --student help-student
      weft distill runs/large --student small.yaml --run runs/small --mix --processes 2
      weft distill runs/large --student small.yaml --sources news.en.xz --beam 8
    """  # noqa: D301  click reads the \b
    from weft.commands import rewritten, train
    from weft.config import dump, read_recipe
    from weft.run.training import begin_run, check_recipe
    from weft.store import files
    from weft.tasks.abilities import OnPairs

    run: Path = given["run"] or Path("runs") / f"{given['student'].stem}-distilled"
    corpus: Path = given["corpus"] or run.with_name(f"{run.name}.corpus")
    _check(given["teacher"], run, corpus, given["sources"])
    student = check_recipe(read_recipe(given["student"], given["overrides"]), plugins=given["plugins"])
    student.task.rehearse()  # shows a model whose parts do not fit together before hours of work
    search = {name: value for name, value in given.items() if name not in OWN}
    teacher, jobs = _assigned(given, student, search, corpus)
    rewritten.begin(corpus, teacher)
    others = f" with {', '.join(teacher.ensemble)}" if teacher.ensemble else ""
    click.echo(f"teacher: {teacher.run}{others}, {teacher.decoding}; its texts go to {corpus}", err=True)
    with lock(corpus, "writing this corpus", "--corpus"):
        files.remove_leftovers(corpus)
        for job in jobs:
            job.copy()
            if code := _written(job, given["teacher"], search):
                return code
            if given["mix"]:
                job.mix()
    assert isinstance(student.task, OnPairs)
    text = rewritten.MIXED if given["mix"] else "train"
    data = student.task.data_in(corpus, text, tested=student.task.has("test"))
    recipe = corpus / f"{run.name}.yaml"
    rewritten.write(recipe, dump({**student.plain, "data": {**student.plain["data"], **data}}).encode())
    begin_run(run, read_recipe(recipe), plugins=given["plugins"])
    teacher.mixed = given["mix"]
    teacher.save(run)
    context = click.get_current_context()  # its `invoke` adds the defaults of the other options
    return int(context.invoke(train.command, recipe=recipe, run=run, plugins=given["plugins"]) or 0)


def _assigned(
    given: Mapping[str, Any], student: "CheckedRecipe", search: Mapping[str, Any], corpus: Path
) -> tuple["Teacher", list["RewriteJob"]]:
    """The teacher, and what it writes; its model is released again."""
    from weft.commands import rewritten

    opened = options.open_asked(given, given["teacher"], "cpu")
    jobs = rewritten.jobs(opened, student, given["sources"], corpus)
    if not all(job.answers.exists() for job in jobs):
        options.check_members(opened, given["ensemble"], given["plugins"])
    return rewritten.about(opened, search, given["sources"]), jobs


def _written(job: "RewriteJob", teacher: Path, search: Mapping[str, Any]) -> int:
    """Let the teacher write its texts unless they exist; the exit code."""
    from weft.commands import bulk, predict

    if not job.student.trained:
        return 0
    if job.answers.exists():
        bulk.remove_parts(job.answers)
        return 0
    return predict.answer_file(teacher, job.read, job.answers, {**search, **job.languages})


def _check(teacher: Path, run: Path, corpus: Path, sources: Sequence[Path]) -> None:
    """Check the teacher, the sources and the student's directory before hours of work."""
    from weft.config import read_recipe
    from weft.config.recipe import at
    from weft.data.lines import read_lines
    from weft.run.training import foreign

    check_idle(teacher)
    for file in sources:
        if not any(text.strip() for text in read_lines(file)):
            raise DataError("expected at least one line with text; name another file", path=file)
    if not run.exists() or not any(map(foreign, run.iterdir())):
        return
    recipe = run / "recipe.yaml"
    folder = at(read_recipe(recipe).plain(), ("data", "folder")) if recipe.is_file() else None
    if folder != str(corpus.absolute()):
        raise ConfigError(f"{run}: exists and is not a student of {corpus}; choose another --run")
