"""`/predict` of every task answers what `weft predict` does; files come as base64; changes are heard."""

import base64
import io
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image

from tests.commands.shell import weft
from tests.serve.client import ask, events, post
from tests.shared import shared_run
from weft.errors import WeftError


@pytest.fixture(scope="module")
def served(library: None) -> Callable[[str], Any]:
    """The run of a task, as the server has it."""
    from weft.serve.served import ServedRun

    return cache(lambda name: ServedRun(shared_run(name), name, "cpu", ()))


def answered(run: Any, given: Any) -> list[Any]:
    from weft.serve.limits import ServerLimits
    from weft.serve.predicting import inputs_of, predicting

    limits = ServerLimits()
    return list(predicting(run, limits)(inputs_of(run, given, limits), lambda: False))


def refusal(run: Any, given: Any) -> str:
    from weft.serve.limits import Refusal

    with pytest.raises((Refusal, WeftError)) as found:  # the batcher answers both with 400
        answered(run, given)
    if isinstance(found.value, Refusal):
        assert 400 <= found.value.status < 500
        return found.value.sentence
    return str(found.value)


def png(pixels: np.ndarray) -> str:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "png")
    return base64.b64encode(out.getvalue()).decode()


def test_gaps_are_filled(served: Callable[[str], Any]) -> None:
    run = served("masked")
    (found,) = answered(run, "the [MASK] can purr")
    assert found["text"] == run.opened.pipeline.predictor(run.opened.model).predict("the [MASK] can purr")
    probs = [one["prob"] for one in found["gaps"][0]]
    assert len(probs) == 5 and probs == sorted(probs, reverse=True)
    assert "expected [MASK]" in refusal(run, "no gap")


def test_a_batch_ends_when_nobody_waits_for_it_any_more(served: Callable[[str], Any]) -> None:
    from weft.serve.batcher import ClientLeft
    from weft.serve.limits import ServerLimits
    from weft.serve.predicting import predicting

    asked: list[int] = []

    def stopped() -> bool:
        asked.append(len(asked))
        return len(asked) > 2  # before the batch, and after its first answer, somebody waits

    with pytest.raises(ClientLeft):
        predicting(served("masked"), ServerLimits())(["the [MASK] can purr"] * 7, stopped)
    assert len(asked) == 3


def test_words_are_near_others(served: Callable[[str], Any]) -> None:
    run = served("embeddings")
    vectors = run.opened.pipeline.predictor(run.opened.model)
    one, three = answered(run, ["apple", "apple saw fig"])
    assert [each["word"] for each in one] == [each.word for each in vectors.nearest("apple", 10)]
    assert [each["word"] for each in three] == [
        each.word for each in vectors.analogy("apple", "saw", "fig", 10)
    ]
    assert "got 2" in refusal(run, "apple saw")
    assert "not among the 14 words" in refusal(run, "nowhere")


def test_a_word_is_compared_in_two_sentences_or_a_sentence_has_vectors(served: Callable[[str], Any]) -> None:
    run = served("elmo")
    comparer = run.opened.pipeline.predictor(run.opened.model)
    line = "bank\tgo to the bank now\tthe bank of the lake"
    compared, alone = answered(run, [line, "go to the bank now"])
    assert compared["cosines"] == pytest.approx(comparer.compare(*line.split("\t")))
    assert alone["words"] == ["go", "to", "the", "bank", "now"]
    assert np.allclose(alone["vectors"], comparer.vectors("go to the bank now").layers[-1], atol=1e-5)
    assert "is no word of" in refusal(run, "lake\tgo now\tthe lake")
    assert "at most 200" in refusal(run, "go " * 201)


@pytest.mark.parametrize("name", ["caption", "images"])
def test_pictures_come_as_base64(name: str, served: Callable[[str], Any]) -> None:
    run = served(name)
    pixels = np.random.default_rng(3).integers(0, 256, (12, 12, 3), np.uint8)
    one, two = answered(run, [png(pixels), "data:image/png;base64," + png(pixels)])
    assert one.keys() == two.keys() and next(iter(one.values())) == next(iter(two.values()))
    said = run.opened.pipeline.predictor(run.opened.model).predict(pixels)
    assert one["text" if name == "caption" else "label"] == said
    assert "as base64" in refusal(run, "***")
    assert "got a wav file" in refusal(run, base64.b64encode(b"RIFF....WAVE").decode())
    assert "damaged, or no picture" in refusal(
        run, base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 40).decode()
    )
    assert "at most 4,000,000 pixels" in refusal(run, png(np.zeros((2001, 2000, 3), np.uint8)))
    assert "got 9" in refusal(run, [png(pixels)] * 9)
    assert "as base64, got a number" in refusal(run, 7)
    assert "rescale it" in refusal(run, png(pixels[:5]))


