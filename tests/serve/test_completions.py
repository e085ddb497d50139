"""OpenAI's interface: its real client, streams that say what the whole answer says, laws of seeds."""

import math
import os
import shutil
from pathlib import Path

import pytest

import weft
from tests.serve.client import ask, events, post
from tests.serve.conftest import application, listening
from weft.run import open_run


def test_the_greedy_answer_is_the_command_lines(address: str, runs: Path) -> None:
    asked = {"prompt": ["the cat", "a mat and", "the dog"], "temperature": 0, "max_tokens": 9}
    answer = post(f"{address}/v1/completions", asked).body
    changes = ["decoding.search=greedy", "decoding.max_tokens=9"]
    opened = open_run(runs / "prose", device="cpu", changes=changes)
    writer = opened.pipeline.predictor(opened.model)
    wanted = [found[0] for found in writer.write(asked["prompt"])]
    assert [one["text"] for one in answer["choices"]] == [one.added for one in wanted]
    assert {one["finish_reason"] for one in answer["choices"]} <= {"stop", "length"}
    assert answer["usage"]["prompt_tokens"] == 7


def test_a_sample_depends_on_its_seed_and_on_nobody_else(address: str) -> None:
    asked = {"prompt": "the", "n": 3, "seed": 5, "max_tokens": 8, "temperature": 1.5}
    together = [one["text"] for one in post(f"{address}/v1/completions", asked).body["choices"]]
    alone = [
        post(f"{address}/v1/completions", {**asked, "n": 1, "seed": seed}).body["choices"][0]["text"]
        for seed in (5, 6, 7)
    ]
    assert together == alone
    many = post(f"{address}/v1/completions", {**asked, "prompt": ["the", "a", "the dog"]}).body["choices"]
    assert [one["text"] for one in many[:3]] == together


def test_a_stream_says_what_the_whole_answer_says(address: str) -> None:
    asked = {"prompt": "the cat", "max_tokens": 12, "seed": 3, "n": 2, "stop": ["mat", "one dog"]}
    whole = post(f"{address}/v1/completions", asked).body["choices"]
    parts = events(post(f"{address}/v1/completions", {**asked, "stream": True}).body)
    assert parts.pop() == "[DONE]"
    for number, choice in enumerate(whole):
        mine = [part["choices"][0] for part in parts if part["choices"][0]["index"] == number]
        assert "".join(one["text"] for one in mine) == choice["text"]
        assert [one["finish_reason"] for one in mine if one["finish_reason"]] == [choice["finish_reason"]]
        assert "mat" not in choice["text"]


def test_echo_scores_the_prompt(address: str, runs: Path) -> None:
    asked = {"prompt": "the cat sat", "max_tokens": 0, "echo": True, "logprobs": 2}
    choice = post(f"{address}/v1/completions", asked).body["choices"][0]
    assert choice["text"] == "the cat sat"
    found = weft.load(runs / "prose").score("the cat sat").logp[1:-1]
    first, *rest = choice["logprobs"]["token_logprobs"]
    assert first is None and rest == pytest.approx(found, abs=1e-5)


def test_logprobs_are_those_of_a_distribution(address: str) -> None:
    asked = {"prompt": "the", "max_tokens": 3, "temperature": 0, "logprobs": 5}
    shown = post(f"{address}/v1/completions", asked).body["choices"][0]["logprobs"]
    for logp, top in zip(shown["token_logprobs"], shown["top_logprobs"], strict=True):
        assert logp == pytest.approx(max(top.values()), abs=1e-6)  # greedy takes the best
        assert sum(math.exp(one) for one in top.values()) <= 1 + 1e-6


def test_openais_client_is_served(address: str) -> None:
    library = pytest.importorskip("openai", reason="not installed: pip install --group serve-tests")
    with library.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client:
        assert [one.id for one in client.models.list()] == ["prose"]
        assert client.models.retrieve("prose").owned_by == "weft"
        how = {"model": "prose", "prompt": "the cat", "max_tokens": 6, "temperature": 0}
        whole = client.completions.create(**how)
        parts = list(client.completions.create(**how, stream=True, logprobs=1))
        assert "".join(part.choices[0].text for part in parts) == whole.choices[0].text
        with pytest.raises(library.NotFoundError, match="unknown language model"):
            client.completions.create(**{**how, "model": "other"})
        with pytest.raises(library.BadRequestError, match="max_tokens: expected a whole number from 0"):
            client.completions.create(**{**how, "max_tokens": -1})


def test_what_is_not_offered_is_refused(address: str) -> None:
    for field in ({"suffix": "x"}, {"best_of": 3}, {"logit_bias": {"5": 1}}, {"stop": [""]}):
        reply = post(f"{address}/v1/completions", {"prompt": "the", **field})
        assert reply.status == 400
        assert reply.body["error"]["message"].startswith(next(iter(field)))
    assert ask(f"{address}/v1/completions").status == 405


def test_models_are_listed_though_their_files_are_gone(library: None, runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "prose", tmp_path / "prose")
    weights = tmp_path / "prose" / "model.safetensors"
    os.utime(weights, (1_700_000_003, 1_700_000_003))
    with listening(application(tmp_path / "prose")) as where:
        before = ask(f"{where}/v1/models")
        weights.unlink()
        for path in ("/v1/models", "/v1/models/prose", "/api/runs", "/health/ready", "/openapi.json"):
            assert ask(where + path).status == 200, path
        assert ask(f"{where}/v1/models").body == before.body
        assert before.body["data"][0]["created"] == 1_700_000_003
        assert post(f"{where}/v1/completions", {"prompt": "the cat"}).status == 200
