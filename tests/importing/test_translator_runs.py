"""Runs from mBART, M2M100, Pegasus, Marian, T5 and BART write what `generate` writes, and train on.

Skipped with a message if the library is missing: pip install --group import-tests -c constraints.txt
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from tokenizers import Tokenizer, processors

pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.commands.shell import refused, weft
from tests.importing.random_models import PAIRS, pair_model
from tests.importing.started import tokenizer, trains_on
from tests.laws.members import close
from weft.data.corpora import corpus
from weft.errors import ConfigError
from weft.importing.runs import import_run
from weft.run import open_run
from weft.tasks.seq2seq.encoding import collate_pairs

LINES = ["Click the button.", "Ünicode, a line break", "x", "The file is open in another window"]
EN, ES = 4, 5  # numbers of the languages
SIZES: dict[str, Any] = {
    "vocab_size": 317,  # more rows than pieces, as in real checkpoints
    "encoder_layers": 1,
    "decoder_layers": 2,
    "max_position_embeddings": 101,
    "forced_eos_token_id": None,
    "scale_embedding": True,
}
T5: dict[str, Any] = {
    "vocab_size": 317,
    "num_decoder_layers": 2,  # because generate of transformers 5.23 has a cache for as many as the encoder
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}


class Case(NamedTuple):
    """A family of PAIRS with a form of its tokenizer."""

    family: str
    template: str  # of a source
    changes: dict[str, Any] = SIZES
    languages: tuple[str, str] = ("en_XX", "es_XX")
    forced: int | None = None  # first token that is written

    @property
    def settings(self) -> dict[str, Any]:
        """Of the library's model."""
        return PAIRS[self.family][2] | self.changes


NLLB = ("eng_Latn", "spa_Latn")
CASES = {
    "mbart-50": Case("mbart", "en_XX $A </s>", forced=ES),
    "mbart-25": Case("mbart", "$A </s> en_XX", SIZES | {"decoder_start_token_id": ES}),
    "nllb": Case("m2m_100", "eng_Latn $A </s>", languages=NLLB, forced=ES),
    "pegasus": Case("pegasus", "$A </s>", SIZES | {"decoder_start_token_id": 1}),
    "bart": Case("bart", "<s> $A </s>", forced=0),
    "marian": Case("marian", "$A </s>", SIZES | {"decoder_start_token_id": 1}),
    "t5": Case("t5", "$A </s>", T5),
    "flan-t5": Case("t5-v1.1", "$A </s>", T5),
}


class Imported(NamedTuple):
    """The library's model, its tokenizer, and the imported run."""

    case: Case
    theirs: Any
    tokenizer: Tokenizer
    run: Path


def checkpoint(case: Case, there: Path) -> tuple[Any, Tokenizer]:
    """Save a random model of the library with a tokenizer."""
    made = tokenizer(*case.languages)
    names = [name for name in case.template.split() if name != "$A"]
    made.post_processor = processors.TemplateProcessing(
        single=case.template, special_tokens=[(name, made.token_to_id(name)) for name in names]
    )
    theirs = pair_model(case.family, 0.3, **case.changes)
    if case.family == "bart":  # as bart-large-cnn has it; languages are asked for
        theirs.generation_config.forced_bos_token_id = case.forced
    theirs.save_pretrained(there)
    made.save(str(there / "tokenizer.json"))
    return theirs, made


@pytest.fixture(scope="module", params=CASES)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Imported:
    case, there = CASES[request.param], tmp_path_factory.mktemp(request.param)
    theirs, made = checkpoint(case, there / "checkpoint")
    source, target = (name.partition("_")[0] for name in case.languages)  # en and eng are enough
    asked = ["--source", source, "--target", target]
    weft("import", there / "checkpoint", "--run", there / "run", *asked, code=0)
    return Imported(case, theirs, made, there / "run")


def start_of(case: Case) -> list[int]:
    start = case.settings["decoder_start_token_id"]
    return [start] if case.forced is None else [start, case.forced]


