"""What an evaluation reads from /v1/completions equals a direct computation in float64."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands.prose import GPT, RECIPE, write
from tests.commands.shell import weft
from tests.serve.client import Reply, ask, events, post
from tests.serve.conftest import application, listening
from tests.serve.exact import Exact

SCORED = {"max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": True, "seed": 1234}
"""What lm-evaluation-harness sends."""


@pytest.fixture(scope="module")
def exact(runs: Path) -> Exact:
    return Exact(runs / "prose")


def choices(address: str, **asked: Any) -> list[Any]:
    reply = post(f"{address}/v1/completions", asked)
    assert reply.status == 200, reply.body
    return list(reply.body["choices"])


def sliced(choice: Any, begin: int) -> tuple[float, bool]:
    """The log-likelihood as lm-evaluation-harness 0.4.13 takes it (openai_completions.parse_logprobs)."""
    shown = choice["logprobs"]
    logps, tops = shown["token_logprobs"][begin:-1], shown["top_logprobs"][begin:-1]
    greedy = all(logp == max(top.values()) for logp, top in zip(logps, tops, strict=True))
    return sum(logps), greedy


@pytest.mark.parametrize("k", [1, 5])
def test_every_prompt_token_has_its_likeliest_alternatives(address: str, exact: Exact, k: int) -> None:
    row = exact.line("the cat ran a zebra sat")
    (choice,) = choices(address, **SCORED | {"logprobs": k}, prompt="the cat ran a zebra sat")
    shown = choice["logprobs"]
    assert shown["token_logprobs"][0] is None and shown["top_logprobs"][0] is None
    wanted = exact.logp(row)[1:]  # after the first token
    for place, (logp, top) in enumerate(
        zip(shown["token_logprobs"][1:-1], shown["top_logprobs"][1:-1], strict=True)
    ):
        assert logp == pytest.approx(float(wanted[place, row[place + 2]]), abs=1e-4)
        best = wanted[place].topk(k)
        names = [exact.vocabulary.spelled([one])[0].replace("<eos>", "\n") for one in best.indices.tolist()]
        likeliest = dict(list(top.items())[:k])
        assert likeliest == pytest.approx(dict(zip(names, best.values.tolist(), strict=True)), abs=1e-4)
        own = shown["tokens"][place + 1]
        assert top[own] == logp and len(top) == k + (own not in likeliest)


def test_a_harness_slices_the_log_likelihood_of_a_continuation(address: str, exact: Exact) -> None:
    ended = 0
    for context, rest in (
        ("the cat", "sat on a"),
        ("the", "zebra"),
        ("one dog ran", "home ."),
        ("a mat", "and"),
    ):
        before, row = exact.line(context), exact.line(f"{context} {rest}")
        wanted = exact.logp(row)
        logps = [float(wanted[place - 1, row[place]]) for place in range(len(before), len(row))]
        greedy = all(int(wanted[place - 1].argmax()) == row[place] for place in range(len(before), len(row)))
        (choice,) = choices(address, **SCORED, prompt=[row])
        found, best = sliced(choice, len(before))
        assert found == pytest.approx(sum(logps), abs=1e-4) and best == greedy
        assert len(choice["logprobs"]["tokens"]) == len(row) + 1
        ended += choice["finish_reason"] == "stop"
    assert ended  # the slice is right after an end that was written, too


def test_an_end_that_was_written_is_reported_and_is_no_text(address: str, exact: Exact) -> None:
    (whole,) = choices(address, prompt="one dog ran home .", max_tokens=9, temperature=0, logprobs=0)
    shown = whole["logprobs"]
    assert whole["finish_reason"] == "stop" and "\n" not in whole["text"]
    assert shown["tokens"][-1] == "\n" and shown["text_offset"][-1] == len(whole["text"])
    row = exact.line("one dog ran home ." + whole["text"])
    assert shown["token_logprobs"][-1] == pytest.approx(float(exact.logp(row)[-1, 3]), abs=1e-4)


@pytest.mark.parametrize(
    "prompt",
    [
        "the cat",
        "",
        "  the  cat ",
        "the\ncat\n",
        "e\u0301 日本 🙂 the, cat\u3000sat\n\n 🙂",
        "\n",
        "zebra \t",
    ],
)
def test_offsets_are_places_in_the_text(address: str, prompt: str) -> None:
    for echo in (True, False):
        (choice,) = choices(
            address, prompt=prompt, max_tokens=7, temperature=0, logprobs=2, echo=echo, stop="x"
        )
        shown, text = choice["logprobs"], choice["text"]
        places = [*shown["text_offset"], len(text)]
        assert places == sorted(places) and places[0] == 0
        parts = [text[begin:end] for begin, end in itertools.pairwise(places)]
        for part, token in zip(parts[:-1], shown["tokens"], strict=False):
            if token == "\n":
                assert part.endswith("\n")
            elif token.strip() != "<unk>":  # in a text, words may have other spaces between them
                assert part.split() == token.split() or part == ""
        assert "".join(parts) == text
    assert text == "" or shown["tokens"][0].strip() in text


def test_numbers_are_read_exactly_as_given(address: str, exact: Exact) -> None:
    row = exact.line("the cat sat")
    (text,) = choices(address, **SCORED, prompt="the cat sat")
    numbers = choices(address, **SCORED, prompt=row)[0]
    lists = choices(address, **SCORED, prompt=[row, row[1:]])
    texts = choices(address, **SCORED, prompt=["the cat sat", "a mat"])
    for one, other in ((texts, text), (lists, numbers)):
        assert len(one) == 2 and one[0]["text"] == other["text"]
        assert one[0]["logprobs"]["tokens"] == other["logprobs"]["tokens"]
        assert one[0]["logprobs"]["token_logprobs"] == pytest.approx(
            other["logprobs"]["token_logprobs"], abs=1e-5
        )
    # With the line end that begins every text, the first word has a probability too.
    assert numbers["logprobs"]["token_logprobs"][2:] == pytest.approx(
        text["logprobs"]["token_logprobs"][1:], abs=1e-5
    )
    assert numbers["text"] == "\n" + text["text"] and numbers["logprobs"]["text_offset"][:3] == [0, 1, 4]
    wanted = exact.logp(row[1:])
    assert lists[1]["logprobs"]["token_logprobs"][1:3] == pytest.approx(
        [float(wanted[place, row[place + 2]]) for place in (0, 1)], abs=1e-4
    )
    for wrong in ([], [[]], [1, "the"], [[1], "the"], [1.5], [[-1]], [[10**6]], [[[1]]], {}, [True]):
        reply = post(f"{address}/v1/completions", {"prompt": wrong})
        assert reply.status == 400 and reply.body["error"]["param"] == "prompt", wrong


def test_a_stream_tells_what_was_used_if_asked(address: str) -> None:
    asked = {
        "prompt": ["the cat", "one dog ran home ."],
        "n": 2,
        "max_tokens": 5,
        "seed": 2,
        "logprobs": 1,
        "echo": True,
    }
    whole = post(f"{address}/v1/completions", asked).body
    options = {"stream": True, "stream_options": {"include_usage": True}}
    *parts, last, done = events(post(f"{address}/v1/completions", asked | options).body)
    assert done == "[DONE]" and last["choices"] == [] and last["usage"] == whole["usage"]
    assert all(part["usage"] is None for part in parts)
    for number, choice in enumerate(whole["choices"]):
        mine = [part["choices"][0] for part in parts if part["choices"][0]["index"] == number]
        assert "".join(one["text"] for one in mine) == choice["text"]
        for name, values in choice["logprobs"].items():
            assert [value for one in mine for value in one["logprobs"][name]] == values
    plain = events(post(f"{address}/v1/completions", asked | {"stream": True}).body)
    assert all("usage" not in part for part in plain[:-1])
    assert post(f"{address}/v1/completions", asked | {"stream_options": {}}).status == 400


def mistake(reply: Reply) -> dict[str, Any]:
    assert set(reply.body) == {"error"} and set(reply.body["error"]) == {"message", "type", "param", "code"}
    return dict(reply.body["error"])


def test_unknown_parameters_are_refused_by_name(address: str) -> None:
    for name in ("top_a", "suffixes", "max_completion_tokens"):
        reply = post(f"{address}/v1/completions", {"prompt": "the", name: 1})
        found = mistake(reply)
        assert reply.status == 400 and (found["param"], found["code"]) == (name, "unknown_parameter")
    reply = post(f"{address}/v1/completions", {"prompt": "the", "stream": True, "stream_options": {"x": 1}})
    assert reply.status == 400 and mistake(reply)["param"] == "stream_options"
    assert post(f"{address}/v1/completions", {"prompt": "the", "user": "me"}).status == 200


def test_every_error_below_v1_has_the_form_of_openai(address: str) -> None:
    url = f"{address}/v1/completions"
    long = {"prompt": "x " * 2000}
    for reply, status, kind in (
        (ask(f"{address}/v1/chat/completions", b"{}", "application/json"), 404, "invalid_request_error"),
        (ask(f"{address}/v1"), 404, "invalid_request_error"),
        (post(url, {"prompt": "the", "model": "other"}), 404, "invalid_request_error"),
        (ask(f"{address}/v1/models/other"), 404, "invalid_request_error"),
        (ask(url), 405, "invalid_request_error"),
        (post(url, long), 400, "invalid_request_error"),
        (ask(url, b"{", "application/json"), 400, "invalid_request_error"),
        (ask(url, b" " * 2_000_000, "application/json"), 413, "invalid_request_error"),
    ):
        assert reply.status == status and mistake(reply)["type"] == kind
    assert mistake(post(url, {"model": "other"}))["code"] == "model_not_found"
    assert "type" not in ask(f"{address}/nowhere").body  # the others have LibreTranslate's form


def test_a_busy_or_broken_server_answers_in_the_same_form(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weft.serve.completions import Completions

    with listening(application(runs / "prose", queue=1)) as address:
        url = f"{address}/v1/completions"
        reply = post(url, {"prompt": ["the", "a"]})
        assert reply.status == 429 and reply.headers["retry-after"] == "1"
        assert (mistake(reply)["type"], mistake(reply)["code"]) == ("rate_limit_error", "rate_limit_exceeded")

        def broken(*_: Any) -> None:
            raise RuntimeError("broken on purpose")

        monkeypatch.setattr(Completions, "_fitting", broken)
        reply = post(url, {"prompt": "the"})
        assert reply.status == 500 and mistake(reply)["type"] == "server_error"


@pytest.fixture(scope="module")
def windowed(tmp_path_factory: pytest.TempPathFactory, library: None) -> Iterator[tuple[str, Exact]]:
    """A Transformer with 7 positions, served, and the same in float64."""
    folder = tmp_path_factory.mktemp("windowed")
    text = RECIPE.format(folder=write(folder), kind="word", batches="windows", decoder=GPT, updates=30)
    (folder / "my.yaml").write_text(text)
    assert weft("train", folder / "my.yaml", "--run", folder / "run").code == 0
    with listening(application(folder / "run")) as address:
        yield address, Exact(folder / "run")


def test_a_prompt_longer_than_the_window_is_continued_from_its_last_window(
    windowed: tuple[str, Exact],
) -> None:
    address, exact = windowed
    text = "one dog ran home . the cat sat on a mat and one dog ran"
    row = exact.line(text)
    assert len(row) > 2 * 7
    (choice,) = choices(address, **SCORED, prompt=text)
    shown = choice["logprobs"]
    after = exact.logp(row[-7:])[-1]
    assert shown["token_logprobs"][-1] == pytest.approx(float(after.max()), abs=1e-4)
    # The prompt is read in windows of 7, of which the last one ends with the prompt.
    wanted = [math.nan] * len(row)
    for begin, first in ((0, 0), (7, 0), (len(row) - 8, 14 - (len(row) - 8))):
        logp = exact.logp(row[begin : begin + 7])
        for place in range(first, min(7, len(row) - 1 - begin)):
            wanted[begin + place + 1] = float(logp[place, row[begin + place + 1]])
    assert shown["token_logprobs"][1:-1] == pytest.approx(wanted[2:], abs=1e-4)
    many = choices(address, prompt=text, max_tokens=20, temperature=0)[0]
    assert many["text"]
