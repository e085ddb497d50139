"""LibreTranslate's interface: every form of request, its real clients, one answer for one and for many."""

import json
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.commands import corpus
from tests.commands.corpus import WORDS
from tests.commands.shell import refused, weft
from tests.serve.client import ask, post
from tests.serve.conftest import application, listening
from weft.serve.batcher import Batcher
from weft.text.vocabulary import Vocabulary


def lines(count: int) -> list[str]:
    chance = random.Random(3)
    return [" ".join(chance.choices(list(WORDS), k=chance.randint(1, 6))) for _ in range(count)]


def test_a_domain_is_that_of_the_command_and_refused_in_its_words(
    address: str, serving: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"q": "alpha beta", "source": "xx", "target": "yy", "domain": "legal"}
    found = post(f"{address}/translate", fields)
    assert (found.status, found.body["error"]) == (
        400,
        "domain: the model was trained without data.domains; leave it out",
    )
    toy = serving.runs["toy"]
    monkeypatch.setattr(toy.rewriter, "domains", ["legal"])
    one = toy.rewriter.translator(toy.opened.model, toy.rewriter.decoding)
    assert post(f"{address}/translate", fields).body["translatedText"] == one.predict("alpha beta", "legal")
    assert post(f"{address}/translate", {**fields, "domain": ""}).body["translatedText"] == "uno due"
    found = post(f"{address}/translate", {**fields, "domain": "help"})
    assert found.body["error"] == "domain: expected one of legal, got help"


def test_an_empty_text_has_its_place_in_a_list_of_json_alone(address: str) -> None:
    where, fields = f"{address}/translate", {"q": ["alpha", ""], "source": "xx", "target": "yy"}
    assert post(where, fields).body == {"translatedText": ["uno", ""]}
    assert ask(f"{where}?{urlencode(fields, doseq=True)}").status == 400


def test_a_list_is_answered_like_its_members_and_like_the_command_line(address: str, runs: Path) -> None:
    asked = lines(64)
    together = post(f"{address}/translate", {"q": asked, "source": "xx", "target": "yy"}).body[
        "translatedText"
    ]
    alone = [
        post(f"{address}/translate", {"q": one, "source": "xx", "target": "yy"}).body["translatedText"]
        for one in asked
    ]
    assert together == alone
    asked_there = "".join(f"{one}\n" for one in asked).encode()
    assert together == weft("predict", runs / "toy", stdin=asked_there).lines


def test_lines_and_tags_stay_where_they_are(address: str) -> None:
    text = "alpha\n\n beta gamma\r\n"
    answer = post(f"{address}/translate", {"q": text, "source": "xx", "target": "yy"}).body
    assert answer["translatedText"] == "uno\n\n due tre\r\n"


def test_markup_moves_along_the_attention(address: str) -> None:
    for source, wanted in {
        "<p>alpha <b>beta</b> gamma</p>": "<p>uno <b>due</b> tre</p>",
        "<p>alpha <a href='x'>beta <i>gamma</i></a></p>\n<!-- c --><p>delta</p>": (
            "<p>uno <a href='x'>due <i>tre</i></a></p>\n<!-- c --><p>quattro</p>"
        ),
        "<b>alpha</b> &lt; &amp; <script>beta</script>": None,
    }.items():
        marked = {"q": source, "source": "xx", "target": "yy", "format": "html", "alternatives": 1}
        found = post(f"{address}/translate", marked).body
        assert wanted is None or found["translatedText"] == wanted
        assert len(found["alternatives"]) == 1
    assert "<script>beta</script>" in found["translatedText"] and "<b>uno</b>" in found["translatedText"]


def test_each_sentence_is_translated_and_the_spacing_kept(address: str) -> None:
    text = "\tAlpha beta.  Gamma!\r\n\r\n Delta? Zeta eta theta \n"
    once = {one: told(address, one) for one in ("Alpha beta.", "Gamma!", "Delta?", "Zeta eta theta")}
    wanted = text
    for sentence, answer in once.items():
        wanted = wanted.replace(sentence, answer)
    assert told(address, text) == wanted
    assert told(address, "alpha. Beta gamma. Delta", alternatives=1) == " ".join(
        told(address, one) for one in ("alpha.", "Beta gamma.", "Delta")
    )


def test_an_alternative_joins_those_of_the_sentences(address: str) -> None:
    asked = {"source": "xx", "target": "yy", "alternatives": 2}
    parts = [post(f"{address}/translate", {"q": one, **asked}).body for one in ("Alpha beta.", "Gamma!")]
    whole = post(f"{address}/translate", {"q": "Alpha beta.  Gamma!", **asked}).body
    rows = [[one["translatedText"], *one["alternatives"]] for one in parts]
    assert [whole["translatedText"], *whole["alternatives"]] == [
        f"{left}  {right}" for left, right in zip(*rows, strict=True)
    ]


def test_what_libretranslate_takes_is_taken(address: str) -> None:
    asked = {"q": "alpha", "source": "XX", "target": "Yy"}
    for form in (None, "", "text"):
        assert post(f"{address}/translate", {**asked, "format": form}).body == {"translatedText": "uno"}
    settings = ask(f"{address}/frontend/settings").body
    assert settings["charLimit"] == 2000 and settings["language"]["target"] == {"code": "yy", "name": "yy"}
    assert ask(f"{address}/spec").body == ask(f"{address}/openapi.json").body


