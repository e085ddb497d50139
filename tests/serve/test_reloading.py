"""A model that changes on disk is taken over, and no request is dropped."""

import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.commands.shell import refused, weft
from tests.serve.client import Reply, ask, events, post
from tests.serve.conftest import application, listening
from weft.store import files, jsonfile, weights

ASKED = {"q": "alpha beta", "source": "xx", "target": "yy"}


def changed(model: Path, update: int) -> bytes:
    """The model with other weights: it writes something else."""
    found = weights.load(model)
    torch.manual_seed(update)
    return weights.pack({name: torch.randn_like(one) for name, one in found.items()}, update=str(update))


def until(true: Callable[[], Any]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def version(address: str, name: str) -> Any:
    listed = {one["name"]: one for one in ask(f"{address}/api/runs").body}
    return listed[name].get("version")


def test_a_changed_model_answers_and_no_request_is_dropped(
    library: None, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from weft.serve import served

    monkeypatch.setattr(served, "RELOAD_SECONDS", 0.05)
    path, young = tmp_path / "toy", tmp_path / "young"
    shutil.copytree(runs / "toy", path)
    shutil.copytree(runs / "toy", young)
    os.rename(young / "model.safetensors", young / "later")
    serving = application(path, young)
    served.Reloader(serving.runs).watch()
    replies: list[Reply] = []
    enough = threading.Event()
    with listening(serving) as address:
        before = version(address, "toy")
        assert (before["update"], len(before["digest"])) == (400, 12)
        assert version(address, "young") is None

        def ask_on() -> None:
            while not enough.is_set():
                replies.append(post(f"{address}/translate", ASKED))

        threads = [threading.Thread(target=ask_on) for _ in range(4)]
        for thread in threads:
            thread.start()
        until(lambda: len(replies) > 20)
        files.replace(path / "model.safetensors", changed(path / "model.safetensors", 401))
        until(lambda: version(address, "toy")["update"] == 401)
        count = len(replies)
        until(lambda: len(replies) > count + 20)
        enough.set()
        for thread in threads:
            thread.join(60)
        assert {one.status for one in replies} == {200}
        answers = [one.body["translatedText"] for one in replies]
        assert answers[0] == "uno due" != answers[-1]
        after = version(address, "toy")
        assert after["digest"] != before["digest"]
        assert after["loaded"] >= before["loaded"]

        (path / "model.safetensors").write_bytes(b"not a model")
        os.rename(young / "later", young / "model.safetensors")
        until(lambda: version(address, "young") is not None)
        assert version(address, "toy") == after
        assert post(f"{address}/translate", ASKED).body == {"translatedText": answers[-1]}
    said = capsys.readouterr().err
    assert said.count("toy: the change on disk is not used: ") == 1
    assert "is damaged" in said


def test_only_a_model_and_vocabularies_that_belong_together_are_taken_over(
    library: None, runs: Path, tmp_path: Path, capsys: Any
) -> None:
    from weft.serve.served import Reloader, named

    path = tmp_path / "toy"
    shutil.copytree(runs / "toy", path)
    reloader = Reloader(named([path], "cpu", ()))
    assert not list(reloader.changed())
    model = path / "model.safetensors"
    found, fits = weights.read(model)
    (vocabulary,) = (path / name for name in fits.kept if "source" in name)
    own = vocabulary.read_bytes()
    vocabulary.write_bytes(own + b"\n")  # of a training that has begun anew: its model comes later
    assert not list(reloader.changed()) and not list(reloader.changed())
    assert capsys.readouterr().err.count("model.safetensors: was not trained with") == 1
    fits.kept[vocabulary.name] = hashlib.sha256(own + b"\n").hexdigest()
    model.write_bytes(weights.pack(found, update="402", fits=jsonfile.plain(fits)))
    (fresh,) = reloader.changed()
    assert fresh.version is not None and fresh.version.update == 402
    reloader.runs["toy"] = fresh
    name = next(iter(found))
    wrong = {**found, name: torch.full_like(found[name], torch.nan)}
    model.write_bytes(weights.pack(wrong, update="403", fits=jsonfile.plain(fits)))
    assert not list(reloader.changed())
    assert f"numbers of {name} are not finite" in capsys.readouterr().err
    recipe = (path / "recipe.yaml").read_text()
    model.write_bytes(weights.pack(found, update="404", fits=jsonfile.plain(fits)))
    (path / "recipe.yaml").write_text(recipe.replace("gru", "lstm", 1))
    assert not list(reloader.changed()) and "is not used" in capsys.readouterr().err
    (path / "recipe.yaml").write_text(recipe)
    assert [run.version and run.version.update for run in reloader.changed()] == [404]


def test_an_error_that_nobody_foresaw_is_no_end_of_the_server(
    library: None, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from weft.serve import served
    from weft.serve.served import Reloader

    path = tmp_path / "toy"
    shutil.copytree(runs / "toy", path)
    reloader = Reloader(served.named([path], "cpu", ()))

    def failing(*given: object, **named: object) -> None:
        raise RuntimeError("in a kernel")

    monkeypatch.setattr(served, "open_run", failing)
    files.replace(path / "model.safetensors", changed(path / "model.safetensors", 401))
    assert not list(reloader.changed()) and not list(reloader.changed())
    assert capsys.readouterr().err == "toy: the change on disk is not used: in a kernel\n"


GLOSSARY_ASKED = {"q": ["alpha beta", "gamma"], "source": "xx", "target": "yy"}


@pytest.fixture
def terms(tmp_path: Path) -> Path:
    path = tmp_path / "terms.tsv"
    path.write_text("beta\tnove\n")
    return path


def translated(address: str) -> Any:
    return post(f"{address}/translate", GLOSSARY_ASKED).body["translatedText"]


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
