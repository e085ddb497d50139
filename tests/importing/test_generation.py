"""An imported encoder-decoder searches as `generate` does with the settings that were published with it.

Skipped with a message if the library is missing: pip install --group import-tests -c constraints.txt
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.commands.shell import refused, weft
from tests.importing.test_translator_runs import CASES, LINES, checkpoint
from weft.data.corpora import corpus
from weft.errors import CheckpointError
from weft.importing.runs import import_run
from weft.run import open_run

PUBLISHED: dict[str, dict[str, Any]] = {
    "cnn": {"num_beams": 4, "early_stopping": True, "length_penalty": 2.0, "min_length": 9, "max_length": 21},
    "opus": {"num_beams": 6, "max_length": 33, "renormalize_logits": True, "bad_words_ids": [[1]]},
    "xsum": {"num_beams": 3, "early_stopping": "never", "length_penalty": 0.6, "no_repeat_ngram_size": 2},
    "greedy": {"max_new_tokens": 11, "min_new_tokens": 4},
}
FIELDS = (
    "search",
    "beam",
    "stop",
    "length_penalty",
    "min_length",
    "no_repeat_ngram",
    "max_ratio",
    "max_extra",
)


def published(name: str, settings: dict[str, Any], there: Path) -> tuple[Any, Tokenizer]:
    """A checkpoint with a generation_config.json."""
    theirs, made = checkpoint(CASES[name], there)
    file = there / "generation_config.json"
    known = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps(known | settings), "utf-8")
    return type(theirs).from_pretrained(there).eval(), made


@pytest.mark.parametrize("settings", PUBLISHED)
@pytest.mark.parametrize("name", ["bart", "pegasus", "t5"])
def test_it_writes_what_the_library_writes_by_default(name: str, settings: str, tmp_path: Path) -> None:
    asked = {"max_length": 29} | PUBLISHED[settings]
    theirs, made = published(name, asked, tmp_path / "checkpoint")
    said = import_run(tmp_path / "checkpoint", tmp_path / "run", source="en", target="es")
    assert "not taken over" not in said, said
    opened = open_run(tmp_path / "run", device="cpu", changes=["decoding.verbatim=false"])
    order, given = opened.pipeline.target.order, CASES[name].settings
    start, end = given["decoder_start_token_id"], given["eos_token_id"]
    banned = sorted({given["pad_token_id"], 3, start} - {end})
    for line in LINES:
        ids = torch.tensor([made.encode(line).ids])
        found = theirs.generate(ids, suppress_tokens=banned)[0, 1:].tolist()
        want = found[: found.index(end)] if end in found else found
        tokens = next(opened.pipeline.predictor(opened.model).translate([line]))[0].tokens
        assert [order[number] for number in tokens] == want, line


def test_each_early_stopping_ends_the_search_where_the_library_does(tmp_path: Path) -> None:
    """With a likely end and a high length penalty, it makes a difference."""
    lines = [source for _, source, _ in corpus("libreoffice-help", "en", "es", "valid")][:8]
    found: dict[Any, list[list[int]]] = {}
    for early in (True, False, "never"):
        there, run = tmp_path / f"{early}", tmp_path / f"run-{early}"
        settings = {"num_beams": 4, "length_penalty": 2.0, "max_length": 24, "early_stopping": early}
        theirs, made = published("bart", settings, there)
        theirs.final_logits_bias[0, 2] += 4.0
        theirs.save_pretrained(there)
        import_run(there, run, source="en", target="es")
        opened = open_run(run, device="cpu", changes=["decoding.verbatim=false"])
        ours = [best[0].tokens for best in opened.pipeline.predictor(opened.model).translate(lines)]
        order, found[early] = opened.pipeline.target.order, []
        for line, tokens in zip(lines, ours, strict=True):
            written = theirs.generate(torch.tensor([made.encode(line).ids]), suppress_tokens=[1, 3])
            want = written[0, 1:].tolist()
            found[early].append(want[: want.index(2)] if 2 in want else want)
            assert [order[number] for number in tokens] == found[early][-1], (early, line)
    assert found["never"] != found[False]


def test_a_setting_of_the_search_has_its_place_in_the_recipe(tmp_path: Path) -> None:
    known = {
        "cnn": ("beam", 4, "full", 2.0, 8, 0, 0, 20),
        "opus": ("beam", 6, "worst", 1.0, 0, 0, 0, 32),
        "xsum": ("beam", 3, "never", 0.6, 0, 2, 2.0, 10),
        "greedy": ("greedy", 5, "best", 1.0, 4, 0, 0, 11),
    }
    for name, settings in PUBLISHED.items():
        published("bart", settings, tmp_path / name)
        import_run(tmp_path / name, tmp_path / f"run-{name}", source="en", target="es")
        decoding = open_run(tmp_path / f"run-{name}", device="cpu").pipeline.decoding
        assert tuple(getattr(decoding, field) for field in FIELDS) == known[name], name


@pytest.mark.parametrize(
    ("settings", "said", "fields"),
    [
        (
            {"do_sample": True, "top_p": 0.9},
            "search: sampled, temperature 1, top_k 50, top_p 0.9",
            {"search": "sample", "top_k": 50, "top_p": 0.9},
        ),
        (
            {"do_sample": True, "min_p": 0.05, "typical_p": 0.8, "top_k": None},
            "search: sampled, temperature 1, top_k 50, top_p 1, min_p 0.05, typical_p 0.8",
            {"min_p": 0.05, "typical_p": 0.8},
        ),
        (
            {"num_beams": 6, "num_beam_groups": 3, "diversity_penalty": 0.4},
            "search: beam 6, length penalty 1, stop worst, diverse 3",
            {"diverse": 3, "diversity": 0.4},
        ),
        ({"num_beams": 2, "do_sample": True}, "search settings not imported: do_sample True", {"beam": 2}),
        (
            {"num_beams": 6, "num_beam_groups": 4, "bad_words_ids": [[7, 8]]},
            "search settings not imported: bad_words_ids [[7, 8]], num_beam_groups 4",
            {"diverse": 1},
        ),
        ({"forced_eos_token_id": 7}, "search settings not imported: forced_eos_token_id 7", {}),
        ({"suppress_tokens": [1, 9]}, "search settings not imported: suppress_tokens [1, 9]", {}),
        (
            {"num_beams": 2, "min_length": 5, "renormalize_logits": True, "early_stopping": 3},
            "search settings not imported: early_stopping 3, renormalize_logits True",
            {"min_length": 4},
        ),
    ],
)
def test_what_is_not_beam_search_is_taken_over_or_named(
    settings: dict[str, Any], said: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    checkpoint(CASES["pegasus"], tmp_path / "checkpoint")
    (tmp_path / "checkpoint" / "generation_config.json").write_text(json.dumps(settings), "utf-8")
    text = import_run(tmp_path / "checkpoint", tmp_path / "run", source="en", target="es")
    assert said in text.splitlines()
    decoding = open_run(tmp_path / "run", device="cpu").pipeline.decoding
    assert {name: getattr(decoding, name) for name in fields} == fields


def test_settings_of_generate_are_taken_over_or_named(tmp_path: Path) -> None:
    checkpoint(CASES["pegasus"], tmp_path / "checkpoint")
    settings = {
        "num_beams": 4,
        "length_penalty": 0.8,
        "no_repeat_ngram_size": 3,
        "min_length": 6,
        "repetition_penalty": 1.2,
        "encoder_no_repeat_ngram_size": 2,
    }
    (tmp_path / "checkpoint" / "generation_config.json").write_text(json.dumps(settings), "utf-8")
    said = import_run(tmp_path / "checkpoint", tmp_path / "run", source="text", target="summary")
    assert said.endswith(
        "\nsearch settings not imported: repetition_penalty 1.2, encoder_no_repeat_ngram_size 2"
    )
    found = open_run(tmp_path / "run", device="cpu").pipeline.decoding
    assert (found.beam, found.length_penalty, found.no_repeat_ngram, found.min_length) == (4, 0.8, 3, 5)
    settings = {"num_beams": 10**6, "length_penalty": -1, "min_new_tokens": 7, "min_length": "x"}
    (tmp_path / "checkpoint" / "generation_config.json").write_text(json.dumps(settings), "utf-8")
    said = import_run(tmp_path / "checkpoint", tmp_path / "second", source="text", target="summary")
    assert said.endswith("search settings not imported: num_beams 1000000, min_length x")
    assert open_run(tmp_path / "second", device="cpu").pipeline.decoding.min_length == 7
    (tmp_path / "checkpoint" / "generation_config.json").write_text('{"num_beams": 2, "length_penalty": -1}')
    said = import_run(tmp_path / "checkpoint", tmp_path / "third", source="text", target="summary")
    assert said.endswith("search settings not imported: length_penalty -1")
    (tmp_path / "checkpoint" / "generation_config.json").write_text("[", "utf-8")
    with pytest.raises(CheckpointError, match=r"generation_config\.json: cannot be read"):
        import_run(tmp_path / "checkpoint", tmp_path / "other", source="text", target="summary")


def spaced() -> Tokenizer:
    """A tokenizer like T5's, whose pieces begin with the space before them."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=150, special_tokens=["<s>", "<pad>", "</s>", "<unk>"])
    made.train_from_iterator(["summarize: translate English to Spanish:", *LINES] * 3, trainer)
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    return made


