"""Transcribers as ONNX: the program hears recordings as `weft predict` does."""

import wave
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxscript", reason="pip install -e .[export]")

import weft as package
from tests import toys
from tests.commands.exporting import answers, exported
from tests.commands.shell import unanswered, weft
from tests.shared import shared_run
from weft.data.audio import Sound, read_sound
from weft.export.formats.onnx import program
from weft.export.programs.recordings import samples_of
from weft.tasks.predictor import Place

pytestmark = pytest.mark.slow  # each export takes seconds; test_export_onnx.py has the leading one

STRIDED = "{use: strided, size: 12, num_layers: 1, num_heads: 2"
MODELS = {
    "recurrent": ["model.encoder={use: recurrent, sizes: [11], bidirectional: true}"],
    "strided": [
        f"model.encoder={STRIDED}}}",
        "model.decoder={use: transformer, size: 12, num_layers: 1, num_heads: 2}",
    ],
}


@pytest.fixture(scope="module")
def run() -> Path:
    return shared_run("speech")


def record(path: Path, rate: int, width: int, channels: int, seconds: float = 0.7) -> Path:
    """Noise, louder and louder, in another format than those of the songs."""
    draw = np.random.default_rng(width)
    count = round(rate * seconds)
    loud = draw.normal(0, 0.2, (count, channels)).clip(-0.99, 0.99) * np.linspace(0, 1, count)[:, None]
    whole = (loud * 2.0 ** (8 * width - 1)).astype(np.int64)
    data = (whole + 128 if width == 1 else whole).astype("<i8").tobytes()
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        file.writeframes(b"".join(data[at : at + width] for at in range(0, len(data), 8)))
    return path


def odd(folder: Path) -> list[Path]:
    """Recordings of every width, of other rates and channels, and a very short one."""
    folder.mkdir()
    kinds = [(44100, 1, 1), (toys.RATE, 2, 2), (16000, 3, 1), (11025, 4, 2)]
    found = [record(folder / f"{width}.wav", rate, width, channels) for rate, width, channels in kinds]
    return [*found, record(folder / "short.wav", toys.RATE, 2, 1, 0.01)]


def same(run: Path, out: Path, files: list[Path], least: int) -> None:
    """Check that both give the same texts for these files, at least `least` different ones."""
    names = "".join(f"{file}\n" for file in files)
    for beam in ("1", "3"):
        found = answers(out, names, "--beam", beam, without=())
        assert found.returncode == 0, found.stderr
        ours = weft("predict", run, "--beam", beam, stdin=names.encode()).lines
        assert found.stdout.splitlines() == ours and len(set(ours)) >= least, ours


@pytest.fixture(scope="module")
def out(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("speech") / "out"
    assert "answers equal to Weft's: 11 of 11" in exported(run, folder).out
    return folder


def test_a_transcriber(run: Path, out: Path, tmp_path: Path) -> None:
    toy = run.parent / "toy"
    same(run, out, [*odd(tmp_path / "odd"), *sorted(toy.glob("test*.wav"))], 5)
    listed = answers(out, f"\n{toy}/test4.wav\tdo mi\n", without=())
    alone = weft("predict", run, toy / "test4.wav").lines
    assert listed.stdout.splitlines() == ["", *alone]
    assert [program(out)((toy / "test4.wav").read_bytes())] == alone


def test_int8_says_what_it_costs(run: Path, tmp_path: Path) -> None:
    said = exported(run, tmp_path / "out", "--int8").out
    assert "answers equal to Weft's: 11 of 11" in said and "WER of 11 validation inputs: " in said, said


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_other_encoders(changes: list[str], tmp_path: Path) -> None:
    recipe = toys.songs(tmp_path / "toy")
    settings = ("training.max_epochs=15", "data.sound.normalise=false", "model.front.size=12")
    weft("train", recipe, "--run", tmp_path / "run", *settings, *changes, code=0)
    exported(tmp_path / "run", tmp_path / "out")
    same(tmp_path / "run", tmp_path / "out", sorted((tmp_path / "toy").glob("*.wav")), 2)


@pytest.mark.filterwarnings("ignore::weft.errors.DataWarning")
def test_frames_equal_those_of_weft(run: Path, out: Path, tmp_path: Path) -> None:
    model, ours = program(out), package.load(run)
    for file in [*odd(tmp_path / "odd"), *sorted((run.parent / "toy").glob("*.wav"))]:
        sound = read_sound(file)
        samples, rate = samples_of(file)
        assert np.array_equal(samples, sound.samples) and rate == sound.rate
        assert np.abs(model.frames(samples, rate) - ours.parse(Sound(samples, rate), Place("x"))).max() < 1e-4


def test_a_bad_file_does_not_stop_the_others(run: Path, out: Path, tmp_path: Path) -> None:
    good = run.parent / "toy" / "test4.wav"
    whole = good.read_bytes()
    bad = {"text.wav": b"RIFF no sound", "short.wav": whole[:-60], "empty.wav": whole[:44], "none.wav": b""}
    for name, content in bad.items():
        (tmp_path / name).write_bytes(content)
    record(tmp_path / "slow.wav", 900, 2, 1)
    record(tmp_path / "prime.wav", 44101, 2, 1)
    lines = [*(tmp_path / name for name in (*bad, "slow.wav", "prime.wav", "gone.wav")), tmp_path, good]
    names = "".join(f"{line}\n" for line in lines)
    found = answers(out, names, without=())
    ours = weft("predict", run, stdin=names.encode())
    assert found.returncode == ours.code == 3 and found.stdout == ours.out
    assert len(found.stderr.splitlines()) == len(unanswered(ours)) == 8, found.stderr
    assert "line 8: " in found.stderr and "Traceback" not in found.stderr


def test_a_recording_longer_than_the_positions_is_refused(tmp_path: Path) -> None:
    recipe = toys.songs(tmp_path / "toy")
    encoder = f"model.encoder={STRIDED}, positions: learned, max_length: 10}}"
    changes = ("model.front.size=12", "data.max_seconds=0.3", "training.max_updates=1", encoder)
    weft("train", recipe, "--run", tmp_path / "run", *changes, code=0)
    exported(tmp_path / "run", tmp_path / "out")
    long = record(tmp_path / "long.wav", toys.RATE, 2, 1, 0.5)
    found = answers(tmp_path / "out", f"{long}\n", without=())
    assert found.returncode == 3 and "expected at most 40 frames, got 48" in found.stderr
