"""After a training that was too short: what is recognised and printed; the demo without a terminal."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.commands.shell import refused, weft
from weft import cli
from weft.commands import longer, program
from weft.tasks.evaluation import Sample
from weft.train.checkpoints import FORMAT
from weft.train.history import History
from weft.train.settings import TrainingSettings

SHORT = """task: translate
data: {train: text, valid: text, source: en, target: de, vocabulary: {kind: character, size: 8},
       batch_tokens: 50}
model:
  encoder: {use: recurrent, cell: gru, sizes: [7], bidirectional: true}
  decoder: {use: recurrent, cell: gru, sizes: [7], score: dot, key_size: 7}
  embedding: {size: 5}
training: {max_updates: 3, monitors: false, tensorboard: false}
"""


@pytest.mark.parametrize(
    ("output", "reference", "found"),
    [
        ("Row Row Row", "Zeile einfügen", True),
        ("auf.................", "Klicken Sie auf ein Werkzeug.", True),
        ("View gleich. View View oder oder View. View gleich. View", "Makros werden nie ausgeführt", True),
        ("Klicken Sie auf die Zeile.", "Klicken Sie auf ein Werkzeug.", False),
        ("NOUN NOUN NOUN PUNCT", "NOUN NOUN NOUN PUNCT", False),  # the truth is no richer
        ("yes", "no", False),
        ("", "no", True),
        ("", "", False),
    ],
)
def test_outputs_that_repeat_themselves_are_recognised(output: str, reference: str, found: bool) -> None:
    assert bool(longer.degenerate([Sample("Click one of these tools here", reference, output)])) is found


def test_one_such_output_of_three_is_no_sign() -> None:
    good, bad = Sample("a b c", "d e f", "d e g"), Sample("a b c", "d e f", "d d d")
    assert longer.degenerate([good, bad, good]) == ""
    assert longer.degenerate([good, bad, bad]) == "the model repeats itself (d d d)"
    assert longer.degenerate([]) == ""


@pytest.mark.parametrize(
    ("updates", "settings", "ends"),
    [
        (23, TrainingSettings(max_updates=23), ["training.max_updates=1012"]),  # 44 times
        (4000, TrainingSettings(max_epochs=2), ["training.max_epochs=10"]),
        (
            400,
            TrainingSettings(max_epochs=2, max_cpu_minutes=1.5),
            ["training.max_epochs=10", "training.max_cpu_minutes=7.5"],
        ),
    ],
)
def test_the_command_goes_five_times_as_far_and_to_a_thousand_updates(
    updates: int, settings: TrainingSettings, ends: list[str]
) -> None:
    run = Path("my runs/a")
    words = shlex.split(longer.longer(run, settings, updates, ["mine"]))
    assert words[-7:-2] == ["train", "my runs/a/recipe.yaml", "--run", "my runs/a", *ends][-5:]
    assert words[-2:] == ["--plugin", "mine"]


def test_patience_is_no_end_that_can_be_moved() -> None:
    command = longer.longer(Path("a"), TrainingSettings(patience=3), 500)
    assert command == ""


@pytest.mark.parametrize(
    ("losses", "accuracies", "cause"),
    [
        ([0.9, 0.7, 0.6, 0.5], [0.5, 0.6, 0.7, 0.8], ""),
        ([0.9], [0.5], ""),
        (
            [0.9, 0.6, 0.65, 0.8],
            [0.5, 0.7, 0.8, 0.9],
            "validation loss has risen since update 20 (0.6, at the end 0.8)",
        ),
        ([0.9, 0.7, 0.6, 0.5], [0.5, 0.8, 0.7, 0.8], "accuracy, has not improved since update 20"),
    ],
)
def test_longer_training_is_advised_only_while_validations_improve(
    losses: list[float], accuracies: list[float], cause: str
) -> None:
    seen = History("accuracy", higher=True)
    for number, (loss, accuracy) in enumerate(zip(losses, accuracies, strict=True), 1):
        seen = seen.add(10 * number, {"loss": loss, "accuracy": accuracy})
    found = longer.ended_early(seen)
    assert cause in found and bool(found) == bool(cause)


def test_an_overfitted_classifier_is_told_so(tmp_path: Path) -> None:
    validations = [
        {"update": 10 * number, "scores": {"loss": loss, "accuracy": 0.5}}
        for number, loss in enumerate((0.6, 0.7, 0.8, 0.9), 1)
    ]
    index = {"format": FORMAT, "metric": "accuracy", "better": "higher", "validations": validations}
    (tmp_path / "checkpoints.json").write_text(json.dumps(index))
    said = longer.advice("why", tmp_path, "classify", TrainingSettings(max_epochs=4))
    assert "has risen since update 10 (0.6, at the end 0.9)" in said and "weft init classify" in said
    assert "too few" not in said and "max_epochs" not in said
    said = longer.advice("why", tmp_path, "forecast", TrainingSettings(max_epochs=4))
    assert said.endswith("or another model: weft init forecast with --model ridge or network.")
    assert "weft init" not in longer.advice("why", tmp_path, "translate", TrainingSettings(max_epochs=4))


def test_what_is_printed_after_a_short_training_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my recipe.yaml").write_text(SHORT)
    (tmp_path / "text.en").write_text("a b c\nb c a\nc a b\n")
    (tmp_path / "text.de").write_text("a b c\nb c a\nc a b\n")  # to copy it is perfect
    run = tmp_path / "my runs" / "a run"
    monkeypatch.setattr("weft.commands.train.degenerate", lambda samples: f"{len(samples)} bad samples")
    answer = weft("train", tmp_path / "my recipe.yaml", "--run", run, code=0)
    start = shlex.join(program.program()) + " "
    commands = [line.strip().rpartition(" | ")[2] for line in answer.lines]
    typed = [shlex.split(line.removeprefix(start)) for line in commands if line.startswith(start)]
    assert [words[0] for words in typed] == ["train", "evaluate", "predict", "inspect", "show"]
    assert all(str(run) in words for words in typed)
    assert "hint: 3 bad samples; 3 updates may be too few" in answer.out
    further = [word.replace("=1002", "=5") for word in typed[0]]  # 334 times 3 updates
    assert "training.max_updates=5" in further
    again = weft(*further)
    assert again.code == 0 and "after 5 updates" in again.out, again.err
    assert weft(*typed[-1]).code == 0
    scored = weft("evaluate", run, "--data", tmp_path / "text")
    worse = "the model is worse than the baseline" in scored.out
    assert ("hint: by " in scored.out) <= worse  # never within the noise


@pytest.mark.parametrize("installed", [True, False])
def test_the_program_is_named_as_it_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    folder = tmp_path / "of mine"
    folder.mkdir()
    for name in ["python3", *(["weft"] if installed else [])]:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python3"))
    monkeypatch.setenv("PATH", "/nowhere")
    first = [str(folder / "weft")] if installed else [str(folder / "python3"), "-m", "weft"]
    assert shlex.split(program.typed("show", "a b")) == [*first, "show", "a b"]
    monkeypatch.setenv("PATH", str(folder))
    first = ["weft"] if installed else ["python3", "-m", "weft"]
    assert shlex.split(program.typed("show", "a b")) == [*first, "show", "a b"]


@pytest.mark.parametrize("group", ["init", "data", "ngram"])
def test_a_group_without_a_command_prints_its_help(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leave:
        cli.main([group])
    said = capsys.readouterr()
    assert (leave.value.code, said.err) == (0, "")
    assert said.out.startswith(f"Usage: weft {group} [OPTIONS] COMMAND") and "Commands:" in said.out


@pytest.mark.slow
def test_the_demo_needs_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    run = tmp_path / "demo"
    answer = weft("demo", "--run", run, "--minutes", 0.02, "--source", "de", "--target", "pl", code=0)
    for shown in ("from de to pl", "greedy", "beam 5", "BLEU", "Translations:", "Try next:"):
        assert shown in answer.out
    assert (run / "alignment.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (run / "alignment.svg").read_text("utf-8")
    assert (run / "README.md").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--target", "en"), "'en' is the source too; name two languages"),
        (("--target", "xx"), "has no language 'xx'; choose two of en, de, es, fr, pl, ru"),
        (("--minutes", "-1"), "got -1"),
        (("--minutes", "0"), "got 0"),
    ],
)
def test_what_it_cannot_do_it_says_at_once(tmp_path: Path, options: tuple[str, ...], sentence: str) -> None:
    assert sentence in refused(weft("demo", "--run", tmp_path / "demo", *options))
    assert not (tmp_path / "demo").exists()
