"""Whatever comes, a clear answer goes out, never a 5xx, and the next request is answered."""

import json
import os
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.serve.client import ASKED, ask, post
from tests.serve.conftest import listening, served
from weft.serve import schemas
from weft.serve.limits import Refusal, ServerLimits


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "q: expected text or a list of texts, got nothing"),
        ({"q": 7}, "q: expected text or a list of texts, got 7"),
        ({"q": ["a", None]}, "q: expected .* got nothing"),
        ({"q": []}, "got an empty list"),
        ({"q": "a" * 2001}, "at most 2,000 characters, got 2,001"),
        ({"q": "a" * 100_000}, "got 100,000"),
        ({"q": ["a"] * 71}, "at most 70 texts, got 71"),
        ({"q": "a\n" * 513}, "at most 512 sentences, got 513"),
        ({"q": ""}, "q: expected some text, got an empty text"),
        ({"q": "alpha \ud800"}, r"character 7 is half of a surrogate pair"),
        ({"q": "alpha", "target": "zz"}, "available: xx to yy"),
        ({"q": "alpha", "source": "zz"}, "available: xx to yy"),
        ({"q": "alpha", "target": None}, "target: expected a language code"),
        ({"q": "alpha", "format": "pdf"}, 'format: expected text or html, got "pdf"'),
        ({"q": "alpha", "alternatives": 99}, "alternatives: expected a whole number from 0 to 15, got 99"),
        ({"q": "alpha", "alternatives": "2.5"}, "alternatives: expected a whole number from 0 to 15"),
        ({"q": "alpha", "alternatives": ""}, "alternatives: expected a whole number from 0 to 15"),
        ({"q": "alpha", "alternatives": True}, "alternatives: .*, got true or false"),
        ({"q": "alpha", "format": "\ud800"}, "valid Unicode"),
    ],
)
def test_a_translation_is_refused_in_one_sentence(
    address: str, fields: dict[str, Any], sentence: str
) -> None:
    reply = post(f"{address}/translate", {"source": "xx", "target": "yy", **fields})
    assert reply.status == 400
    with pytest.raises(ValueError, match=sentence):
        raise ValueError(reply.body["error"])


@pytest.mark.parametrize(
    "text", ["   ", "\n\n", "\0", "\x07\x1b[31m", "\u202e\ufeff", "💥" * 9, "अआ ابت 漢字"]
)
def test_odd_texts_are_answered(address: str, text: str) -> None:
    reply = post(f"{address}/translate", {"q": text, "source": "xx", "target": "yy"})
    assert reply.status == 200
    assert isinstance(reply.body["translatedText"], str)
    assert post(f"{address}/v1/completions", {"prompt": text, "max_tokens": 2}).status == 200


LISTS = [
    (form, name)
    for form in vars(schemas).values()
    if isinstance(form, type) and issubclass(form, schemas.Fields)
    for name, field in form.model_fields.items()
    if "list[" in str(field.annotation)
]


@pytest.mark.parametrize(("form", "name"), LISTS)
@pytest.mark.parametrize("item", [None, [], {}, [[]], [None] * 99])
def test_a_list_of_mistakes_is_read_up_to_the_first(form: type[schemas.Fields], name: str, item: Any) -> None:
    with pytest.raises(ValidationError) as few:
        form.model_validate({name: [item]}, strict=True)
    with pytest.raises(ValidationError) as many:
        form.model_validate({name: [item] * 1000}, strict=True)
    assert many.value.error_count() <= few.value.error_count()


