"""Classification from files to answers, as a user types it: texts, tables, and sets as published."""

import json
import os
import random
import re
import shutil
from pathlib import Path

import pytest

import weft as package
from tests.commands import labelled
from tests.commands.shell import evaluated, refused, untouched, weft
from tests.shared import copied, shared_run
from weft.data.labelled import LabelledText
from weft.errors import ConfigError
from weft.tasks.labels.splits import ENOUGH, held_out, small_validation
from weft.tasks.vocabulary import WordSettings

TASK = "classify"


def test_it_answers_lines_tables_and_marked_lines_alike(run: Path) -> None:
    test = run.parent / "toy" / "test.csv"
    texts = labelled.texts(29, 3)
    wanted = [label for label, _ in texts]
    plain = weft("predict", run, stdin="".join(f"{text}\n" for _, text in texts).encode())
    assert plain.lines == wanted
    rows = test.read_text().replace('"', "").splitlines()
    table = [f"{rows[0]},predicted", *(f"{row},{label}" for row, label in zip(rows[1:], wanted, strict=True))]
    assert weft("predict", run, test).lines == table
    marked = "".join(f"__label__{label} {text}\n" for label, text in texts)
    assert weft("predict", run, stdin=marked.encode()).lines == wanted
    assert package.load(run).predict("this was great") == "good"


@pytest.mark.parametrize("task", ["classify", "images"])
def test_scores_are_probabilities_the_likeliest_first(task: str) -> None:
    run = shared_run(task)
    given = "it was awful" if task == "classify" else min((run.parent / "toy/train/circle").iterdir())
    (line,) = weft("predict", run, "--scores", stdin=f"{given}\n".encode()).lines
    label, *rest = line.split("\t")
    pairs = [cell.rpartition("=") for cell in rest]
    assert label == pairs[0][0] and len({name for name, _, _ in pairs}) == (2 if task == "classify" else 4)
    probs = [float(prob) for _, _, prob in pairs]
    assert probs == sorted(probs, reverse=True) and sum(probs) == pytest.approx(1, abs=1e-3)


def test_an_empty_line_is_named_and_its_answer_is_empty(run: Path) -> None:
    answer = weft("predict", run, stdin=b"\nfine\n \n")
    (first, second, third) = answer.lines
    assert (first, third) == ("", "") and second in ("good", "bad") and answer.code == 3
    assert answer.err.count("the text is empty; write one") == 2


def test_evaluate_prints_baselines_classes_and_confusion(run: Path, tmp_path: Path) -> None:
    picture = tmp_path / "confusion.svg"
    answer, found = evaluated(run, "--full", "--plot", picture, "--output", tmp_path / "out")
    wanted = "test.csv, 29 texts", "accuracy", "macro F1", "ci:wilson", "baseline: naive Bayes", "confusion"
    assert [shown for shown in wanted if shown not in answer.out] == []
    # naive Bayes is right everywhere too
    assert "1.0000  <- the model is not clearly better than the baseline" in answer.unfolded
    assert "accuracy 1.0000 [0.8830, 1.0000]: not clearly better than the best baseline" in answer.unfolded
    assert found["scores"]["accuracy"]["value"] == 1.0
    assert found["scores"]["accuracy"]["baselines"]["naive Bayes, tokens (word)"] == 1.0
    assert sum(map(sum, found["confusion"])) == 29
    assert "predicted class" in picture.read_text("utf-8")
    assert len((tmp_path / "out").read_text().splitlines()) == 29


def test_the_words_that_decided_are_coloured(run: Path, tmp_path: Path) -> None:
    text = b"a film\n\nit was dull\n"
    answer = weft("predict", run, "--pictures", tmp_path / "plots", stdin=text)
    assert answer.code == 3 and "standard input:2: the text is empty; write one" in answer.err
    names = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert names == ["1.png", "1.svg", "3.png", "3.svg"]
    svg = (tmp_path / "plots" / "3.svg").read_text("utf-8")
    assert "dull" in svg and "attention, mean of 2 queries" in svg


def test_the_pictures_of_a_table_have_the_numbers_of_its_rows(run: Path, tmp_path: Path) -> None:
    table = tmp_path / "new.tsv"
    table.write_text("text\tlabel\na film\tgood\nit was dull\tbad\n")
    answer = weft("predict", run, table, "--pictures", tmp_path / "plots", code=0)
    assert answer.lines[0] == "text\tlabel\tpredicted" and len(answer.lines) == 3
    assert sorted(path.name for path in (tmp_path / "plots").glob("*.png")) == ["1.png", "2.png"]