@torch.no_grad()
def test_it_reads_as_the_tokenizer_and_gives_each_piece_the_same_probability(imported: Imported) -> None:
    case, theirs, made, run = imported
    opened = open_run(run, device="cpu")
    source, target = opened.pipeline.source, opened.pipeline.target
    order = torch.tensor(target.order)
    for line in LINES:
        ids, here = made.encode(line).ids, source.encode(line)
        assert order[here].tolist() == ids
        written = [*start_of(case), *made.encode("Abrir la ventana", add_special_tokens=False).ids]
        want = theirs(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([written])).logits
        batch = collate_pairs([here], [target.encode("Abrir la ventana")])
        assert order[batch.target_in[0]].tolist() == written and batch.target_out[0, -1] == 3
        got = opened.model.head(opened.model.features(batch))[0]
        kept = [place for place in range(len(order)) if got[0, place] > -1000]
        close(got[:, kept], want.log_softmax(-1)[0][:, order[kept]], 1e-5)
        assert sorted(order[kept].tolist()) == list(range(317))  # every piece of the library's, each once
        ids = target.encode(line)
        assert target.decode(ids) == line and [word.text for word in target.words(ids)] == line.split()
        assert "".join(target.pieces(ids)).isprintable()


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0])
def test_it_writes_what_the_library_writes(imported: Imported, beam: int, penalty: float) -> None:
    case, theirs, made, run = imported
    opened = open_run(run, device="cpu")
    settings = {"search": "beam" if beam > 1 else "greedy", "length_penalty": penalty}
    options = settings | {"verbatim": False} | ({"beam": beam} if beam > 1 else {})
    translator = opened.pipeline.translator(opened.model, replace(opened.pipeline.decoding, **options))
    order, end = opened.pipeline.target.order, case.settings["eos_token_id"]
    banned = sorted({case.settings["pad_token_id"], 3, case.settings["decoder_start_token_id"]} - {end})
    for line in LINES:
        ids = torch.tensor([made.encode(line).ids])
        found = theirs.generate(
            ids,
            num_beams=beam,
            do_sample=False,
            early_stopping="never" if beam > 1 else False,
            length_penalty=penalty,
            max_new_tokens=2 * ids.shape[1] + 10,
            suppress_tokens=banned,
            forced_bos_token_id=case.forced,
        )[0, 1:].tolist()
        want = found[: found.index(end)] if end in found else found
        tokens = next(translator.translate([line]))[0].tokens
        assert [order[number] for number in tokens] == want, (line, beam)


def test_it_predicts_and_learns_on(imported: Imported, tmp_path: Path) -> None:
    run = imported.run
    answer = weft(
        "predict", run, "--beam", "2", stdin="".join(f"{line}\n" for line in LINES).encode(), code=0
    )
    assert len(answer.lines) == len(LINES)
    assert not any(name in answer.out for name in imported.case.languages)
    data = open_run(run, device="cpu").pipeline.task.data
    every = [row for row in corpus("libreoffice-help", "en", "es", "valid") if len(row[1]) < 40]
    for split, rows in (("train", every[:20]), ("valid", every[20:25])):
        for side, column in ((data.source, 1), (data.target, 2)):
            (tmp_path / f"{split}.{side}").write_text("".join(f"{row[column]}\n" for row in rows), "utf-8")
    trains_on(run, run, f"data.folder={tmp_path}")


@pytest.mark.parametrize(
    ("name", "changes", "target", "said"),
    [
        (
            "t5",
            {"forced_bos_token_id": "x"},
            "es",
            "forced_bos_token_id: expected the number of a token, got x",
        ),
        ("nllb", {}, "tlh", "--target: expected a language such as eng_Latn, spa_Latn, got 'tlh'"),
        (
            "t5",
            {"relative_attention_num_buckets": 64},
            "es",
            "relative_attention_num_buckets: expected one of 32",
        ),
        (
            "t5",
            {"feed_forward_proj": "gated-relu"},
            "es",
            "feed_forward_proj: expected one of .*got gated-relu",
        ),
        ("pegasus", {"normalize_before": False}, "es", "normalize_before: expected one of True, got False"),
        (
            "mbart-50",
            {"model_type": "prophetnet"},
            "es_XX",
            "model_type: expected one of .*mbart.*got prophetnet",
        ),
    ],
)
def test_what_is_not_supported_is_said(
    name: str, changes: dict[str, Any], target: str, said: str, tmp_path: Path
) -> None:
    there = tmp_path / "checkpoint"
    checkpoint(CASES[name], there)
    config = json.loads((there / "config.json").read_text("utf-8"))
    (there / "config.json").write_text(json.dumps(config | changes), "utf-8")
    with pytest.raises(ConfigError, match=said):
        import_run(there, tmp_path / "run", source=CASES[name].languages[0], target=target)
    assert not (tmp_path / "run").exists()


def test_what_becomes_no_run_is_said(tmp_path: Path) -> None:
    call = ["import", tmp_path, "--run", tmp_path / "run"]
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "vit"}), "utf-8")
    assert "model.safetensors: no such file" in refused(weft(*call))
    (tmp_path / "model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    said = refused(weft(*call))
    assert "model_type: " in said and "got vit" in said
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bart"}), "utf-8")
    said = refused(weft(*call, "--source", "en"))
    assert "a bart needs --source and --target, got en and None" in said
    assert not (tmp_path / "run").exists()
