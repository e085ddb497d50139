"""Files are written atomically: an error or a concurrent writer never leaves a partial file."""

import errno
import os
from pathlib import Path

import pytest

from weft.errors import CheckpointError
from weft.store import files, jsonfile


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), ValueError("wrong"), KeyboardInterrupt()])
def test_an_error_while_writing_leaves_the_older_file(tmp_path: Path, error: BaseException) -> None:
    (tmp_path / "a").write_bytes(b"older")
    with pytest.raises(type(error)), files.replacing(tmp_path / "a") as file:
        file.write(b"half")
        raise error
    assert (tmp_path / "a").read_bytes() == b"older"
    assert names(tmp_path) == ["a"]


def test_a_reader_sees_the_older_file_until_the_new_one_is_complete(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"older")
    with files.replacing(tmp_path / "a") as file:
        file.write(b"newer")
        file.flush()
        assert (tmp_path / "a").read_bytes() == b"older"
    assert (tmp_path / "a").read_bytes() == b"newer"


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    with files.replacing(tmp_path / "a") as one, files.replacing(tmp_path / "a") as other:
        one.write(b"1" * 5)
        other.write(b"2" * 3)
    assert (tmp_path / "a").read_bytes() == b"1" * 5  # the last writer to finish
    assert names(tmp_path) == ["a"]


def test_the_first_to_create_a_file_wins(tmp_path: Path) -> None:
    assert files.create(tmp_path / "a", b"first")
    assert not files.create(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"first"
    assert names(tmp_path) == ["a"]


def test_a_file_has_the_permissions_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    jsonfile.save(tmp_path / "a.json", {"ä": 1})
    assert (tmp_path / "a.json").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert jsonfile.read(tmp_path / "a.json") == {"ä": 1}


def test_json_that_cannot_be_written_is_an_error_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    jsonfile.save(tmp_path / "a.json", {})
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match=r"a\.json: .*No space left"):
        jsonfile.save(tmp_path / "a.json", {"b": 1})
    assert jsonfile.read(tmp_path / "a.json") == {}
    assert names(tmp_path) == ["a.json"]