def test_a_bag_begins_as_naive_bayes(tmp_path: Path) -> None:
    recipe = labelled.make_texts(tmp_path / "toy")
    bag = "\n  bag: {ngrams: 2, naive_bayes: true}\n  dropout: 0.0\n"
    recipe.write_text(recipe.read_text().replace("\n  dropout: 0.0\n", bag))
    weft("train", recipe, "--run", tmp_path / "run", "training.optimiser.lr=1e-12", code=0)
    accuracy = evaluated(tmp_path / "run")[1]["scores"]["accuracy"]
    assert accuracy["value"] == accuracy["baselines"]["naive Bayes, tokens and pairs (word)"]
    weft("predict", tmp_path / "run", "--pictures", tmp_path / "plots", stdin=b"a great film\n", code=0)


def test_letters_tell_the_class_of_a_word_that_training_never_saw(tmp_path: Path) -> None:
    recipe = labelled.make_texts(tmp_path / "toy")
    stems = [f"{a}{b}" for a in ("bal", "dor", "kim", "lun", "pes") for b in ("a", "i", "o", "u")]
    lines = [
        f"__label__{'bad' if n % 2 else 'good'} {stem}{'ing' if n % 2 else 'est'} x\n"
        for n, stem in enumerate(stem for stem in stems for _ in range(2))
    ]
    (tmp_path / "toy" / "train.txt").write_text("".join(lines))
    new = "".join(
        f"ver{vowel}{end}\t{label}\n" for vowel in "aeiou" for end, label in [("ing", "bad"), ("est", "good")]
    )
    (tmp_path / "toy" / "valid.tsv").write_text("text\tlabel\n" + new)
    for letters, right in (("null", 0.5), ("[2, 4]", 1.0)):
        bag = f"\n  bag: {{ngrams: 1, edges: true, letters: {letters}, weight: tfidf}}\n  dropout: 0.0\n"
        (tmp_path / "bag.yaml").write_text(recipe.read_text().replace("\n  dropout: 0.0\n", bag))
        run = tmp_path / f"run{right}"
        weft("train", tmp_path / "bag.yaml", "--run", run, code=0)
        assert evaluated(run, "--split", "valid")[1]["scores"]["accuracy"]["value"] == right
    drawn = weft("predict", run, "--pictures", tmp_path / "plots", stdin=b"x vering\n")
    assert drawn.code == 0 and drawn.lines == ["bad"], drawn.err
    assert "vering" in (tmp_path / "plots" / "1.svg").read_text("utf-8")


def test_words_of_the_vectors_are_known_and_a_fixed_table_stays(tmp_path: Path) -> None:
    recipe = labelled.make_texts(tmp_path / "toy")
    vectors = tmp_path / "v.txt"
    names = [*labelled.GOOD, *labelled.BAD, "splendid"]
    rows = {name: [1.0 if name in (*labelled.GOOD, "splendid") else -1.0] * 11 for name in names}
    vectors.write_text("".join(f"{name} {' '.join(map(str, row))}\n" for name, row in rows.items()))
    given = f"embedding: {{size: 11, dropout: 0.0, vectors: {vectors}, fixed: true}}"
    recipe.write_text(recipe.read_text().replace("embedding: {size: 11, dropout: 0.0}", given))
    answer = weft("train", recipe, "--run", tmp_path / "run", code=0)
    (said,) = [line for line in answer.err.splitlines() if "word vectors: " in line]
    used = len(labelled.GOOD) + len(labelled.BAD)
    assert f"{vectors} has {used} of " in said and "% of its tokens" in said
    model = package.load(tmp_path / "run")
    assert model.predict("it was splendid") == "good"  # no training text holds the word
    (number,) = model.reader.vocabulary.encode("splendid")
    row = model.model.embed.table.weight[number] * 11**0.5
    assert row.tolist() == pytest.approx([1.0] * 11)
    assert str(vectors) in (tmp_path / "run" / "data.json").read_text()
    vectors.write_text(vectors.read_text() + "more " + " 1" * 11 + "\n")
    again = weft(
        "train", recipe, "--run", tmp_path / "run", "training.max_updates=99", "training.max_epochs=0"
    )
    assert f"{vectors}: has changed since the training" in refused(again)


