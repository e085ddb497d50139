"""Wav files of every sample width, resampling, and lists of recordings."""

import struct
import wave
from pathlib import Path

import numpy as np
import pytest

from weft.data.audio import read_paths, read_spoken, read_wav, resample
from weft.errors import DataError


def write(path: Path, frames: bytes, *, width: int = 2, channels: int = 1, rate: int = 8000) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(frames)
    return path


@pytest.mark.parametrize(
    ("width", "frames"),
    [
        (1, bytes([0, 64, 128, 192])),
        (2, struct.pack("<4h", -(2**15), -(2**14), 0, 2**14)),
        (3, b"\x00\x00\x80\x00\x00\xc0\x00\x00\x00\x00\x00\x40"),
        (4, struct.pack("<4i", -(2**31), -(2**30), 0, 2**30)),
    ],
)
def test_every_width_gives_the_same_samples(tmp_path: Path, width: int, frames: bytes) -> None:
    sound = read_wav(write(tmp_path / "x.wav", frames, width=width, rate=11025))
    assert sound.rate == 11025 and sound.samples.dtype == np.float32
    np.testing.assert_array_equal(sound.samples, [-1, -0.5, 0, 0.5])


def test_channels_become_their_mean(tmp_path: Path) -> None:
    frames = struct.pack("<6h", 100, 300, -8, 8, 0, 32767)
    sound = read_wav(write(tmp_path / "x.wav", frames, channels=2))
    np.testing.assert_allclose(sound.samples * 2**15, [200, 0, 16383.5])


@pytest.mark.parametrize(("rate", "wanted"), [(22050, 16000), (8000, 16000), (44100, 16000), (90, 100)])
def test_a_tone_stays_the_tone(rate: int, wanted: int) -> None:
    cycles = 0.11 * min(rate, wanted)  # a second: well below half of both rates
    time = np.arange(rate) / rate
    found = resample(np.sin(2 * np.pi * cycles * time).astype(np.float32), rate, wanted)
    want = np.sin(2 * np.pi * cycles * np.arange(wanted) / wanted)
    assert len(found) == wanted
    edge = wanted // 5  # the filter includes the silence before and after the tone
    np.testing.assert_allclose(found[edge:-edge], want[edge:-edge], atol=2e-3)


def test_what_the_new_rate_cannot_hold_is_gone() -> None:
    tone = np.sin(2 * np.pi * 11000 * np.arange(44100) / 44100).astype(np.float32)
    assert np.abs(resample(tone, 44100, 16000)[2000:-2000]).max() < 1e-2


def test_a_long_sound_is_resampled_as_its_pieces_are() -> None:
    noise = np.random.default_rng(1).normal(size=90_001).astype(np.float32)
    whole = resample(noise, 8000, 16000)  # more than one block
    part = resample(noise[40_000:70_000], 8000, 16000)
    np.testing.assert_allclose(whole[100_000:120_000], part[20_000:40_000], atol=1e-5)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not a PCM wav file"),
        (b"RIFF\x00\x00", "not a PCM wav file"),
        (b"ID3 this is an mp3", "not a PCM wav file"),
        (None, "cannot be read"),
    ],
)
def test_a_corrupt_file_is_named(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    path = tmp_path / "x.wav"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=f"{path}: {sentence}"):
        read_wav(path)


def test_a_file_that_was_cut_off_and_one_without_samples(tmp_path: Path) -> None:
    path = write(tmp_path / "x.wav", bytes(200))
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(DataError, match=r"100 samples.*got 75"):
        read_wav(path)
    with pytest.raises(DataError, match="recording is empty"):
        read_wav(write(tmp_path / "y.wav", b""))


def test_lists_name_files_beside_them(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("a/1.wav\tone  two\n\nb.wav\tzwei\n")
    found = list(read_spoken(tmp_path / "x.tsv"))
    assert [(one.file, one.text) for one in found] == [
        (tmp_path / "a/1.wav", "one two"),
        (tmp_path / "b.wav", "zwei"),
    ]
    assert (found[1].source, found[1].line) == (tmp_path / "x.tsv", 3)
    assert list(read_paths(tmp_path / "x.tsv")) == [
        (1, tmp_path / "a/1.wav"),
        (3, tmp_path / "b.wav"),
    ]
    assert list(read_paths(tmp_path / "b.wav")) == [(1, tmp_path / "b.wav")]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [("b.wav", "got 1"), ("b.wav\tx\ty", "got 3"), ("b.wav\t ", "no transcript of b.wav")],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "x.tsv").write_text(f"a.wav\tx\n{line}\n")
    with pytest.raises(DataError, match=f"x.tsv:2: .*{sentence}"):
        list(read_spoken(tmp_path / "x.tsv"))
