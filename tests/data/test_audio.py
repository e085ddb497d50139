"""Recordings of every format, resampling, and lists of recordings."""

import io
import struct
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
import soundfile

from weft.data.audio import read_paths, read_sound, read_spoken, seconds_of
from weft.data.sound import resample
from weft.errors import DataError, DataWarning


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
    sound = read_sound(write(tmp_path / "x.wav", frames, width=width, rate=11025))
    assert sound.rate == 11025 and sound.samples.dtype == np.float32
    np.testing.assert_array_equal(sound.samples, [-1, -0.5, 0, 0.5])


def test_channels_become_their_mean(tmp_path: Path) -> None:
    frames = struct.pack("<6h", 100, 300, -8, 8, 0, 32767)
    with pytest.warns(DataWarning, match=r"x\.wav: has 2 channels; of such files the mean is read"):
        sound = read_sound(write(tmp_path / "x.wav", frames, channels=2))
    np.testing.assert_allclose(sound.samples * 2**15, [200, 0, 16383.5])


def test_channels_that_cancel_each_other_are_not_read_as_silence(tmp_path: Path) -> None:
    wave = np.sin(np.arange(800) / 9) / 2
    soundfile.write(tmp_path / "x.wav", np.stack([wave, -wave], 1), 8000)
    with pytest.raises(
        DataError, match=r"x\.wav: its channels cancel each other.*ffmpeg -i .* 'pan=mono\|c0=c0'"
    ):
        read_sound(tmp_path / "x.wav")
    soundfile.write(tmp_path / "y.wav", np.zeros((800, 2)), 8000)
    with pytest.warns(DataWarning):
        assert not read_sound(tmp_path / "y.wav").samples.any()


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


TONE = (0.3 * np.sin(np.arange(16000) / 20)).astype(np.float32)


@pytest.mark.parametrize("length", [0, 0xFFFFFFFF, 0x7FFFFFFF, 0x7FFFF000])
@pytest.mark.parametrize("extensible", [False, True])
def test_a_wav_file_from_a_pipe_does_not_know_its_length(
    tmp_path: Path, length: int, extensible: bool
) -> None:
    out = io.BytesIO()
    soundfile.write(out, TONE, 16000, format="WAVEX" if extensible else "WAV", subtype="PCM_16")
    content = bytearray(out.getvalue())
    at = content.index(b"data") + 4
    content[at : at + 4] = struct.pack("<I", length)
    content[4:8] = struct.pack("<I", length)
    (tmp_path / "x.wav").write_bytes(content)
    np.testing.assert_allclose(read_sound(tmp_path / "x.wav").samples, TONE, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.wav", b"", "the file is empty"),
        ("x.wav", b"RIFF\x00\x00", "damaged, or no recording"),
        ("x.wav", b"some text\n", "damaged, or no recording"),
        ("x.mp3", b"ID3 this is an mp3", "damaged, or no recording"),
        ("x.wav", b"\x89PNG\r\n\x1a\n", "expected a recording, got a PNG picture"),
        (
            "my memo.m4a",
            b"\0\0\0\x18ftypM4A \0",
            r"needs PyAV \(pip install .*\); or convert it: ffmpeg -i '\S*my memo.m4a' '\S*my memo.wav'",
        ),
        ("x.aac", b"\xff\xf1\x50\x80", r"needs PyAV .*: ffmpeg -i \S*x.aac \S*x.wav"),
        ("x.wav", None, "no such file"),
    ],
)
def test_a_corrupt_file_is_named(
    tmp_path: Path, name: str, content: bytes | None, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    monkeypatch.setitem(sys.modules, "av", None)
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=f"{path}: {sentence}"):
        read_sound(path)


def test_a_file_that_was_cut_off_and_one_without_samples(tmp_path: Path) -> None:
    path = write(tmp_path / "x.wav", bytes(200))
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(DataError, match=r"200 bytes of samples.*got 150"):
        read_sound(path)
    with pytest.raises(DataError, match="recording is empty"):
        read_sound(write(tmp_path / "y.wav", b""))


def test_silence_at_a_low_rate_counts_as_long_as_it_becomes(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "x.flac", np.zeros(1_200_000, np.int16), 1000)
    assert (tmp_path / "x.flac").stat().st_size < 5000
    with pytest.raises(DataError, match="unpacks to more than 300 times its size"):
        read_sound(tmp_path / "x.flac")
    soundfile.write(tmp_path / "y.flac", np.zeros(60_500, np.int16), 1000)
    assert seconds_of(tmp_path / "y.flac") == 60.5 == read_sound(tmp_path / "y.flac").seconds


@pytest.mark.parametrize("form", ["FLAC", "AIFF", "MP3", "RF64"])
def test_half_a_file_is_refused(tmp_path: Path, form: str) -> None:
    out = io.BytesIO()
    soundfile.write(out, TONE, 16000, format=form)
    (tmp_path / "x").write_bytes(out.getvalue()[: len(out.getvalue()) // 2])
    with pytest.raises(DataError, match=r"x: .*(cut off|lost sync)"):
        read_sound(tmp_path / "x")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_samples_that_are_no_numbers_are_refused(tmp_path: Path, value: float) -> None:
    samples = TONE.copy()
    samples[5] = value
    soundfile.write(tmp_path / "x.wav", samples, 16000, subtype="FLOAT")
    with pytest.raises(DataError, match=r"x\.wav: has samples that are not finite"):
        read_sound(tmp_path / "x.wav")


@pytest.mark.parametrize("rate", [500, 2_000_000])
def test_a_rate_that_no_recording_has_is_refused(tmp_path: Path, rate: int) -> None:
    path = write(tmp_path / "x.wav", bytes(200), rate=rate)
    with pytest.raises(DataError, match=f"expected 1,000 to 768,000 Hz, got {rate:,} Hz"):
        read_sound(path)


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
    for name in ("b.wav", "B.FLAC", "b.m4a"):
        assert list(read_paths(tmp_path / name)) == [(1, tmp_path / name)]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [("b.wav", "got 1"), ("b.wav\tx\ty", "got 3"), ("b.wav\t ", "no transcript of b.wav")],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "x.tsv").write_text(f"a.wav\tx\n{line}\n")
    with pytest.raises(DataError, match=f"x.tsv:2: .*{sentence}"):
        list(read_spoken(tmp_path / "x.tsv"))