def test_a_linear_model_knows_words_by_their_vectors_and_keeps_none(tmp_path: Path) -> None:
    recipe = labelled.make_texts(tmp_path / "toy")
    words = copied(shared_run("embeddings"), tmp_path / "words")
    kinds = {"fruit": ["apple", "pear", "plum", "fig"], "tool": ["saw", "drill", "axe", "file"]}
    for name, chosen in (("train.txt", slice(2)), ("valid.tsv", slice(1)), ("test.csv", slice(2, 4))):
        rows = [(kind, one) for kind, them in kinds.items() for one in them[chosen]] * 5
        marked = "".join(f"__label__{kind} {one}\n" for kind, one in rows)
        mark = "," if name == "test.csv" else "\t"
        table = "".join(f"{one}{mark}{kind}\n" for kind, one in rows)
        text = marked if name == "train.txt" else f"text{mark}label\n{table}"
        (tmp_path / "toy" / name).write_text(text)
    linear = ["model.bag={ngrams: 1, weight: tfidf, solve: true}", "training.metric=loss"]
    train = "train", recipe, *linear, "training.refit=true", "--run"
    answer = weft(*train, tmp_path / "run", f"model.embedding.vectors={words}", code=0)
    assert f"word vectors: {words} has 4 of 4 words of the training text" in answer.err
    file = tmp_path / "v.txt"
    weft("export", words, "--vectors", file, code=0)
    weft(*train, tmp_path / "same", f"model.embedding.vectors={file}", code=0)
    model = "model.safetensors"
    assert (tmp_path / "run" / model).read_bytes() == (tmp_path / "same" / model).read_bytes()
    shutil.rmtree(words)
    weft(*train, tmp_path / "without", code=0)
    for name, right in {"run": 1.0, "without": 0.5}.items():  # of words that no labelled text has
        weft("evaluate", tmp_path / name, "--json", tmp_path / "all.json", code=0)
        assert json.loads((tmp_path / "all.json").read_text())["scores"]["accuracy"]["value"] == right
    assert list(package.load(tmp_path / "run").predict(["fig", "axe"])) == ["fruit", "tool"]
    card = " ".join((tmp_path / "run" / "README.md").read_text().split())
    assert f"with the word vectors of {words})" in card
    shown = weft("show", tmp_path / "run", code=0).out
    assert f"vectors: {words}" in shown and "contextual:" not in shown and "frame:" not in shown


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["model.bag={ngrams: 1}"], "embedding.vectors: requires bag.solve: true"),
        (
            ["model.bag={solve: true}", "model.embedding.vectors={run}"],
            "got the run {run} without; train one",
        ),
        (["model.embedding.size=5"], "embedding.size is 5, but the vectors of {vectors} have 2 numbers"),
    ],
)
def test_vectors_that_the_model_cannot_read_are_refused(
    changes: list[str], sentence: str, run: Path, tmp_path: Path
) -> None:
    (vectors := tmp_path / "v.txt").write_text("fine 1 2\n")
    given = [f"model.embedding.vectors={vectors}", *(one.replace("{run}", str(run)) for one in changes)]
    said = refused(weft("train", labelled.make_texts(tmp_path / "toy"), "--run", tmp_path / "new", *given))
    assert sentence.replace("{run}", str(run)).replace("{vectors}", str(vectors)) in said


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("train.txt", "__label__a x\nno label\n", r"train.txt:2: 'no label' has no label; begin the line"),
        ("train.txt", "__label__a x\n__label__a __label__b x\n", "train.txt:2: expected one label, got two"),
        ("train.txt", "__label__a x\n__label__a y\n", "expected two classes or more, got 2 examples"),
        (
            "valid.tsv",
            "a\tb\tc\nx\ty\tz\n",
            "valid.tsv:1: expected the columns 'text' and 'label', got a, b, c",
        ),
        ("valid.tsv", "text\tlabel\nx\n", "valid.tsv:2: expected 2 columns, got 1"),
        ("valid.tsv", "text\tlabel\nx\t \n", "valid.tsv:2: the label is empty"),
        ("valid.tsv", "text\tlabel\n", "valid.tsv: expected at least one text for valid"),
        ("test.csv", 'text,label\n"x,y\n', "test.csv:2: unexpected end of data"),
    ],
)
def test_bad_files_are_named_and_no_model_is_written(
    tmp_path: Path, name: str, text: str, sentence: str
) -> None:
    recipe = labelled.make_texts(tmp_path / "toy")
    (tmp_path / "toy" / name).write_text(text)
    if name == "test.csv":
        run = tmp_path / "run"
        assert weft("train", recipe, "--run", run, "training.max_updates=2").code == 0
        said = untouched(tmp_path, lambda: weft("evaluate", run, "--json", tmp_path / "x.json"))
    else:
        said = refused(weft("train", recipe, "--run", tmp_path / "run"))
        assert not (tmp_path / "run" / "model.safetensors").exists()
    assert sentence in said.replace(str(tmp_path / "toy") + "/", "")


