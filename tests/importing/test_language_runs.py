"""Decoders with the tokenizers of Llama and Qwen, and masked language models, become runs.

Skipped with a message if the library is missing: pip install --group import-tests -c constraints.txt
"""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.commands.shell import weft
from tests.importing.language_models import RUNS, SIZES, write_checkpoint
from tests.importing.masked_models import sentences
from tests.importing.random_models import transformers
from tests.importing.started import TEXT, first_pieces, imported_run, started, states, trains_on
from tests.laws.members import close
from weft.errors import WeftError
from weft.importing.runs import import_run
from weft.run import open_run
from weft.serve.completions import Ask, How, go_on

LINES = ["Click the button.", "In 2024, we'll pay 1234567 €", "x", "中文 and ünicode 🙂", "The  file is open"]


@pytest.fixture(scope="module", params=RUNS)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library's model, its tokenizer, and the imported run."""
    there = tmp_path_factory.mktemp("run")
    theirs = write_checkpoint(request.param, there / "checkpoint")
    file = there / "checkpoint" / "tokenizer.json"
    imported_run(there, sentences("valid")[:30], sentences("valid")[:7])
    return theirs, transformers.PreTrainedTokenizerFast(tokenizer_file=str(file)), there


@torch.no_grad()
def test_a_run_reads_and_continues_like_the_library(imported: Any) -> None:
    theirs, made, there = imported
    opened = open_run(there / "run", device="cpu")
    vocabulary = opened.pipeline.vocabulary
    order, end = torch.tensor(vocabulary.order), theirs.config.eos_token_id
    begin = end if theirs.config.bos_token_id is None else theirs.config.bos_token_id
    expected = []
    for line in LINES:
        ids = made(line, add_special_tokens=False).input_ids
        assert order[vocabulary.encode(line)].tolist() == ids
        assert vocabulary.decode(vocabulary.encode(line)) == line
        text = torch.tensor([[begin, *ids]])
        want = theirs(text).logits.log_softmax(-1)[0]
        numbers = torch.tensor([[3, *vocabulary.encode(line)]])
        state = opened.model.start(None, torch.ones(1, 1, dtype=torch.bool))
        got = opened.model.head(opened.model.decoder(opened.model.embed(numbers), state)[0])[0]
        kept = [place for place in range(len(order)) if got[0, place] > -1000]
        close(got[:, kept], want[:, order[kept]], 1e-5)
        assert sorted(order[kept].tolist()) == list(range(len(want[0])))  # every piece, each once
        unseen = [int(order[number]) for number in (0, 1, 2) if order[number] not in (-1, end)]
        given = torch.tensor([made(line).input_ids])  # with what the tokenizer puts before a text
        written = theirs.generate(
            given, do_sample=False, max_new_tokens=9, suppress_tokens=unseen or None, pad_token_id=end
        )[0].tolist()
        written = written[: written.index(end)] if end in written else written
        text = made.decode(written, skip_special_tokens=True)
        expected.append(text.split("\n")[0])  # decoding.max_lines is 1
    asked, lines = ("--set", "max_tokens=9", "--set", "search=greedy"), "".join(f"{one}\n" for one in LINES)
    assert weft("predict", there / "run", *asked, stdin=lines.encode(), code=0).lines == expected


@torch.no_grad()
def test_line_ends_are_the_tokenizers_and_nothing_else_is_put_before_a_text(imported: Any) -> None:
    theirs, made, there = imported
    opened = open_run(there / "run", device="cpu")
    writer = opened.pipeline.writer(opened.model)
    order, end = opened.pipeline.vocabulary.order, theirs.config.eos_token_id
    for text in ("Click the button.\n\nOpen a file\n", "\n x", "中文\n\t🙂"):
        ids, row = made(text).input_ids, writer.reading.row(text)
        assert [order[number] for number in row] == ids
        assert writer.vocabulary.numbered(ids) == row
        found = writer.expected([row], 3)[0]
        want = theirs(torch.tensor([ids])).logits.log_softmax(-1)[0].double()
        logps = want[:-1].gather(1, torch.tensor(ids)[1:, None])[:, 0]
        close(torch.tensor([one.logp for one in found]).double(), logps, 1e-5)
        for one, logp in zip(found, want[:-1], strict=True):
            close(torch.tensor([value for _, value in one.best]).double(), logp.topk(3).values, 1e-5)
        own = made(text, add_special_tokens=False).input_ids
        assert len(writer.reading.begins(text)) == len(own)
    assert writer.vocabulary.numbered([end]) == [3]
    empty = writer.reading.row("")
    assert empty == (list(writer.reading.opening) or [2])