def test_a_recording_comes_as_base64(served: Callable[[str], Any]) -> None:
    run = served("speech")
    wav = run.opened.task.data.find("valid").parent / "valid0.wav"
    (found,) = answered(run, base64.b64encode(wav.read_bytes()).decode())
    assert found["text"] == weft("predict", run.path, wav).lines[0]
    assert "expected recordings (WAV, FLAC, Ogg, MP3), got a PNG picture" in refusal(
        run, png(np.zeros((3, 3, 3), np.uint8))
    )
    flac = io.BytesIO()
    soundfile.write(flac, *soundfile.read(wav, dtype="int16"), format="FLAC")
    assert answered(run, base64.b64encode(flac.getvalue()).decode())[0]["text"] == found["text"]
    memo = base64.b64encode(b"\0\0\0\x18ftypM4A \0\0\0\0").decode()
    assert "convert it: ffmpeg -i inputs inputs.wav" in refusal(run, memo) and "/" not in refusal(run, memo)
    cut = base64.b64encode(wav.read_bytes()[:60]).decode()
    assert "inputs: expected" in refusal(run, cut) and "/" not in refusal(run, cut)


def test_dropped_units_change_this_answer_and_no_other(address: str) -> None:
    where = f"{address}/predict"
    plain = post(where, {"run": "tags", "inputs": "the dog"}).body["outputs"]
    layers = {one["name"]: one["cells"] for one in ask(f"{address}/api/runs").body if one["ready"]}["tags"]
    drop = [[number, unit] for number, one in enumerate(layers) for unit in range(min(9, one["size"]))]
    changed = post(where, {"run": "tags", "inputs": "the dog", "drop": drop}).body["outputs"]
    assert [one["prob"] for one in changed[0]] != [one["prob"] for one in plain[0]]
    assert post(where, {"run": "tags", "inputs": "the dog"}).body["outputs"] == plain
    for bad, sentence in (
        ([[99, 0]], "got 99"),
        ([[0, 9999]], "got 9999"),
        ([[0]], "pairs of whole numbers"),
        ([[0, True]], "pairs of whole numbers"),
        ([[0, -1]], "pairs of whole numbers"),
        ("x", "a list of pairs"),
        ([[0, 0]] * 65, "at most 64"),
    ):
        reply = post(where, {"run": "tags", "inputs": "the dog", "drop": bad})
        assert reply.status == (404 if sentence.startswith("got") else 400), reply
        assert sentence in reply.body["error"]


def test_a_run_whose_data_is_gone_is_listed_and_answers(served: Callable[[str], Any]) -> None:
    run = served("masked")
    folder = Path(run.opened.task.data.train).parent
    hidden = folder.with_name("hidden")
    folder.rename(hidden)
    try:
        assert run.opened.task.about().endswith("train.txt")
        assert answered(run, "the [MASK] can purr")
    finally:
        hidden.rename(folder)


@pytest.mark.slow
def test_the_page_translates_several_sentences_one_by_one(address: str) -> None:
    text = " Alpha beta gamma.  Beta.\nGamma alpha. Alpha.\n"
    asked = {"q": text, "source": "xx", "target": "yy"}
    whole = post(f"{address}/translate", asked).body["translatedText"]
    *drafts, done = events(post(f"{address}/api/watch", {"run": "toy", "text": text}).body)
    assert done["event"] == "done" and done["text"] == whole
    sources = ["Alpha beta gamma.", "Beta.", "Gamma alpha.", "Alpha."]
    assert [source for source, _ in done["sentences"]] == sources
    for source, written in done["sentences"]:
        assert post(f"{address}/translate", asked | {"q": source}).body["translatedText"] == written
    assert len(drafts) == 4 and drafts[-1]["text"] == whole
    assert drafts[0]["text"].strip() == done["sentences"][0][1] != whole.strip()
    one = events(post(f"{address}/api/watch", {"run": "toy", "text": "alpha beta gamma"}).body)[-1]
    assert "sentences" not in one and one["words"]
    long = events(post(f"{address}/api/watch", {"run": "toy", "text": "alpha beta. " * 101}).body)
    assert len(long[-1]["sentences"]) == 101  # more tokens than a sentence may have