def test_data_check_finds_everything_at_once(tmp_path: Path) -> None:
    a, b = "__label__a", "__label__b"
    (tmp_path / "train.txt").write_text(f"{a} x\n{a} x\n{b}\nno label\n{a} {b} z\n{b} y\n")
    (tmp_path / "dev.txt").write_text("__label__c x\n__label__a w\n")
    answer = weft("data", "check", tmp_path / "train.txt", tmp_path / "dev.txt", "--task", "classify")
    assert answer.code == 1
    shown = answer.out.replace(f"{tmp_path}/", "")
    for sentence in (
        "train.txt:2: the same text as train.txt:1",
        "train.txt:3: the text is empty",
        "train.txt:4: 'no label' has no label",
        "train.txt:5: expected one label, got two",
        "train.txt: the class 'b' has 2 texts",
        "dev.txt:1: the label 'c' does not occur in train.txt",
        "dev.txt:1: the same text as train.txt:1, there labelled 'a', here 'c'",
        "dev.txt: 1 of the class 'a', 0 of the class 'b', so scores there say little about them; add texts",
    ):
        assert sentence in shown
    (tmp_path / "fine.tsv").write_text(
        "label\ttext\n" + "".join(f"{x}\t{x} {n}\n" for n in range(15) for x in "ab")
    )
    fine = weft("data", "check", tmp_path / "fine.tsv", "--task", "classify")
    assert (fine.code, fine.lines[-1]) == (0, "no problems found; ready to train")
    with (tmp_path / "fine.tsv").open("a") as file:
        file.writelines(f"rare\tc {n}\n" for n in range(6))
    said = "held out for validation: 2 of 6 of the class 'rare', so scores there say little about it"
    thin = weft("data", "check", tmp_path / "fine.tsv", "--task", "classify", code=0)
    assert thin.out.count("warning: ") == 1 and said in thin.out
    recipe = ["--model", "linear", "--output", tmp_path / "r.yaml"]
    written = weft("init", "classify", tmp_path / "fine.tsv", *recipe, code=0)
    assert said in written.out + written.err
    for rare, expected in ((3, 0), (1, 1)):
        (tmp_path / "dev.tsv").write_text("label\ttext\n" + "a\td\nb\te\n" * 3 + "rare\tf\n" * rare)
        files = [tmp_path / "fine.tsv", "--valid", tmp_path / "dev.tsv"]
        written = weft("init", "classify", *files, *recipe[:-1], tmp_path / f"{rare}.yaml", code=0)
        said = "1 of the class 'rare', so scores there say little about it; add texts to dev.tsv"
        assert written.out.count(said) == expected


def test_a_validation_part_of_one_class_is_refused_and_a_seed_mends_it(tmp_path: Path) -> None:
    recipe = labelled.make_texts(tmp_path / "toy")  # good and bad in turn: every tenth is good
    changes = "data.valid=null", "data.hold_out=10", "training.max_updates=1"
    said = refused(weft("train", recipe, "--run", tmp_path / "run", *changes))
    assert "train.txt valid: expected two classes" in said and "data.split_seed: 1" in said
    weft("train", recipe, "--run", tmp_path / "run", *changes, "data.split_seed=1", code=0)
    (tmp_path / "toy" / "valid.tsv").write_text("text\tlabel\nfine\tgood\ngreat\tgood\n")
    said = refused(weft("train", recipe, "--run", tmp_path / "other"))
    assert "valid.tsv: expected two classes" in said and "other classes" in said