def test_the_server_continues_it_with_exact_offsets(imported: Any) -> None:
    _, made, there = imported
    opened = open_run(there / "run", device="cpu")
    writer = opened.pipeline.writer(opened.model)
    how = How(max_tokens=9, temperature=0.0, logprobs=2, scored=True)
    text = "中文 and\n\nünicode 🙂"
    asks = [Ask(text, how), Ask(tuple(made(text).input_ids), how), Ask("", how)]
    *_, (row, numbers, empty) = go_on(writer, asks, lambda: False)
    for one in (row, numbers, empty):
        assert one.reason in ("stop", "length") and len(one.tokens) >= len(one.added)
        assert one.added or one.reason == "stop"
        places = [token.begin for token in (*one.past, *one.tokens)]
        assert places == sorted(places) and places[0] == 0 and places[-1] <= len(one.prompt + one.text)
        whole = one.prompt + one.text
        for token, begin, end in zip((*one.past, *one.tokens), places, places[1:], strict=False):
            if end > begin + 1:  # more than a part of a character
                assert whole[begin:end].strip() == token.piece.strip() or "\ufffd" in whole[begin:end]
    assert numbers.prompt == text and numbers.text == row.text
    opening = len(writer.reading.opening)
    assert len(row.past) == len(numbers.past) - opening and not empty.past
    logps = [token.logp for token in row.past[1:]]
    assert logps == pytest.approx([token.logp for token in numbers.past[1 + opening :]], abs=1e-5)


def test_a_run_is_evaluated_and_trains_on(imported: Any) -> None:
    theirs, made, there = imported
    said = weft("evaluate", there / "run", "--data", there / "valid.txt", code=0).out
    ids, length = made((there / "valid.txt").read_text("utf-8")).input_ids, SIZES["max_position_embeddings"]
    total, done, last = 0.0, 0, len(ids) - 1
    while done < last:  # windows that the model reads at once
        stop = min(done + length, last)
        text = torch.tensor([ids[max(0, stop - length) : stop + 1]])
        with torch.no_grad():
            logp = theirs(text[:, :-1]).logits.log_softmax(-1)[0].gather(1, text[0, 1:, None])
        total, done = total - float(logp[done - stop :].sum()), stop
    assert last > length
    found = re.search(r"perplexity ([\d.]+)", said)
    assert found is not None and float(found[1]) == pytest.approx(math.exp(total / last), rel=1e-4)
    trains_on(there / "run", there / "tuned")


def test_nonsense_in_a_configuration_is_refused_or_ignored(tmp_path: Path) -> None:
    write_checkpoint("mistral", tmp_path / "checkpoint")
    file, refused = tmp_path / "checkpoint" / "config.json", set()
    config = json.loads(file.read_text("utf-8"))
    for key in [*config, "rope_scaling", "quantization_config", "embd_pdrop"]:
        for number, bad in enumerate(("x", [1], -1, 1e30)):
            file.write_text(json.dumps(config | {key: bad}), "utf-8")
            try:  # no other kind of error, and nothing half written
                import_run(tmp_path / "checkpoint", tmp_path / f"{key}-{number}")
            except WeftError:
                refused.add(key)
                assert not (tmp_path / f"{key}-{number}").exists()
    ignored = {"dtype", "initializer_range", "transformers_version", "use_cache"}
    assert set(config) - refused <= ignored | {"tie_word_embeddings"}


def test_a_tagger_starts_with_its_states(
    imported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, made, there = imported
    opened = started(there / "run", "tag", tmp_path)
    found = made(TEXT, add_special_tokens=False, return_offsets_mapping=True)
    if any(re.search(r"\S $", TEXT[start:end]) for start, end in found.offset_mapping):
        pytest.skip("its pieces join words, which a tagger reads one by one")
    end = theirs.config.eos_token_id
    begin = end if theirs.config.bos_token_id is None else theirs.config.bos_token_id
    body = getattr(theirs, theirs.base_model_prefix)
    if theirs.config.model_type == "opt":  # its projection belongs to our output layer
        monkeypatch.setattr(body.decoder, "project_out", None)
    with torch.no_grad():
        want = body(torch.tensor([[begin, *found.input_ids]])).last_hidden_state[0, 1:]
    close(states(opened), want[first_pieces([end for _, end in found.offset_mapping])], 1e-5)
