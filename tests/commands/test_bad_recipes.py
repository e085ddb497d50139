"""Mistakes in a recipe or an option: code 2, one sentence with place and remedy, nothing changed."""

import re
import shlex
from pathlib import Path

import pytest

from tests.commands.corpus import WORDS
from tests.commands.shell import refused, untouched, weft
from tests.shared import TOYS


def train(recipe: Path, *options: object) -> str:
    """The sentence that training is refused with; no run directory is made."""
    said = untouched(recipe.parent, lambda: weft("train", recipe, "--run", recipe.parent / "run", *options))
    assert not (recipe.parent / "run").exists()
    return said


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("  batch_tokns: 300", r"toy\.yaml:9: data\.batch_tokns: .*did you mean 'batch_tokens'"),
        ("  batch_tokens: -1", r"toy\.yaml:9: data\.batch_tokens: .*-1"),
        ("  batch_tokens: [300", r"toy\.yaml:\d+: this is not YAML"),
    ],
)
def test_a_wrong_line_is_named(toy: Path, wrong: str, sentence: str) -> None:
    toy.write_text(toy.read_text().replace("  batch_tokens: 300", wrong))
    assert re.search(sentence, train(toy))


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("modle.encoder.use=transformer", r"override modle\.encoder.*did you mean 'model'"),
        ("model.encoder.cell=lstn", r"override model\.encoder\.cell=lstn: .*did you mean 'lstm'"),
        ("training.metric=blue", r"override training\.metric=blue: .*'blue'"),
        ("training.max_updates=0", r"training: expected an end, got none; set one of max_updates"),
        ("decoding.nbest=4", r"decoding\.nbest=4: .*\b3, got 4; raise beam to 4"),
        ("decoding.top_p=1.5", r"decoding\.top_p=1\.5: .*got 1\.5"),
        (
            "model.decoder.score=dot",
            r"toy\.yaml:10: model: score dot: the query has 17 .* the key 26; make them",
        ),
        ("model.encoder.sizes=[]", r"toy\.yaml:10: model: .* needs a size for each layer, .* \[256, 256\]"),
        ("model.encoder.dropout=1.5", r"model\.encoder\.dropout=1\.5: .*1\.5"),
        ("model.smoothing=2", r"override model\.smoothing=2: (?!model).*got 2"),
        ("model.embedding.size=0", r"model\.embedding\.size=0: .*got 0"),
        ("model.embedding.shared=true", r"model: embedding\.shared: .* data\.vocabulary\.shared: true"),
        ("training.device=cuda:99", r"training\.device: "),
        ("data.target=xx", r"data\.target=xx: 'xx' is the source too; name two languages"),
        ("data.corpus=libreoffice-help", "set exactly one of corpus .* and train"),
        ("task=translat", "task=translat: unknown task 'translat'; did you mean 'translate'"),
        ("seed", "override seed: expected section.key=value"),
    ],
)
def test_a_wrong_override_is_named(toy: Path, override: str, sentence: str) -> None:
    assert re.search(sentence, train(toy, override))