def test_init_names_its_own_options_for_columns(tmp_path: Path) -> None:
    labelled.make_texts(tmp_path)
    options = "--train", tmp_path / "test.csv", "--output", tmp_path / "x.yaml", "--label", "stars"
    said = untouched(tmp_path, lambda: weft("init", "classify", *options))
    assert "expected a column 'stars', got id, text, label" in said
    assert said.endswith("; name the columns with --text and --label, or in the first line")


def test_a_table_without_rows_keeps_its_header(run: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("text,predicted\n")
    assert weft("predict", run, tmp_path / "new.csv").lines == ["text,predicted,predicted_"]


def test_a_row_without_a_text_keeps_its_cells_and_is_named(run: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,text\n7,\n8,it was dull\n")
    answer = weft("predict", run, tmp_path / "new.csv")
    assert answer.code == 3 and "new.csv:2: the text is empty" in answer.err
    assert answer.lines == ["id,text,predicted", "7,,", "8,it was dull,bad"]
    (tmp_path / "new.tsv").write_text("bad\tit was dull\ngood\t\n")
    answer = weft("predict", run, tmp_path / "new.tsv")
    assert answer.code == 3 and "new.tsv:2: the text is empty" in answer.err
    assert answer.lines == ["bad", ""]


def test_a_pipe_is_written_to_and_not_replaced_by_a_file(run: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    (tmp_path / "new.csv").write_text("id,text\n8,it was dull\n")
    assert weft("predict", run, tmp_path / "new.csv", "--output", pipe).code == 0
    assert os.read(reader, 99).split() == [b"id,text,predicted", b"8,it", b"was", b"dull,bad"]
    assert pipe.is_fifo()
    os.close(reader)


def test_a_table_keeps_its_mark_line_ends_and_decimal_commas(run: Path, tmp_path: Path) -> None:
    """As Excel writes it in Europe; a line end in a cell stays as it is."""
    content = '\ufefftext;amount;note\r\nit was dull;60,94;"a\nb"\r\n;7,5;\r\n'.encode()
    (tmp_path / "new.csv").write_bytes(content)
    filed = weft("predict", run, tmp_path / "new.csv", "--scores")
    head, row, empty = filed.out.removesuffix("\r\n").split("\r\n")
    assert head.startswith("\ufefftext;amount;note;predicted;predicted=")
    assert re.fullmatch(r'it was dull;60,94;"a\nb";bad;[01],\d{4};[01],\d{4}', row)
    assert empty == ";7,5;;;;"
    weft("predict", run, tmp_path / "new.csv", "--scores", "--output", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == filed.out.encode()
    assert weft("predict", run, "--scores", stdin=content).out == filed.out


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("a.csv", 'id,text\n7,"it was\n"\n8,\n', ["id,text,predicted", "7,", '",', "8,,"]),
        ("a.tsv", "\ufeffText\tlabel\nit was dull\tbad\n", ["\ufeffText\tlabel", "it was dull\tbad\tbad"]),
        ("a.csv", "text\nit was dull\n", ["text,predicted", "it was dull,bad"]),
        ("a.jsonl", '{"text": "it was dull"}\n', ["text,predicted", "it was dull,bad"]),
        ("a.json", '[\n  {"text": "it was dull"}]\n', ["text,predicted", "it was dull,bad"]),
        ("a.csv", "id,text\n7,it was dull\n,\n,\n", ["id,text,predicted", "7,it was dull,bad", ",,", ",,"]),
    ],
)
def test_a_table_on_standard_input_is_read_as_its_file(
    run: Path, name: str, content: str, lines: list[str], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    filed, piped = weft("predict", run, tmp_path / name), weft("predict", run, stdin=content.encode())
    assert (piped.code, piped.out) == (filed.code, filed.out)
    assert [line[: len(wanted)] for line, wanted in zip(piped.out.splitlines(), lines, strict=False)] == lines
    assert f"standard input: read as a .{name[2:]} table" in piped.err
    assert filed.err.replace(str(tmp_path / name), "standard input") in piped.err
    assert weft("predict", run, "-", stdin=content.encode()).out == piped.out


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", "id,label\n1,bad\n"), ("a.tsv", "id\tlabel\ttxt\n1\tbad\tit was dull\n")]
)
def test_a_table_on_standard_input_without_its_columns_is_refused_as_its_file(
    run: Path, name: str, content: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    said = refused(weft("predict", run, tmp_path / name))
    assert "expected a column 'text', got " in said
    piped = weft("predict", run, stdin=content.encode())
    assert (piped.code, piped.out) == (2, "")
    assert piped.err.splitlines()[-1] == said.replace(str(tmp_path / name), "standard input")


def test_texts_on_standard_input_are_no_table(run: Path) -> None:
    for text in (b"text\nid, text and more\n", b"a text, or more\n"):
        assert weft("predict", run, stdin=text).out.count("\n") == text.count(b"\n")
    assert "got an Excel workbook" in refused(weft("predict", run, stdin=b"PK\x03\x04" + bytes(26) + b"xl/"))


SMALL = ("training.max_updates=2", "training.validate_every=2", "training.tensorboard=false")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """As TREC's files are: NUM:dist far lake ?"""
    chance, kinds = random.Random(1), [("NUM:dist", "far"), ("NUM:count", "many"), ("HUM:ind", "do n't who")]
    for name, count in (("train", 97), ("test", 23)):
        rows = []
        for _ in range(count):
            (kind, verb), place = chance.choice(kinds), chance.choice(["café", "U.S.", "lake"])
            rows.append(f"{kind} {verb} {place} ?")
        (tmp_path / f"{name}.label").write_bytes("".join(f"{row}\n" for row in rows).encode("latin-1"))
    return tmp_path


def test_latin_1_and_a_class_in_front_are_named_and_read_by_an_option(questions: Path) -> None:
    train = questions / "train.label"
    coarse = ("--train", train, "--labels", "coarse")
    assert "latin-1" in refused(weft("init", "classify", *coarse, "-o", questions / "x.yaml"))
    lines = ("--train", train, "--encoding", "latin-1")
    assert "--labels" in refused(weft("init", "classify", *lines, "-o", questions / "x.yaml"))
    given = (*lines, "--labels", "coarse", "-o", questions / "mine.yaml")
    weft("init", "classify", *given, code=0)
    written = (questions / "mine.yaml").read_text("utf-8")
    assert "labels: coarse" in written and "encoding: latin-1" in written and "2 classes" in written
    changes = (f"data.folder={questions}", "data.vocabulary.kind=space", *SMALL)
    weft("train", questions / "mine.yaml", "--run", questions / "run", *changes, code=0)
    scored = weft("evaluate", questions / "run", "--full")
    assert scored.code == 0 and "HUM" in scored.out and "(space)" in scored.out, scored.err


def test_the_forms_of_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 a dull film\n1 do n't miss it\n" * 5)
    found = [(one.label, one.text) for one in LabelledText(tmp_path / "a.txt", labels="first")]
    assert found == [("0", "a dull film"), ("1", "do n't miss it")] * 5
    (tmp_path / "b.txt").write_text("NUM:dist How far ?\nalone\n")
    rows = list(LabelledText(tmp_path / "b.txt", labels="coarse").rows())
    assert rows[0].label == "NUM" and rows[1].kind == "unlabelled"  # type: ignore[union-attr]
    checked = weft("data", "check", tmp_path / "a.txt", "--task", "classify", "--labels", "first")
    assert checked.code == 0, checked.out
    with pytest.raises(ConfigError, match="encoding"):
        LabelledText(tmp_path / "a.txt", encoding="utf-16")


def test_words_between_spaces_stay_whole() -> None:
    vocabulary = WordSettings(kind="space").learn(["do n't go to the U.S. ?"])
    assert vocabulary.surface_pieces("n't U.S.") == ["n't", "u.s."]
    cut = WordSettings(kind="word").learn(["do n't go to the U.S. ?"])
    assert len(cut.encode("n't U.S.")) == 7


def test_a_validation_part_that_is_too_small_is_told(questions: Path) -> None:
    said = small_validation(173, 6747, cut=True)
    assert said and "±7.5 points" in said and "data.hold_out: 6 would keep 1,153" in said
    assert small_validation(ENOUGH, 10_000, cut=True) is None
    assert "hold_out" not in str(small_validation(173, 6747, cut=False))
    # the worst case is one half right: 1.96 sqrt(0.25 / n) is three points
    assert 1.96 * (0.25 / ENOUGH) ** 0.5 <= 0.03 < 1.96 * (0.25 / (ENOUGH - 1)) ** 0.5
    assert [held_out(n) for n in (900, 6920, 50_000)] == [5, 6, 10]
