"""Models of pictures, clips and recordings as programs: they answer as `weft predict`, without Weft."""

import wave
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("onnxscript", reason="pip install -e .[export]")

import weft as package
from tests import toys
from tests.commands.exporting import answers, exported, odd_pictures
from tests.commands.shell import unanswered, weft
from tests.shared import shared_run
from weft.data.audio import Sound, read_sound
from weft.export.formats.onnx import program
from weft.export.programs.recordings import samples_of
from weft.tasks.predictor import Place

pytestmark = pytest.mark.slow  # each export takes seconds

SMALL = "size: 12, num_layers: 1, num_heads: 2"
STRIDED = f"use: strided, {SMALL}"


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


def odd_recordings(folder: Path) -> list[Path]:
    """Recordings of every width, of other rates and channels, and a very short one."""
    folder.mkdir()
    kinds = [(44100, 1, 1), (toys.RATE, 2, 2), (16000, 3, 1), (11025, 4, 2)]
    found = [record(folder / f"{width}.wav", rate, width, channels) for rate, width, channels in kinds]
    return [*found, record(folder / "short.wav", toys.RATE, 2, 1, 0.01)]


def odd_clips(folder: Path) -> list[Path]:
    """A clip of the toy in grey, as numbers from 0 to 1, and as a moving picture."""
    clip = np.load(min((folder.parent / "toy" / "train").glob("*/*.npy")))
    folder.mkdir()
    np.save(folder / "grey.npy", clip[..., 0])
    np.save(folder / "floats.npy", clip.astype(np.float32) / 255)
    first, *others = map(Image.fromarray, clip)
    first.save(folder / "moving.gif", save_all=True, append_images=others)
    return sorted(folder.iterdir())


def clips(folder: Path) -> Path:
    return toys.pictures(folder, clips=True)


def features(folder: Path) -> Path:
    """Captions of given features."""
    recipe, draw = toys.captions(folder), np.random.default_rng(1)
    for path in list((folder / "pictures").iterdir()):
        np.save(path.with_suffix(".npy"), draw.normal(size=(3, 5)))
    for name in ("train.tsv", "valid.tsv"):
        (folder / name).write_text((folder / name).read_text().replace(".png", ".npy"))
    return recipe


class Case(NamedTuple):
    """A recipe and its changes; files to read: those of the toy, and odd ones; options of `weft predict`."""

    make: Callable[[Path], Path]
    changes: Sequence[str]
    files: str
    odd: Callable[[Path], list[Path]] | None
    options: Sequence[Sequence[str]]
    without: Sequence[str] = ()


BEAMS = (("--beam", "1"), ("--beam", "3"))
SCORES = ((), ("--scores",))
FASTER = ("training.optimiser={use: adam, lr: 0.003}", "data.size=12", "training.max_updates=400")
CAPTIONS = (*FASTER, "training.validate_every=400")
PICTURES = ("data.size=12", "training.max_updates=30")
CLIPS = ("model.front={use: convolution, sizes: [3, 5]}", "data.frames=2")
SONGS = ("training.max_epochs=15", "data.sound.normalise=false", "model.front.size=12")
PATCHES = "model.front={use: patches, size: 12, patch: 3}"
READER = f"model.encoder={{use: transformer, {SMALL}}}"
WRITER = f"model.decoder={{use: transformer, {SMALL}}}"


def captioner(*changes: str) -> Case:
    return Case(toys.captions, [*CAPTIONS, *changes], "pictures/*", odd_pictures, BEAMS)


def classifier(*changes: str) -> Case:
    return Case(toys.pictures, [*PICTURES, *changes], "train/*/*.png", odd_pictures, SCORES, ["tokenizers"])


