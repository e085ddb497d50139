"""Turn a checkpoint into a run with recipe, vocabularies and weights, like any other run.

It is a translator of one of the toolkits in kits/, or a checkpoint directory of the transformers library, of
which encoder-decoders become translators, decoders language models, encoders masked language models.
Read next: kits/kit.py; plans.py, what each family becomes; vocabularies.py, writing.py.
"""

from pathlib import Path

from weft.errors import CheckpointError, ConfigError
from weft.importing.checkpoint import read_checkpoint
from weft.importing.families.every import FAMILIES, built, guarded
from weft.importing.kits import KITS
from weft.importing.kits.kit import CheckpointHints
from weft.importing.plans import PAIRS, PLANS, TRANSLATORS, ImportPlan, summarise
from weft.importing.vocabularies import LANGUAGES
from weft.importing.writing import RunParts, write_run
from weft.search.offered import Decoding


def import_run(
    path: Path,
    run: Path,
    *,
    source: str | None = None,
    target: str | None = None,
    train: str = "train",
    valid: str = "valid",
    vocabulary: tuple[Path, ...] = (),
    subwords: tuple[Path, ...] = (),
    task: str | None = None,
) -> str:
    """Turn a checkpoint into a run and return a sentence about it."""
    if run.exists():
        raise ConfigError(f"{run}: already exists; choose another directory with --run")
    if not path.exists():
        raise CheckpointError(f"{path}: no such file or directory; name a checkpoint")
    given = CheckpointHints(path, source, target, train, valid, vocabulary, subwords)
    kit = next((kit for kit in KITS if kit.recognises(given.path)), None)
    if kit is not None:
        if task is not None:
            raise ConfigError(f"--task {task}: a checkpoint of {kit.name} becomes a translator; leave it out")
        parts = kit.read(given)
        count = write_run(run, parts, kind=kit.name, place=str(given.path))
        sizes = " and ".join(f"{len(one):,}" for one in parts.vocabularies.values())
        return (
            f"{run}: a model of {kit.name} with {count:,} parameters and {sizes} tokens, "
            f"for the task {parts.recipe['task']}"
        )
    return _of_transformers(given, run, task)


def _of_transformers(given: CheckpointHints, run: Path, task: str | None) -> str:
    directory = given.path
    if given.vocabulary or given.subwords:
        raise ConfigError(
            f"{directory}: --vocabulary and --subwords are for checkpoints of {_kits()} only; leave them out"
        )
    if not (directory / "config.json").is_file():
        raise CheckpointError(
            f"{directory}: expected a directory with config.json (transformers), or a checkpoint of "
            f"{_kits()}; weft import --help says what each looks like"
        )
    foreign = read_checkpoint(directory)
    family = foreign.setting("model_type")
    _check(given, family, task)
    theirs = built(foreign)
    languages = {"source": given.source, "target": given.target} if family in TRANSLATORS else {}
    planned = PLANS[family] if task is None else PAIRS[task]
    with guarded(foreign):
        plan = planned(foreign, {**languages, "train": given.train, "valid": given.valid})
        state = plan.renumbered(theirs.state_dict())
    foreign.tensors.clear()  # frees memory
    parts = RunParts(plan.recipe, plan.found.vocabularies, state, plan.files)
    count = write_run(run, parts, kind=family, place=str(directory))
    said = (
        f"{run}: a {family} of {count:,} parameters and {len(plan.found.order):,} tokens, "
        f"for the task {plan.recipe['task']}"
    )
    return "\n".join([said, *_searched(plan)])


def _searched(plan: ImportPlan) -> list[str]:
    """How the run reads and searches, as lines."""
    lines = [f"each text is read after {plan.found.prefix!r}"] if plan.found.prefix else []
    if decoding := plan.recipe.get("decoding"):
        most = f", at most {decoding['max_extra']} tokens" if decoding.get("max_ratio") == 0 else ""
        lines.append(f"search: {Decoding(**decoding).describe()}{most}")
    if plan.without:
        lines.append(f"search settings not imported: {', '.join(plan.without)}")
    return lines


def _kits() -> str:
    return ", ".join(kit.name for kit in KITS)


def _check(given: CheckpointHints, family: str, task: str | None) -> None:
    """Check that the family can become a run of the task, and that the needed languages are given."""
    directory, languages = given.path, (given.source, given.target)
    if not isinstance(family, str) or family not in PLANS:
        raise ConfigError(
            f"{directory / 'config.json'}: model_type: expected one of {', '.join(PLANS)}, "
            f"got {str(family)[:60]}; "
            "from Python, weft.importing.families.import_model reads " + ", ".join(FAMILIES)
        )
    if task is not None and (family not in TRANSLATORS or task not in PAIRS):
        known = f"expected {' or '.join(PAIRS)}" if family in TRANSLATORS else f"a {family} is for one task"
        raise ConfigError(f"{directory}: --task: {known}, got {task}; leave it out")
    if task is not None and PAIRS[task] is summarise:
        needs, fits = "takes neither --source nor --target", family in LANGUAGES or languages == (None, None)
    elif family in TRANSLATORS:
        needs, fits = "needs --source and --target", None not in languages
    else:
        needs, fits = "takes neither --source nor --target", languages == (None, None)
    if not fits:
        raise ConfigError(f"{directory}: a {family} {needs}, got {given.source} and {given.target}")