SETTINGS = [
    ("elmo", "data.batches=stream", "set batches: lines"),
    ("elmo", "data.vocabulary.kind=bpe", "predicts whole words"),
    ("elmo", "model.size=0", "size=0: expected a whole number from 1"),
    ("masked", "data.batches=windows", "set batches: lines"),
    ("masked", "model.share=1.0", "share=1.0: expected a number above 0"),
    ("embeddings", "model.size=0", "size=0: expected a whole number from 1"),
    ("embeddings", "data.min_count=10000", "occur 10000 times, got 0"),
    ("embeddings", "data.test=no.tsv", "no.tsv: no such file"),
    ("embeddings", "data.subsample=7", "got 7"),
    ("embeddings", "model.objective=glove model.subwords=true", "glove counts whole words"),
    ("tag", "model.smoothing=0.1", "0 with a CRF"),
    ("language", "data.train=no.txt", "no.txt: no such file"),
    ("language", "data.valid_share=0.1", "exactly one validation text"),
    ("language", "data.vocabulary.kind=bpe", "a bpe vocabulary needs a size, such as 8000"),
    ("language", "training.accumulate=2", "training.accumulate: expected 1, got 2"),
    ("language", "decoding.mixture=1.5", "a number from 0 to 1 or one of 'tuned'"),
    ("language", "decoding.top_p=0", "top_p=0: expected a number above 0 and up to 1, got 0"),
    ("language", "model.embedding.cutoffs=[5,3]", "cutoffs: expected rising numbers"),
    ("language", "model.embedding.cutoffs=[5] model.smoothing=0.1", "smoothing=0.1: cannot be combined"),
    (
        "language",
        "model.embedding.cutoffs=[5] data.vocabulary.kind=bpe data.vocabulary.size=30",
        "embedding.cutoffs: expected tokens ordered by frequency",
    ),
    ("classify", "model.class_weights=balancd", "got 'balancd'"),
    ("classify", "model.class_weights=best", "best requires bag.solve: true; set none or balanced"),
    (
        "classify",
        "model.class_weights='{bad: much}'",
        "model.class_weights.bad: expected a number, got 'much'",
    ),
    ("classify", "model.class_weights='{bad: 0}'", "expected a number above 0 for 'bad', got 0"),
    ("several labels", "model.smoothing=0.1", "model: smoothing: requires one class per text"),
    ("several labels", "model.class_weights=balanced", "model: class_weights: requires one class per text"),
    (
        "several labels",
        "model.bag='{naive_bayes: true}'",
        "model: bag.naive_bayes: requires one class per text",
    ),
    ("several labels", "data.separator=\"''\"", "data.separator='': expected a character"),
    (
        "tag",
        "model.class_weights=balanced",
        "with a CRF, which scores the tags of a sentence together; set crf: false",
    ),
    ("summarise", "data.vocabulary.shared=false", "both sides need one vocabulary"),
    ("summarise", "data.cut_source=200", "cut_source=200: expected a number from 1 to max_length"),
    ("summarise", "model.encoder=null", "the model needs an encoder"),
    ("summarise", "model.decoder.coverage=-1", "coverage: expected 0 or more, or null for none, got -1.0"),
    ("summarise", "model.encoder='{use: pyramid, sizes: [8, 8]}'", "merges 2 positions into one"),
    ("summarise", "model.decoder.decoder='{use: pointer}'", "the inner decoder copies too"),
    ("translate", "training.metrics=[chrf,chrf]", "expected each metric once, got chrf twice"),
    (
        "memory",
        "training.metrics=[accuracy]",
        "accuracy: reads labels or texts, but a validation of the task memory has numbers; leave it out",
    ),
    (
        "elmo",
        "training.metrics=[bits]",
        "bits: reads nats, but a validation of the task elmo has no outputs with references; leave it out",
    ),
    (
        "masked",
        "training.metrics=[bleu]",
        "bleu: reads texts, but a validation of the task masked has nats, labels; leave it out",
    ),
]
OF_DATA = [
    ("language", "data.batches=windows data.length=9999", "for data.length: 9999"),
    ("language", "data.batch_rows=99999", "for data.batch_rows: 99999; lower it"),
    ("language", "model.embedding.cutoffs=[5,300]", "between 0 and the 16 symbols, got [5, 300]"),
    (
        "classify",
        "model.class_weights='{bda: 2}'",
        "expected classes of the training data, got 'bda'; did you mean 'bad'?",
    ),
    ("classify", "model.class_weights='{x: 2}'", "got 'x'; they are bad, good"),
    ("classify", "training.lora='{rank: 3, alpha: 6}'", "training.lora: expected training.start"),
    ("tag", "model.crf=false model.class_weights='{VERBS: 2}'", "got 'VERBS'; did you mean 'VERB'?"),
    ("tag", "training.metric=span_f1", "training.metric: span_f1 counts names by tags such as B-PER"),
    ("draw", "data.tile=5", "multiples of 5 pixels"),
]
"""Those that are refused once the data is read."""


@pytest.mark.parametrize(
    ("task", "changes", "sentence", "read"),
    [*((*row, False) for row in SETTINGS), *((*row, True) for row in OF_DATA)],
)
def test_settings_that_do_not_fit_a_task_are_refused(
    tmp_path: Path, task: str, changes: str, sentence: str, read: bool
) -> None:
    toy = TOYS[task]
    own = [change.format(toy=tmp_path / "toy") for change in toy.changes]
    train = ("train", toy.make(tmp_path / "toy"), "--run", tmp_path / "run", *own, *shlex.split(changes))
    assert sentence in refused(weft(*train))
    assert (tmp_path / "run").exists() == read and not (tmp_path / "run" / "model.safetensors").exists()


def test_a_run_in_place_of_a_recipe_is_told_how_to_go_on(trained: Path) -> None:
    said = refused(weft("train", trained))
    assert f"{trained}: expected a recipe, got a run" in said
    assert said.endswith(f"weft train {trained}/recipe.yaml --run {trained}")