CASES = {
    "captions": captioner(),
    "captions by a Transformer": captioner(PATCHES, READER, WRITER),
    "captions of features": Case(
        features,
        ["model.front={use: regions, size: 7}", "training.max_updates=100", "training.validate_every=100"],
        "pictures/*.npy",
        None,
        BEAMS,
    ),
    "pictures": classifier(),
    "pictures, plain": classifier(
        "model.front={use: convolution, sizes: [5, 7], strides: [2, 1], coordinates: false}"
    ),
    "pictures by a Transformer": classifier(PATCHES, READER),
    "clips": Case(clips, [*CLIPS, "data.size=6"], "train/*/*.npy", odd_clips, SCORES, ["tokenizers"]),
    "clips of one size": Case(clips, CLIPS, "train/*/*.npy", odd_clips, SCORES, ["tokenizers"]),
    "recordings": Case(
        toys.songs,
        [*SONGS, "model.encoder={use: recurrent, sizes: [11], bidirectional: true}"],
        "*.wav",
        None,
        BEAMS,
    ),
    "recordings by a Transformer": Case(
        toys.songs, [*SONGS, f"model.encoder={{{STRIDED}}}", WRITER], "*.wav", None, BEAMS
    ),
}


def compare(
    run: Path, out: Path, files: Sequence[Path], every: Sequence[Sequence[str]], without: Sequence[str] = ()
) -> None:
    """Check that program and run answer the same for these files, in each way, and not one answer for all."""
    names = "".join(f"{file}\n" for file in files)
    for options in every:
        ours = weft("predict", run, *options, stdin=names.encode(), code=0).lines
        found = answers(out, names, *options, without=without)
        assert (found.returncode, found.stdout.splitlines()) == (0, ours), found.stderr
    assert len(set(ours)) > 1  # with scores for labels: the label alone may be one for all


