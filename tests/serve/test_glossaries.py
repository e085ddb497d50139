"""weft serve --glossary: /translate and the page answer as weft predict; a changed file is read again."""

from pathlib import Path
from typing import Any

import pytest

from tests.commands.shell import refused, weft
from tests.serve.client import events, post
from tests.serve.conftest import application, listening
from tests.serve.test_reloading import until

ASKED = {"q": ["alpha beta", "gamma"], "source": "xx", "target": "yy"}


@pytest.fixture
def terms(tmp_path: Path) -> Path:
    path = tmp_path / "terms.tsv"
    path.write_text("beta\tnove\n")
    return path


def translated(address: str) -> Any:
    return post(f"{address}/translate", ASKED).body["translatedText"]


def test_translate_and_the_page_answer_as_predict_and_a_changed_file_is_read_again(
    library: None, runs: Path, terms: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from weft.serve import served

    monkeypatch.setattr(served, "RELOAD_SECONDS", 0.05)
    serving = application(runs / "toy", runs / "label", glossaries=[f"toy={terms}"])
    served.Reloader(serving.runs).watch()
    with listening(serving) as address:
        first = translated(address)
        assert first == weft("predict", runs / "toy", "--glossary", terms, stdin=b"alpha beta\ngamma\n").lines
        assert "nove" in first[0].split() and first[1] == "tre"
        asked = {"run": "toy", "text": "alpha beta"}
        done = events(post(f"{address}/api/watch", asked).body)[-1]
        assert (done["text"], done["terms"], done["tree"]) == (first[0], ["nove"], [])
        assert done["words"] == first[0].split()
        plain = events(post(f"{address}/api/watch", asked | {"text": "gamma"}).body)[-1]
        assert (plain["text"], plain["terms"]) == ("tre", []) and plain["tree"]

        terms.write_text("beta\tsette\n")
        until(lambda: "sette" in translated(address)[0].split())
        terms.write_text("beta\tsette\ngamma\n")
        until(lambda: "is not used" in (said := capsys.readouterr().err) and "terms.tsv:2:" in said)
        assert "sette" in translated(address)[0].split()


def test_a_damaged_file_or_one_that_no_run_can_use_is_refused_at_the_start(runs: Path, terms: Path) -> None:
    def start(*more: Any) -> str:
        return refused(weft("serve", *more, "--port", "0"))

    assert "translates or summarises, got label" in start(runs / "label", "--glossary", terms)
    assert "got label" in start(runs / "toy", runs / "label", "--glossary", f"label={terms}")
    assert "got two" in start(runs / "toy", "--glossary", terms, "--glossary", terms)
    terms.write_text("beta\tnove\n\nalpha\n")
    assert "terms.tsv:3: expected TERM TAB TRANSLATION" in start(runs / "toy", "--glossary", terms)