def test_a_plugin_that_is_not_there(toy: Path, trained: Path) -> None:
    sentence = "--plugin no_such_package: no package of that name can be imported; install it"
    assert sentence in train(toy, "--plugin", "no_such_package")
    for command in ("predict", "evaluate", "show"):
        assert sentence in refused(weft(command, trained, "--plugin", "no_such_package"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--beam", 2, "--nbest", 3), "raise beam to 3"),
        (("--temperature", 2), "--temperature: applies to sampling, but the search is beam; add --sample"),
        (("--sample", "--beam", 2), "--beam: sampling keeps no beam; leave out one of them"),
        (("--sample", "--top-p", 2), "--top-p: expected a number above 0 and up to 1, got 2"),
        (("--length-penalty", "nan"), "--length-penalty: expected a number from 0 to 10, got nan"),
        (("--device", "abacus"), "device: expected auto, cpu or cuda"),
        (("--beam", "wide"), r"'wide' is not a valid integer"),
        (("--pictures", "where.png"), "--pictures where.png: expected a directory"),
        (("--prefix", "日本"), "prefix: '日本' contains characters or words that the vocabulary"),
        (("--require", "zebra"), "require: 'zebra' contains characters or words"),
        (("--require", " ".join([*WORDS.values()] * 2)), "require: the words and the end take 19 tokens"),
        (("--diverse", 3, "--beam", 4), "3 groups do not divide a beam of 4; set beam to 6"),
        (("--diverse", 2, "--require", "uno"), "--diverse and --require: cannot be combined"),
        (("--sample", "--coverage", 1), "coverage: expected search: beam"),
        (("--min-length", -1), "--min-length: expected a whole number from 0 to 100,000, got -1"),
        (("--document", "a.txt", "--nbest", 2), "--document: cannot be combined with --nbest"),
        (("--document", "a.txt", "--split-sentences"), "cannot be combined with --split-sentences"),
        (("--document", "a.txt", "--processes", 2), "cannot be combined with --processes"),
        (("in.txt", "--document", "a.txt"), "cannot be combined with FILE"),
    ],
    ids=str,
)
def test_wrong_options_of_predict(trained: Path, options: tuple[object, ...], sentence: str) -> None:
    assert sentence in refused(weft("predict", trained, *options, stdin=b"alpha\n"))


@pytest.mark.parametrize("asked", ["--alignments", "--pictures"])
def test_where_a_model_without_attention_looked(blind: Path, tmp_path: Path, asked: str) -> None:
    place = tmp_path / "place"
    if asked == "--alignments":
        place.write_text("older\n")
    said = untouched(tmp_path, lambda: weft("predict", blind, asked, place, stdin=b"alpha\n"))
    assert "this model has no attention, so it has no alignment to show" in said


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--plot", "{}/x.bmp"), r"x\.bmp: expected a file .*\.png, \.svg or \.pdf"),
        (("--data", "{}/nothing"), r"nothing\.xx: no such file.*give the part of the name before"),
        (("--beam", "-1"), r"beam: .*got -1"),
    ],
)
def test_wrong_options_of_evaluate(
    trained: Path, tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    filled = [option.format(tmp_path) for option in options]
    assert re.search(sentence, untouched(tmp_path, lambda: weft("evaluate", trained, *filled)))


def test_a_run_without_test_files_asks_for_some(toy: Path, tmp_path: Path) -> None:
    toy.write_text("".join(line for line in toy.read_text().splitlines(True) if "test:" not in line))
    answer = weft("train", toy, "--run", tmp_path / "run", "training.max_updates=1", code=0)
    assert f"weft evaluate {tmp_path / 'run'} --split valid\n" in answer.out
    assert "--data PREFIX`" in (tmp_path / "run" / "README.md").read_text("utf-8")
    said = refused(weft("evaluate", tmp_path / "run"))
    assert said == (
        "weft: data.test: the recipe names no test files; give some with --data PREFIX, "
        "or score the validation part: --split valid"
    )


def test_an_option_of_another_task_and_a_wrong_setting_are_refused(trained: Path) -> None:
    answer = weft("predict", trained, "--set", "beem=3", stdin=b"alpha\n")
    assert answer.code == 2 and "did you mean 'beam'" in answer.err
    answer = weft("predict", trained, "--set", "beam=2", "--set", "nbest=2", stdin=b"alpha\n")
    assert answer.code == 0 and answer.out.count("\n") == 2