@pytest.mark.parametrize("name", CASES)
def test_the_program_answers_as_predict(name: str, tmp_path: Path) -> None:
    make, changes, pattern, odd, every, without = CASES[name]
    recipe, run = make(tmp_path / "toy"), tmp_path / "run"
    weft("train", recipe, "--run", run, f"data.folder={tmp_path / 'toy'}", *changes, code=0)
    assert "answers equal to Weft's: " in exported(run, tmp_path / "out").out
    files = [*(odd(tmp_path / "odd") if odd else ()), *sorted((tmp_path / "toy").glob(pattern))]
    compare(run, tmp_path / "out", files, every, without)
    model = program(tmp_path / "out")
    assert model(files[-1].read_bytes()) == model(files[-1]) == package.load(run).predict(files[-1])


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of a run of recordings."""
    folder: Path = tmp_path_factory.mktemp("speech") / "out"
    assert "answers equal to Weft's: 11 of 11" in exported(shared_run("speech"), folder).out
    return folder


def test_recordings_of_other_formats_a_list_and_the_bytes_of_one_are_read(
    heard: Path, tmp_path: Path
) -> None:
    run = shared_run("speech")
    toy = run.parent / "toy"
    compare(run, heard, [*odd_recordings(tmp_path / "odd"), *sorted(toy.glob("test*.wav"))], BEAMS)
    file = toy / "test4.wav"
    alone = weft("predict", run, file).lines
    assert answers(heard, f"\n{file}\tdo mi\n", without=()).stdout.splitlines() == ["", *alone]
    assert [program(heard)(file.read_bytes())] == alone


@pytest.mark.filterwarnings("ignore::weft.errors.DataWarning")
def test_frames_equal_those_of_weft(heard: Path, tmp_path: Path) -> None:
    run = shared_run("speech")
    model, ours = program(heard), package.load(run)
    for file in [*odd_recordings(tmp_path / "odd"), *sorted((run.parent / "toy").glob("*.wav"))]:
        sound = read_sound(file)
        samples, rate = samples_of(file)
        assert np.array_equal(samples, sound.samples) and rate == sound.rate
        assert np.abs(model.frames(samples, rate) - ours.parse(Sound(samples, rate), Place("x"))).max() < 1e-4


def generated(make: Callable[[Path], Path], old: str, *changes: str) -> Callable[[Path], Path]:
    """Trains a run on pictures that are generated instead of read."""

    def run(folder: Path) -> Path:
        recipe = make(folder / "toy")
        text = recipe.read_text()
        assert old in text
        recipe.write_text(text.replace(old, "generated: shapes, size: 12, examples: 40"))
        weft("train", recipe, "--run", folder / "run", *changes, code=0)
        return folder / "run"

    return run


SCALED: dict[str, tuple[Callable[[Path], Path], str, str]] = {
    "captions": (
        generated(
            toys.captions,
            "train: train.tsv, valid: valid.tsv, images: pictures, batch_rows: 7",
            "data.valid_examples=23",
        ),
        "20 of 20",
        "CIDEr-D of 23 validation inputs: ",
    ),
    "pictures": (
        generated(
            toys.pictures, "train: train, hold_out: 5", "data.valid_examples=7", "training.max_updates=30"
        ),
        "20 of 20",
        "8-bit weights: ",
    ),
    "recordings": (lambda folder: shared_run("speech"), "11 of 11", "WER of 11 validation inputs: "),
}


@pytest.mark.parametrize("name", SCALED)
def test_int8_says_what_it_costs(name: str, tmp_path: Path) -> None:
    make, equal, said = SCALED[name]
    answer = exported(make(tmp_path), tmp_path / "out", "--int8").out
    assert f"answers equal to Weft's: {equal}" in answer and said in answer, answer
    if name != "recordings":  # a picture is scaled to the size of the model's
        found = answers(tmp_path / "out", f"{odd_pictures(tmp_path / 'odd')[0]}\n", without=())
        assert found.returncode == 0 and len(found.stdout.splitlines()) == 1


def damaged(task: str, folder: Path) -> tuple[list[object], str]:
    """Names of files that cannot be read, and what is said of one."""
    if task == "speech":
        whole = (shared_run(task).parent / "toy" / "test4.wav").read_bytes()
        bad = {
            "text.wav": b"RIFF no sound",
            "short.wav": whole[:-60],
            "empty.wav": whole[:44],
            "none.wav": b"",
        }
        record(folder / "slow.wav", 900, 2, 1)
        record(folder / "prime.wav", 44101, 2, 1)
        names, said = [*bad, "slow.wav", "prime.wav", "gone.wav"], "line 8: "
    else:
        good = min((shared_run("images").parent / "toy" / "train" / "circle").iterdir()).read_bytes()
        bad = {"text.png": b"no picture", "short.png": good[:60], "bad.npy": b"\x93NUMPY\x01\x00"}
        Image.fromarray(np.zeros((24, 12, 3), np.uint8)).save(folder / "large.png")
        np.save(folder / "nan.npy", np.full((12, 12, 3), np.nan))
        names = ["large.png", *bad, "gone.png", "gone.zip/x.png", *["nan.npy"] * (task == "caption")]
        said = "line 1: "
    for name, content in bad.items():
        (folder / name).write_bytes(content)
    return [*(folder / name for name in names), folder], said


@pytest.mark.parametrize(
    ("task", "good"), [("images", "train/circle/*"), ("caption", "pictures/*"), ("speech", "test4.wav")]
)
def test_a_bad_file_does_not_stop_the_others(task: str, good: str, heard: Path, tmp_path: Path) -> None:
    run, out = shared_run(task), heard if task == "speech" else tmp_path / "out"
    if task != "speech":
        exported(run, out)
    bad, said = damaged(task, tmp_path)
    names = "".join(f"{line}\n" for line in [*bad, min((run.parent / "toy").glob(good))])
    found, ours = answers(out, names, without=()), weft("predict", run, stdin=names.encode())
    assert found.returncode == ours.code == 3 and found.stdout == ours.out
    assert len(found.stderr.splitlines()) == len(unanswered(ours)) == len(bad), found.stderr
    assert said in found.stderr and "Traceback" not in found.stderr
    assert task == "speech" or "expected 12 x 12 x 3" in found.stderr


def test_a_recording_longer_than_those_of_training_is_cut_as_by_predict(tmp_path: Path) -> None:
    recipe = toys.songs(tmp_path / "toy")
    encoder = f"model.encoder={{{STRIDED}, positions: learned, max_length: 10}}"  # whole it has no place
    changes = ("model.front.size=12", "data.max_seconds=0.3", "training.max_updates=1", encoder)
    weft("train", recipe, "--run", tmp_path / "run", *changes, code=0)
    exported(tmp_path / "run", tmp_path / "out")
    files = [record(tmp_path / f"{n}.wav", toys.RATE, 2, 1, n / 2) for n in (1, 3)]
    compare(tmp_path / "run", tmp_path / "out", files, [()])