def test_a_client_that_leaves_while_it_sends_leaves_no_traceback(
    address: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for path in ("/translate", "/translate_file", "/v1/completions", "/predict", "/suggest"):
        with socket.create_connection((urlsplit(address).hostname, urlsplit(address).port)) as line:
            line.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{{".encode())
    assert post(f"{address}/translate", {"q": "alpha", "source": "xx", "target": "yy"}).status == 200
    assert "Traceback" not in capfd.readouterr().err


def test_forms_in_another_encoding_are_refused_not_changed(address: str) -> None:
    form, languages = "application/x-www-form-urlencoded", "source=xx&target=yy"
    for text in ("caf%E9", "caf\xe9", "%ED%A0%80"):
        reply = ask(f"{address}/translate", f"q={text}&{languages}".encode("latin-1"), form)
        assert reply.status == 400 and "the form is not UTF-8" in reply.body["error"]
    reply = ask(f"{address}/translate?q=caf%E9&{languages}")
    assert reply.status == 400 and "the query string is not UTF-8" in reply.body["error"]
    for text in ("alpha+%C3%A9", "alpha+\u00e9", "alpha%EF%BF%BD"):
        assert ask(f"{address}/translate", f"q={text}&{languages}".encode(), form).status == 200


def test_bodies_that_are_none(address: str) -> None:
    where = f"{address}/translate"
    for body, kind in (
        (b"{", "application/json"),
        (b"[1]", "application/json"),
        (b"[" * 9000, "application/json"),
        (b"\xff\xfe", "application/json"),
        (b"no edge", "multipart/form-data"),
        (b"no edge", "multipart/form-data; boundary=x"),
        (b"q=%ff", "application/x-www-form-urlencoded"),
    ):
        assert ask(where, body, kind).status == 400, (body, kind)
    assert ask(f"{address}/nowhere").status == 404
    refused = ask(f"{address}/translate", method="DELETE")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD, POST")
    for path in ("/", "/health", "/openapi.json", "/v1/models"):  # as monitors and curl -I ask
        assert ask(f"{address}{path}", method="HEAD").status == 200


@pytest.mark.parametrize("size", [1_000_001, 2_000_000, 15_000_000])
def test_a_body_that_is_too_large_is_answered_after_all_is_sent(address: str, size: int) -> None:
    reply = ask(f"{address}/translate", b"x" * size, "application/json")
    assert reply.status == 413
    assert "larger than 1,000,000 bytes" in reply.body["error"]


def test_predictions_are_given_or_refused(address: str) -> None:
    where = f"{address}/predict"
    found = post(where, {"run": "label", "inputs": ["this was great", "it was awful"]}).body["outputs"]
    assert [one["label"] for one in found] == ["good", "bad"]
    assert sum(found[0]["probs"].values()) == pytest.approx(1, abs=1e-5)
    (tags,) = post(where, {"run": "tags", "inputs": "the dog"}).body["outputs"]
    assert [one["word"] for one in tags] == ["the", "dog"]
    for fields, sentence in (
        ({"run": "label"}, "inputs: expected a text"),
        ({"run": "label", "inputs": ""}, "inputs: the text is empty"),
        ({"run": "toy", "inputs": "alpha"}, "use /translate"),
        ({"run": "none", "inputs": "alpha"}, "available: toy, prose, label, tags, young"),
    ):
        reply = post(where, fields)
        assert reply.status in (400, 404)
        assert sentence in reply.body["error"]


def test_a_run_in_training_shows_its_curves_alone(address: str) -> None:
    assert post(f"{address}/predict", {"run": "young", "inputs": "x"}).status == 409
    assert post(f"{address}/api/watch", {"run": "young", "text": "x"}).status == 409
    curves = ask(f"{address}/api/curves?run=young").body["curves"]
    assert [point[0] for point in curves["validation loss"]] == [200, 400]
    about = {one["name"]: one for one in ask(f"{address}/api/runs").body}
    assert about["young"]["ready"] is False
    assert about["toy"]["targets"] == ["yy"]


PATHS = ["/translate", "/detect", "/predict", "/v1/completions", "/api/watch"]
NAMES = [
    "q",
    "source",
    "target",
    "format",
    "alternatives",
    "prompt",
    "max_tokens",
    "temperature",
    "top_p",
    "n",
]
NAMES += ["stop", "seed", "logprobs", "echo", "stream", "model", "run", "inputs", "text", "prefix", "beam"]
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
KNOWN = st.sampled_from(
    ["toy", "prose", "label", "tags", "young", "xx", "yy", "auto", "text", "html", "the cat", 1]
)
VALUES = st.recursive(PLAIN | KNOWN, lambda inner: st.lists(inner, max_size=3), max_leaves=4)


@settings(max_examples=80)
@given(st.sampled_from(PATHS), st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=7))
def test_no_request_makes_the_server_fail(address: str, path: str, fields: dict[str, Any]) -> None:
    reply = ask(address + path, json.dumps(fields).encode(), "application/json")
    assert reply.status < 500, (fields, reply)
    if reply.status != 200:
        assert reply.body["error"]


@settings(max_examples=40)
@given(
    st.sampled_from(PATHS), st.binary(max_size=60), st.sampled_from(["json", "x-www-form-urlencoded", "x"])
)
def test_no_body_makes_the_server_fail(address: str, path: str, body: bytes, kind: str) -> None:
    assert ask(address + path, body, f"application/{kind}").status < 500


def test_the_counts_name_no_client_and_no_text(address: str, serving: Any) -> None:
    post(f"{address}/translate", {"q": "alpha", "source": "xx", "target": "yy"})
    ask(f"{address}/secret-place")
    counts = ask(f"{address}/metrics").body
    assert 'weft_requests_total{path="/translate",status="200"}' in counts
    assert "secret" not in counts
    assert "127.0.0.1" not in counts
    assert serving.batcher.waiting == 0


def test_a_text_of_too_many_tokens_is_refused_before_it_is_computed(address: str) -> None:
    asked = {"source": "xx", "target": "yy"}
    long = post(f"{address}/translate", {**asked, "q": "alpha " * 301})
    assert long.status == 400
    assert "q: expected at most 300 tokens per text, got 301" in long.body["error"]
    many = post(f"{address}/api/watch", {"run": "toy", "text": "alpha " * 301})
    assert "text: expected at most 300 tokens per text, got 301" in many.body
    prompt = post(f"{address}/v1/completions", {"prompt": "the " * 400, "max_tokens": 1})
    assert prompt.status == 400
    assert "prompt: expected at most 300 tokens per text" in prompt.body["error"]["message"]


def test_a_request_of_too_many_tokens_is_refused() -> None:
    limits = ServerLimits(tokens=7)

    def check(*texts: str) -> None:
        limits.check_tokens(lambda text: range(int(text)), texts, "q")

    check(*["7"] * 16)
    with pytest.raises(
        Refusal, match="expected at most 7 tokens per text, got 8 in text 2; shorten or split it"
    ):
        check("7", "8")
    with pytest.raises(Refusal, match="q: expected at most 112 tokens per request, got 113; send less"):
        check(*["7"] * 16, "1")


def test_a_long_log_of_a_training_is_read_once(runs: Path, tmp_path: Path, library: None) -> None:
    from weft.serve.served import LAST_BYTES, ServedRun

    shutil.copytree(runs / "toy", tmp_path / "toy")
    log = tmp_path / "toy" / "metrics.jsonl"
    last = {"event": "validation", "update": 9, "samples": [{"source": "the last one"}]}
    log.write_text("x" * 2 * LAST_BYTES + "\n" + json.dumps(last) + "\n")
    run = ServedRun(tmp_path / "toy", "toy", "cpu", ())
    assert run.examples() == ["the last one"]
    about = log.stat()
    log.write_text(log.read_text().replace("last", "same"))
    os.utime(log, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert run.examples() == ["the last one"]  # the file has not changed, as far as its time says
    os.utime(log)
    assert run.examples() == ["the same one"]


def field(name: str, make: Callable[[int], Any], path: str = "/translate", **more: str) -> Any:
    """The address and the JSON of a request with one long field."""
    return lambda size: (path, json.dumps({**ASKED, **more, name: make(size)}).encode())


READERS = {
    "format": field("format", lambda size: "x" * size),
    "backquotes in a field": field("format", lambda size: "`$." * (size // 3)),
    "unknown fields": lambda size: ("/v1/completions", json.dumps({"x" * size: 1}).encode()),
    "a list of nothing": field("q", lambda size: [None] * (size // 5)),
    "pairs": field("drop", lambda size: [[0, 1]] * (size // 8), "/api/watch"),
    "token numbers": field("prompt", lambda size: [[1]] * (size // 5), "/v1/completions"),
    "lists without token numbers": field("prompt", lambda size: [[]] * (size // 4), "/v1/completions"),
    "one word": field("q", lambda size: "a" * (size // 9)),
    "zeros of a placeholder": field("q", lambda size: "%" + "0" * (size // 9)),
    "spaces in HTML": field("q", lambda size: "a" + " " * (size // 90) + "b", format="html"),
    "raised text in HTML": field("q", lambda size: "<sup>" * (size // 45), format="html"),
    "a file in base64": field("inputs", lambda size: "A" * size, "/predict"),
}


@pytest.fixture(scope="module")
def reading(library: None, runs: Path) -> Any:
    from weft.serve.guard import Access

    with listening(served(runs, Access())) as where:
        yield where


@pytest.mark.parametrize("name", READERS)
def test_four_times_the_request_takes_at_most_about_four_times_as_long(reading: str, name: str) -> None:
    def seconds(size: int) -> float:
        path, data = READERS[name](size)
        begun = time.process_time()
        assert ask(reading + path, data, "application/json").status < 500
        return time.process_time() - begun

    short = min(seconds(45_000) for _ in range(2))
    long = min(seconds(180_000) for _ in range(2))
    assert long < 8 * short + 0.2, (short, long)  # 16 times, if it were quadratic
    assert long < 2