def told(address: str, text: str, **more: object) -> str:
    answer = post(f"{address}/translate", {"q": text, "source": "xx", "target": "yy", **more})
    return str(answer.body["translatedText"])


def test_alternatives_and_the_language_that_was_found(address: str) -> None:
    asked = {"q": ["alpha", "beta"], "source": "auto", "target": "yy", "alternatives": 2}
    answer = post(f"{address}/translate", asked).body
    assert answer["translatedText"] == ["uno", "due"]
    assert [len(one) for one in answer["alternatives"]] == [2, 2]
    assert answer["detectedLanguage"] == [{"confidence": 100.0, "language": "xx"}] * 2
    assert post(f"{address}/detect", {"q": "alpha"}).body == [{"confidence": 100.0, "language": "xx"}]


def test_what_it_offers(address: str) -> None:
    assert ask(f"{address}/languages").body == [{"code": "xx", "name": "xx", "targets": ["yy"]}]
    for path in ("/health", "/health/live", "/health/ready"):
        assert ask(address + path).status == 200
    described = ask(f"{address}/openapi.json").body
    assert described["openapi"] == "3.1.0"
    assert "/translate" in described["paths"]


class Panic(BaseException):
    """As a compiled library raises it."""


def test_a_request_that_kills_the_worker_stops_no_other(
    address: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    plain = Vocabulary.encode_batch

    def panics(self: Vocabulary, texts: Sequence[str]) -> list[list[int]]:
        if "panic" in texts:
            raise Panic("retry-limit-in-match over")
        return plain(self, texts)

    monkeypatch.setattr(Vocabulary, "encode_batch", panics)
    for _ in range(2):
        failed = post(f"{address}/translate", {"q": "panic", "source": "xx", "target": "yy"})
        assert failed.status == 500 and "the model failed on this input" in failed.body["error"]
        answer = post(f"{address}/translate", {"q": "alpha", "source": "xx", "target": "yy"})
        assert answer.status == 200 and answer.body["translatedText"] == "uno"
        assert ask(f"{address}/health/ready").status == 200
    assert capfd.readouterr().err.count("Panic: retry-limit-in-match over") == 2
    monkeypatch.setattr(Batcher, "trouble", "a batch of the answers does not end")
    stuck = ask(f"{address}/health/ready")
    assert stuck.status == 503 and stuck.body["trouble"] == "a batch of the answers does not end"


def test_libretranslatepy_is_served(address: str) -> None:
    library = pytest.importorskip("libretranslatepy", reason="not installed: pip install --group serve-tests")
    client = library.LibreTranslateAPI(address)
    assert client.translate("gamma alpha", "xx", "yy") == "tre uno"
    assert client.languages()[0]["code"] == "xx"
    assert client.detect("gamma")[0]["language"] == "xx"


def test_deep_translator_is_served(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library = pytest.importorskip("deep_translator", reason="not installed: pip install --group serve-tests")
    from deep_translator import libre

    monkeypatch.setattr(libre, "LIBRE_LANGUAGES_TO_CODES", {"left": "xx", "right": "yy"})
    client = library.LibreTranslator(source="xx", target="yy", api_key="none", custom_url=f"{address}/")
    assert client.translate("gamma alpha") == "tre uno"


def test_notes_say_what_is_copied_or_lost(address: str) -> None:
    asked = {"q": ["alpha 🙂 beta", "2026-11-26", "beta {count}"], "source": "xx", "target": "yy"}
    found = post(f"{address}/translate", asked).body
    first, second, third = found["translatedText"]
    assert "🙂" in first and second == "2026-11-26" and "{count}" in third
    assert found["notes"] == [
        "the vocabulary lacks 🙂, in 1 input, the first 'alpha 🙂 beta'; the answers copy them"
    ]
    assert "notes" not in post(f"{address}/translate", {**asked, "q": "alpha"}).body
    assert told(address, "beta {count} %s") == "due {count} %s"


PARTS = (
    "{use: transformer, size: 12, num_layers: 1, num_heads: 2, inner: 19, positions: learned, max_length: 11}"
)


@pytest.fixture(scope="module")
def short(library: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The server of a run with 11 positions."""
    folder = tmp_path_factory.mktemp("short")
    changes = [f"model.encoder={PARTS}", f"model.decoder={PARTS}", "model.embedding.size=12"]
    recipe = corpus.make(folder / "toy")
    weft("train", recipe, "--run", folder / "run", "training.max_updates=40", *changes, code=0)
    with listening(application(folder / "run", tokens=300)) as where:
        yield where


def test_the_others_of_a_batch_are_answered(short: str) -> None:
    def asked(text: str | list[str]) -> Any:
        return post(f"{short}/translate", {"q": text, "source": "xx", "target": "yy"})

    long = "beta " * 13
    texts = ["alpha", long, "gamma delta", ["alpha", long], ["alpha", "beta"]] * 3
    with ThreadPoolExecutor(len(texts)) as pool:
        replies = list(pool.map(asked, texts))
    assert [one.status for one in replies] == [200, 400, 200, 400, 200] * 3
    said = replies[1].body["error"]
    assert said.startswith("the sentence 'beta beta") and "expected at most 11 positions, got 13" in said
    assert replies[3].body["error"] == said
    assert all(one.body == asked(text).body for one, text in zip(replies, texts, strict=True))


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
