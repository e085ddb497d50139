"""Runs with forged JSON: every value of every file in turn; the result is one error or a correct answer.

forged.py makes the forgeries. A sample of those of a translator is tested each time, and of those of every
task in the slow test: all of them take hours. Read next: forged.py; test_runs.py, for links and huge files.
"""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.attacks import forged
from tests.attacks.forged import VALUES, Forgery
from tests.attacks.jail import Jail
from tests.commands.shell import weft
from tests.slow import leading
from tests.tasks.every import KINDS
from weft.errors import CheckpointError
from weft.train.checkpoints import Checkpoints

SHORT = [
    "training.max_updates=2",
    "training.validate_every=1",
    "training.save_every=1",
    "training.monitors=false",
    "training.tensorboard=false",
]
LINES = {
    "translate": "alpha",
    "summarise": "alpha It",
    "language": "the cat",
    "classify": "a fine film",
    "tag": "telo .",
    "embeddings": "apple",
    "masked": "the [mask]",
    "draw": "red circle",
    "memory": "0.1 1 0.2 0",
}
"""What `weft predict` is given, where a task reads lines."""

MANY = 60
"""Forgeries of each task in the slow test."""


def trained(folder: Path, task: str) -> tuple[Path, list[object]]:
    """A run of two updates, and the command that resumes it for a third."""
    recipe = KINDS[task].make(folder / "toy")
    weft("train", recipe, "--run", folder / "run", *KINDS[task].changes, *SHORT, code=0)
    again = [*KINDS[task].changes, *SHORT[1:], "training.max_updates=3"]
    return folder / "run", ["train", recipe, "--run", folder / "forged", *again]


def files_of(run: Path) -> list[str]:
    """Its JSON files; of the checkpoints only those of the newest."""
    names = [str(path.relative_to(run)) for path in sorted(run.rglob("*.json*"))]
    return [name for name in names if "step-00000001" not in name]


def uses(task: str, run: Path, name: str, again: list[object]) -> list[list[object]]:
    """The commands that read a file."""
    if name.startswith("checkpoints/"):
        return [again]
    if name == "checkpoints.json":
        return [["show", run], again]
    if name == "metrics.jsonl":
        return [["inspect", run, "--output", run.parent / "page.html"], again]
    if name == "run.json":
        return [["show", run]]
    lines = run.parent / "lines.txt"
    lines.write_text(LINES.get(task, "") + "\n")
    return [["show", run], ["evaluate", run], *([["predict", run, lines]] if task in LINES else []), again]


def attacked(jail: Jail, original: Path, forgery: Forgery, commands: list[list[object]]) -> list[str]:
    """Failures when opening a forged copy of a run; empty if all commands answered or reported an error."""
    run, wrong = original.parent / "forged", []
    for command in commands:
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(original, run)
        forged.harm(run, forgery)
        code, _, err = jail.weft(*command)
        if code not in (None, 0, 2, 3) or "Traceback" in err or "\x1b" in err or "\x07" in err:
            wrong.append(f"{command[0]}: {forgery}: {code} {err[-300:]!r}")
    return wrong


@pytest.mark.parametrize("every", leading([12, 2]))
def test_a_choice_of_forgeries_is_answered_or_refused(jail: Jail, tmp_path: Path, every: int) -> None:
    run, again = trained(tmp_path, "translate")
    all_ = [one for name in files_of(run) for one in forged.forgeries(run, name)]
    kinds = len(VALUES) + len(forged.RAW)
    chosen = all_[:: every * kinds + 7]  # a different value at every second or twelfth place
    assert len({one.what for one in chosen}) > kinds / every and len(chosen) > 100 / every
    wrong = []
    for one in chosen:
        wrong += attacked(jail, run, one, uses("translate", tmp_path / "forged", one.file, again)[-1:])
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("task", [name for name in KINDS if " " not in name])
def test_forgeries_of_every_task_are_answered_or_refused(jail: Jail, tmp_path: Path, task: str) -> None:
    jail.close()  # a new process: hundreds of commands leave its little memory in pieces
    run, again = trained(tmp_path, task)
    all_ = [one for name in files_of(run) for one in forged.forgeries(run, name)]
    step = max(1, len(all_) // MANY)
    step += step % (len(VALUES) + len(forged.RAW)) == 0  # not the same value at every place
    wrong = []
    for one in all_[::step]:
        wrong += attacked(jail, run, one, uses(task, tmp_path / "forged", one.file, again))
    assert wrong == []


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[object]]:
    return trained(tmp_path_factory.mktemp("forged"), "translate")


WRONG = {
    "epoch": (10**15, r"\$\.position\.epoch: expected int <= \d+, got 1000000000000000"),
    "index": (-1, r"\$\.position\.index: expected int >= 0, got -1"),
    "update": ("2", r"\$\.position\.update: expected int, got str"),
    "skipped": (7, r"\$\.position\.skipped: expected at most the 2 updates, got 7"),
    "seconds": (None, r"\$\.position\.seconds: expected float, got null"),
}