def test_attention_is_moved_at_its_step_and_nowhere_else(address: str) -> None:
    where, asked = f"{address}/api/watch", {"run": "toy", "text": "alpha beta gamma", "beam": 3}
    plain = events(post(where, asked).body)[-1]
    moved = events(post(where, {**asked, "looks": [[2, 2]]}).body)[-1]
    assert moved["weights"][1] == [0, 0, 1] and moved["shown"] == "as it was moved"
    assert moved["words"][0] == plain["words"][0]
    assert moved["weights"][0] == pytest.approx(plain["weights"][0], abs=2e-4)
    assert events(post(where, asked).body)[-1] == plain
    failed = events(post(where, {**asked, "looks": [[1, 9]]}).body)[-1]
    assert failed["error"] == "looks: expected a word from 0 to 2, got 9"
    for bad, status in (([[0, 0]], 404), ([[1, -1]], 400), ([[1001, 0]], 404), ([["a", 0]], 400)):
        assert post(where, {**asked, "looks": bad}).status == status


def test_a_class_comes_with_the_weight_of_each_word(address: str) -> None:
    (found,) = events(post(f"{address}/api/watch", {"run": "label", "text": "this was great"}).body)
    assert (
        found["event"] == "done"
        and found["text"] == "good"
        and sum(found["probs"].values()) == pytest.approx(1)
    )
    assert found["source"] == ["this", "was", "great"]
    assert len(found["weights"][0]) == 3 and sum(found["weights"][0]) == pytest.approx(1, abs=1e-3)


def test_a_word_is_replaced_by_whole_words(address: str) -> None:
    asked = {"run": "toy", "text": "alpha beta gamma", "prefix": "uno"}
    found = post(f"{address}/api/words", asked).body
    first, *rest = found["words"]
    assert found["run"] == "toy" and first["text"] == "due"
    assert all(" " not in one["text"] and one["prob"] <= first["prob"] for one in rest)
    continued = {"run": "prose", "text": "the cat sat", "prefix": " on"}
    prose = [one["text"] for one in post(f"{address}/api/words", continued).body["words"]]
    assert prose and prose == [f" {one.strip()}" for one in prose]
    assert post(f"{address}/api/words", {"run": "label", "text": "this"}).status == 400
    assert post(f"{address}/api/words", asked | {"prefix": "Ж"}).body["words"]  # read as an unknown word


@pytest.mark.parametrize("name", ["multilingual", "summarise"])
def test_a_word_of_a_run_with_tokens_beyond_its_vocabulary_is_replaced(
    served: Callable[[str], Any], name: str
) -> None:
    from weft.serve.limits import Refusal
    from weft.serve.pages import alternatives
    from weft.serve.watching import NOTHING

    run = served(name)
    target = run.directions()[0][1] if run.directions() else ""
    asked = {"text": run.examples()[0], "prefix": "", "target": target, "edits": NOTHING}
    found = alternatives(run, asked, lambda: False)
    assert found and all(one["text"] and one["prob"] <= 1 for one in found)
    with pytest.raises(Refusal, match="prefix: expected at most 512 tokens"):
        alternatives(run, {**asked, "prefix": f"{found[0]['text']} " * 600}, lambda: False)


def test_what_a_language_model_reads_for_the_page_is_limited_too(address: str) -> None:
    for path in ("/api/watch", "/api/words"):
        reply = post(address + path, {"run": "prose", "text": "the " * 200, "prefix": "cat " * 200})
        assert "text: expected at most 300 tokens per text, got 4" in str(reply.body)
    reply = post(f"{address}/api/watch", {"run": "toy", "text": "alpha", "target": "y" * 2000})
    assert reply.status == 404 and len(reply.body["error"]) < 99


def test_looking_inside_ends_when_nobody_waits_for_it_any_more(served: Callable[[str], Any]) -> None:
    from weft.serve.batcher import ClientLeft
    from weft.serve.limits import ServerLimits
    from weft.serve.predicting import inside
    from weft.serve.schemas import InspectFile

    with pytest.raises(ClientLeft):
        inside(served("classify"), InspectFile(text="this was great"), ServerLimits())([None], lambda: True)