TASKS = {
    "summarization": {"prefix": "summarize: ", "num_beams": 2, "min_length": 4, "max_length": 17},
    "translation_en_to_es": {"prefix": "translate English to Spanish: ", "num_beams": 3, "max_length": 13},
}


@pytest.mark.parametrize("task", ["translate", "summarise"])
def test_settings_and_prefix_of_a_task_are_taken_over(task: str, tmp_path: Path) -> None:
    theirs, _ = checkpoint(CASES["t5"], tmp_path / "checkpoint")
    made = spaced()
    made.save(str(tmp_path / "checkpoint" / "tokenizer.json"))
    config = json.loads((tmp_path / "checkpoint" / "config.json").read_text("utf-8"))
    (tmp_path / "checkpoint" / "config.json").write_text(
        json.dumps(config | {"task_specific_params": TASKS}), "utf-8"
    )
    more = ["--source", "en", "--target", "es"] if task == "translate" else ["--task", task]
    answer = weft("import", tmp_path / "checkpoint", "--run", tmp_path / "run", *more)
    asked = TASKS["translation_en_to_es" if task == "translate" else "summarization"]
    assert answer.code == 0, answer.err
    assert f"each text is read after {asked['prefix'].strip()!r}" in answer.lines
    opened = open_run(tmp_path / "run", device="cpu", changes=["decoding.verbatim=false"])
    source, target = opened.pipeline.source, opened.pipeline.target
    for line in LINES:
        ids = made.encode(f"{asked['prefix']}{line}").ids
        here = source.encode(line)
        assert [source.order[number] for number in here] == ids
        assert [word.text for word in source.words(here)] == made.decode(made.encode(line).ids).split()
        settings = {name: value for name, value in asked.items() if name != "prefix"}
        found = theirs.generate(torch.tensor([ids]), suppress_tokens=[1, 3], **settings)[0, 1:].tolist()
        tokens = next(opened.pipeline.predictor(opened.model).translate([line]))[0].tokens
        want = found[: found.index(2)] if 2 in found else found
        assert [target.order[number] for number in tokens] == want, line