@pytest.mark.parametrize("name", leading(WRONG, 3))
def test_a_forged_position_is_refused_with_file_place_and_value(
    translator: tuple[Path, list[object]], tmp_path: Path, name: str
) -> None:
    value, sentence = WRONG[name]
    run = tmp_path / "run"
    shutil.copytree(translator[0], run)
    state = run / "checkpoints" / "step-00000002" / "state.json"
    content = json.loads(state.read_text())
    content["position"][name] = value
    state.write_text(json.dumps(content))
    forged.seal(state)
    with pytest.raises(CheckpointError) as refusal:
        Checkpoints(run, print).load(2)
    assert re.search(rf"step-00000002: is damaged \(state\.json: {sentence}", str(refusal.value))


def test_a_run_of_another_version_opens(translator: tuple[Path, list[object]], tmp_path: Path) -> None:
    """Unknown keys, as of a newer Weft, are skipped; missing ones, as of an older Weft, have defaults."""
    run = tmp_path / "run"
    shutil.copytree(translator[0], run)
    state = run / "checkpoints" / "step-00000002" / "state.json"
    content = json.loads(state.read_text()) | {"newer": [[{"deep": 1}]]}
    content["position"] |= {"newer": 1}
    content["about"] |= {"newer": {"a": [1]}}
    del content["position"]["cpu"], content["about"]["machine"]
    state.write_text(json.dumps(content))
    forged.seal(state)
    again = [str(run) if str(one).endswith("forged") else one for one in translator[1]]
    answer = weft(*again)
    assert answer.code == 0 and "damaged" not in answer.err, answer.err


def test_a_huge_file_takes_little_memory(
    jail: Jail, translator: tuple[Path, list[object]], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(translator[0], run)
    lists = "[" + "[]," * (20 * 2**20) + "[]]"  # 60 MiB of text for gigabytes of lists
    about = (run / "run.json").read_text().rstrip().removesuffix("}")
    (run / "run.json").write_text(about + f', "newer": {lists}}}')
    assert jail.weft("show", run)[0] in (None, 0)
    (run / "run.json").write_text(about + f', "format": {lists}}}')
    code, _, err = jail.weft("show", run)
    assert code == 2 and "$.format: expected int, got array" in err


@pytest.mark.parametrize("name", ["run.json", "model.safetensors", "checkpoints", "tokenizer.source.json"])
def test_a_link_to_itself_is_refused(
    translator: tuple[Path, list[object]], tmp_path: Path, name: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(translator[0], run)
    if (run / name).is_dir():
        shutil.rmtree(run / name)
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(name)
    answer = weft("show", run)
    assert answer.code == 2 and f"{name}: is a link to itself" in answer.err


def test_a_run_that_is_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to("run")
    answer = weft("show", tmp_path / "run")
    assert answer.code == 2 and "run" in answer.err


def test_an_escape_sequence_does_not_reach_the_terminal(
    translator: tuple[Path, list[object]], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(translator[0], run)
    (run / "run.json").write_text(json.dumps({"format": 7, "weft": "\x1b]0;owned\x07\x9b2J"}))
    answer = weft("show", run)
    assert answer.code == 2 and "\\x1b]0;owned\\x07\\x9b2J" in answer.err
    assert not set(answer.err) & set("\x1b\x07\x9b")
    answer = weft("show", tmp_path / "no\x1b[31mrun")
    assert answer.code == 2 and "no\\x1b[31mrun" in answer.err


SIZES = {
    "model.decoder.sizes=[-5]": r"model\.decoder\.sizes\[0\]: expected a whole number from 0 .*, got -5",
    "model.decoder.sizes=[]": r"a recurrent network needs a size",
    "model.decoder.sizes=[1000000000000000]": r"sizes\[0\]: expected a whole number from 0 to 10,000,000",
    "model.decoder.sizes=[100000]": r"contains a different model from the recipe",
    "model.decoder.readout=1000000000000": r"cannot be built|a different model",
    "model.decoder.readout=-5": r"readout: expected a whole number of at least 0",
    "model.decoder.dropout=-5": r"dropout: expected a number from 0 to below 1, got -5",
}


@pytest.mark.parametrize("change", leading(SIZES, 4))
def test_sizes_that_no_model_can_have_are_refused(
    jail: Jail, translator: tuple[Path, list[object]], tmp_path: Path, change: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(translator[0], run)
    lines = (run / "recipe.yaml").read_text().split("\n")
    key, value = change.rpartition(".")[2].split("=")
    start = next(at for at, line in enumerate(lines) if line == "  decoder:")
    at = next(at for at in range(start, len(lines)) if lines[at].startswith(f"    {key}:"))
    lines[at] = f"    {key}: {value}"
    (run / "recipe.yaml").write_text("\n".join(lines))
    code, _, err = jail.weft("show", run)
    assert code == 2 and re.search(SIZES[change], err), err


def test_a_tagger_whose_tags_were_forged_is_not_trained_on(tmp_path: Path) -> None:
    run, again = trained(tmp_path, "tag")
    lexicon = run / "tokenizer.tags.json"
    content = json.loads(lexicon.read_text())
    content["tags"][0] = "FORGED"
    lexicon.write_text(json.dumps(content))
    answer = weft(*[str(run) if str(one).endswith("forged") else one for one in again])
    assert answer.code == 2 and re.search(r"tokenizer\.tags\.json: expected every tag of", answer.err)
