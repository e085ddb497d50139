"""LibreTranslate's /suggest: kept in the operator's file, or refused as LibreTranslate does."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.shell import refused, weft
from tests.serve.client import ask, post
from tests.serve.conftest import application, listening

GIVEN = {"q": "alpha\u2028beta", "s": "uno\ndos 🙂", "source": "xx", "target": "yy"}


def test_it_is_refused_if_no_file_is_named(address: str) -> None:
    reply = post(f"{address}/suggest", GIVEN)
    assert reply.status == 403 and reply.body == {"error": "suggestions are disabled on this server"}
    assert ask(f"{address}/frontend/settings").body["suggestions"] is False


@pytest.fixture
def keeping(library: None, runs: Path, tmp_path: Path) -> Any:
    file = tmp_path / "suggestions.jsonl"
    with listening(application(runs / "toy", characters=50, suggestions=file)) as where:
        yield where, file


def test_each_is_a_line_of_the_file(keeping: Any) -> None:
    where, file = keeping
    assert ask(f"{where}/frontend/settings").body["suggestions"] is True
    assert (post(f"{where}/suggest", GIVEN).body, file.stat().st_mode & 0o77) == ({"success": True}, 0)
    form = b"q=gamma&s=tres&source=xx&target=yy"
    assert ask(f"{where}/suggest", form, "application/x-www-form-urlencoded").body == {"success": True}
    first, second, end = file.read_text("utf-8").split("\n")
    assert {name: json.loads(first)[name] for name in GIVEN} == GIVEN and end == ""
    assert json.loads(second)["s"] == "tres" and set(json.loads(second)) == {*GIVEN, "time"}


@pytest.mark.parametrize(
    "change",
    [{"q": ""}, {"s": None}, {"source": 5}, {"s": "x" * 51}, {"q": "\ud800"}, {"target": ""}],
    ids=str,
)
def test_what_is_incomplete_or_too_long_is_refused_and_not_kept(keeping: Any, change: dict[str, Any]) -> None:
    where, file = keeping
    assert post(f"{where}/suggest", GIVEN | change).status == 400
    assert not file.exists()


def test_a_file_that_cannot_be_written_or_is_full_is_503(
    keeping: Any, monkeypatch: pytest.MonkeyPatch
) -> None:

    from weft.serve import translation

    where, file = keeping
    file.mkdir()
    assert post(f"{where}/suggest", GIVEN).status == 503
    file.rmdir()
    monkeypatch.setattr(translation, "SUGGESTIONS_BYTES", 3)
    assert [post(f"{where}/suggest", GIVEN).status for _ in range(2)] == [200, 503]
    assert len(file.read_text("utf-8").splitlines()) > 0


def test_a_file_in_no_folder_is_refused_at_the_start(runs: Path, tmp_path: Path) -> None:
    said = refused(weft("serve", runs / "toy", "--suggestions", tmp_path / "no" / "such.jsonl"))
    assert "no such directory" in said
