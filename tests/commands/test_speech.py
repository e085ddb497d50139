"""Speech from recordings to text, as a user types it; tones stand for letters, so that nothing need speak."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import weft as package
from tests.commands.shell import evaluated, refused, trained_in, untouched, weft
from weft.data.audio import Sound, read_sound
from weft.tasks.speech.data import parts_of
from weft.tasks.speech.predictor import rates

TASK = "speech"


def test_it_beats_the_most_frequent_answer_and_says_what_is_wrong(run: Path, tmp_path: Path) -> None:
    answer, found = evaluated(run, "--output", tmp_path / "out.txt")
    assert found["scores"]["WER"]["value"] < min(found["scores"]["WER"]["baselines"].values()) / 2
    counts = found["counts"]
    edits = counts["substitutions"] + counts["deletions"] + counts["insertions"]
    assert found["scores"]["WER"]["value"] == pytest.approx(100 * edits / counts["words"])
    assert "baseline: most frequent answer (" in answer.out and "13 recordings" in answer.out
    assert len((tmp_path / "out.txt").read_text().splitlines()) == 13


def test_the_error_rate_of_a_language_without_spaces_is_that_of_characters() -> None:
    assert [one.name for one in rates(["好天气", "我喜欢茶"])] == ["CER", "WER"]
    assert [one.name for one in rates(["fine weather", "I like tea"])] == ["WER", "CER"]


def test_one_file_a_list_and_python_give_the_same_text(run: Path, tmp_path: Path) -> None:
    toy = run.parent / "toy"
    drawn = ("--pictures", tmp_path / "p", "--max-pictures", "1")
    listed = weft("predict", run, toy / "test.tsv", *drawn, code=0)
    alone = weft("predict", run, toy / "test4.wav")
    piped = weft("predict", run, stdin=f"{toy / 'test4.wav'}\n".encode())
    assert [listed.lines[4]] == alone.lines == piped.lines == [package.load(run).predict(toy / "test4.wav")]
    assert (tmp_path / "p" / "1.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "p" / "2.png").exists()
    assert weft("predict", run, toy / "test4.wav", "--prefix", "mi so").lines[0].startswith("mi so")
    scored = weft("predict", run, toy / "test4.wav", "--nbest", "2", "--scores").lines
    assert len(scored) == 2 and float(scored[0].split("\t")[0]) >= float(scored[1].split("\t")[0])


def test_a_penalty_on_what_was_not_heard_counts_the_states_of_a_pyramid(run: Path) -> None:
    path = run.parent / "toy" / "valid0.wav"
    heard = weft("predict", run, path, "--set", "coverage=0.2", "--scores")
    plain = weft("predict", run, path, "--scores")
    assert heard.code == 0, heard.err
    assert float(heard.out.split("\t")[0]) < float(plain.out.split("\t")[0])  # never above 0


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("broken.wav\tdo\n", "broken.wav: damaged, or no recording"),
        ("missing.wav\tdo\n", "missing.wav: no such file"),
        ("train0.wav\t\n", "no transcript of train0.wav"),
        ("train0.wav\n", "got 1"),
    ],
)
def test_bad_recordings_are_named_and_nothing_is_written(
    run: Path, tmp_path: Path, line: str, kind: str
) -> None:
    shutil.copytree(run.parent / "toy", tmp_path / "toy")
    train = tmp_path / "toy" / "train.tsv"
    (tmp_path / "toy" / "broken.wav").write_bytes(b"RIFF no sound")
    train.write_text("".join([*train.read_text().splitlines(True)[1:3], line]))
    checked = weft("data", "check", "--task", "speech", train)
    assert checked.code == 1 and "train.tsv:3:" in checked.out and kind in checked.out
    assert "fix the errors first (1)" in checked.out
    made = trained_in(tmp_path / "toy" / "speech.yaml")
    assert "train.tsv:3:" in refused(made) and kind in made.err
    assert not list((tmp_path / "toy").rglob("*.safetensors"))
    init = ("init", "speech", "--train", train, "-o", tmp_path / "mine.yaml")
    assert "train.tsv:3:" in untouched(tmp_path, lambda: weft(*init))


def test_a_damaged_recording_stops_predict_with_one_sentence(run: Path, tmp_path: Path) -> None:
    (tmp_path / "x.wav").write_bytes(b"RIFF no sound")
    assert "x.wav: damaged, or no recording" in refused(weft("predict", run, tmp_path / "x.wav"))


def test_a_long_recording_is_cut_at_its_pauses(run: Path) -> None:
    """The answer is that of the parts, one after the other, as if each was a recording."""
    transcriber, toy = package.load(run), run.parent / "toy"
    sounds = [read_sound(toy / f"test{n}.wav") for n in range(6)]
    rate, each = sounds[0].rate, max(one.seconds for one in sounds)
    pause = np.zeros(round(2 * each * rate), np.float32)
    samples = np.concatenate([part for one in sounds for part in (one.samples, pause)][:-1])
    transcriber._longest = 4 * each  # type: ignore[attr-defined]
    parts = parts_of(transcriber._sound.of(Sound(samples, rate)), transcriber._sound, 4 * each)  # type: ignore[attr-defined]
    assert len(parts) == 6
    words = [transcriber.predict(one) for one in parts]
    assert transcriber.predict(Sound(samples, rate)) == " ".join(filter(None, words))
    assert len(transcriber.transcribe([Sound(samples, rate)])[0][0].tokens) > 6