def test_a_prefix_that_the_tokenizer_joins_with_the_text_is_named(tmp_path: Path) -> None:
    checkpoint(CASES["t5"], tmp_path / "checkpoint")  # byte-level: "a" is another piece than " a"
    config = json.loads((tmp_path / "checkpoint" / "config.json").read_text("utf-8"))
    (tmp_path / "checkpoint" / "config.json").write_text(
        json.dumps(config | {"task_specific_params": TASKS}), "utf-8"
    )
    said = import_run(tmp_path / "checkpoint", tmp_path / "run", task="summarise")
    assert said.endswith("\nsearch settings not imported: prefix 'summarize: '")


def test_a_summariser_summarises_and_is_scored(tmp_path: Path) -> None:
    _, made = published("bart", PUBLISHED["cnn"], tmp_path / "checkpoint")
    answer = weft("import", tmp_path / "checkpoint", "--run", tmp_path / "run", "--task", "summarise", code=0)
    assert "for the task summarise" in answer.lines[0]
    assert answer.lines[1] == "search: beam 4, length penalty 2, stop full, min_length 8, at most 20 tokens"
    data = open_run(tmp_path / "run", device="cpu").pipeline.task.data
    assert (data.source, data.target, data.cut_source) == ("text", "summary", 100)
    long = " ".join(LINES * 9)  # more tokens than positions: it is cut, and still ends as the model expects
    reading = open_run(tmp_path / "run", device="cpu").pipeline.reading
    read = [reading.base.order[number] for number in reading.encode(long)]
    assert read == [*made.encode(long).ids[:99], 2]
    (tmp_path / "x.tsv").write_text("text\tsummary\n" + "".join(f"{line} {line}\t{line}\n" for line in LINES))
    (tmp_path / "x.txt").write_text("".join(f"{line}\n" for line in [*LINES, long]))
    found = weft("predict", tmp_path / "run", tmp_path / "x.txt")
    assert found.code == 0 and len(found.lines) == 5 and any(found.lines), found.err
    scores = weft("evaluate", tmp_path / "run", "--data", tmp_path / "x.tsv")
    assert scores.code == 0 and "ROUGE-1" in scores.out and "beam 4" in scores.out, scores.err


def test_languages_are_those_of_the_model(tmp_path: Path) -> None:
    checkpoint(CASES["mbart-50"], tmp_path / "mbart")
    checkpoint(CASES["bart"], tmp_path / "bart")
    words = ["--run", tmp_path / "run", "--task", "summarise"]
    assert "--source: expected a language such as en_XX" in refused(
        weft("import", tmp_path / "mbart", *words)
    )
    said = refused(weft("import", tmp_path / "bart", *words, "--source", "en"))
    assert "a bart takes neither --source nor --target, got en and None" in said
    said = refused(weft("import", tmp_path / "bart", "--run", tmp_path / "run", "--task", "classify"))
    assert "--task: expected translate or summarise, got classify" in said
    assert weft("import", tmp_path / "mbart", *words, "--source", "es").code == 0
    opened = open_run(tmp_path / "run", device="cpu", changes=["decoding.verbatim=false"])
    assert opened.name == "summarise"
    assert opened.pipeline.source.order[opened.pipeline.source.begin()[0]] == 5
