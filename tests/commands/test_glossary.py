"""--glossary: every term of a source has its translation in the answer, and nothing else changes."""

from pathlib import Path

import pytest

import weft as package
from tests.commands import corpus
from tests.commands.shell import refused, weft
from weft.data.parallel import ParallelText
from weft.errors import DataError
from weft.tasks.seq2seq.glossary import AnnotatedText, Glossary, kept, read_glossary

LINES = ["alpha beta", "gamma", "beta gamma delta alpha", "Beta beta", "theta iota", "", "zeta"]


@pytest.fixture
def terms(tmp_path: Path) -> Path:
    path = tmp_path / "terms.tsv"
    path.write_text("beta\tnove\n\ndelta alpha\tsei sette\n")  # not what training taught
    return path


def test_answers_contain_the_terms_and_other_lines_stay_the_same(trained: Path, terms: Path) -> None:
    text = "".join(f"{line}\n" for line in LINES).encode()
    plain = weft("predict", trained, stdin=text)
    found = weft("predict", trained, "--glossary", terms, stdin=text, code=0)
    for line, before, now in zip(LINES, plain.lines, found.lines, strict=True):
        if "beta" in line.lower():
            assert "nove" in now.split()
        else:
            assert now == before
    assert "sei sette" in found.lines[2] and "nove" not in plain.lines[0]


def test_python_has_the_same_answers_and_adds_to_a_glossary(trained: Path, terms: Path) -> None:
    lines = [line for line in LINES if line]
    found = weft(
        "predict", trained, "--glossary", terms, stdin="".join(f"{line}\n" for line in lines).encode()
    )
    plain = package.load(trained)
    both = plain.with_glossary({"beta": "nove"}).with_glossary({"delta alpha": "sei sette"})
    for translator in (plain.with_glossary(terms), both):
        assert [*translator.predict(lines)] == found.lines
    assert "nove" not in plain.predict("alpha beta").split()  # it is another translator


def test_the_report_has_the_share_of_terms_kept(trained: Path, terms: Path) -> None:
    sources = (trained.parent / "toy" / "test.xx").read_text().splitlines()
    glossary = Glossary([("beta", "nove"), ("delta alpha", "sei sette")])
    count = sum(len(glossary.required(line)) for line in sources)
    with_terms = weft("evaluate", trained, "--glossary", terms, code=0)
    assert f"terms of the glossary: {count} of {count} kept (100.0%)" in with_terms.out
    assert f"glossary {terms}" in " ".join(with_terms.out.split())
    assert "glossary" not in weft("evaluate", trained).out


def test_terms_are_whole_words_the_longest_first_each_once() -> None:
    glossary = Glossary([("cell", "celda"), ("cell range", "rango"), ("C++", "C++"), ("l'eau", "water")])
    assert glossary.required("Cell cells cell-range, cell range; cell") == ("celda", "rango")
    assert glossary.required("Use C++ and L'eau.") == ("C++", "water")
    assert glossary.required("") == ()
    found = kept(glossary, ["a cell", "the cell range"], ["una Celda", "el rangoso"], ["x", "el rango"])
    assert tuple(found) == (2, 1, 1)


WORDS = {
    "a vowel sign": ("कल", "कला", "कल और आज"),
    "an accent of its own": ("resume", "the resume\u0301", "Resume it"),
    "the other Unicode form": ("résumé", "resumes", "the re\u0301sume\u0301."),
    "a soft hyphen": ("button", "but\u00adtons", "the but\u00adton"),
    "no space between words": ("文件", "文字", "打开文件。"),
    "no space in Thai": ("ไฟล์", "ไฟ", "เปิดไฟล์"),
    "a part of a word in katakana": ("カー", "カード", "カーを"),
    "a ligature": ("file", "profile", "the ﬁle"),
    "wide letters": ("ABC", "ABCD", "ＡＢＣ"),
    "a curly quote": ("don't", "don", "Don’t"),
    "a sharp s": ("straße", "Straßen", "STRASSE"),
    "a joiner inside": ("می‌خواهم", "خواهم", "من می‌خواهم."),
    "an emoji of several": ("👩‍🚒", "👩", "A 👩‍🚒!"),
}


@pytest.mark.parametrize(("term", "other", "line"), WORDS.values(), ids=WORDS)
def test_words_end_where_unicode_says(term: str, other: str, line: str) -> None:
    glossary = Glossary([(term, "x")])
    assert glossary.required(other) == ()
    assert glossary.required(line) == ("x",)
    assert tuple(kept(Glossary([("a", term)]), ["a", "a"], [line, other], [other, line])) == (2, 1, 1)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        *(
            ("terms.tsv", f"alpha\tuno\n{line}\n", r"terms\.tsv:2: expected TERM TAB TRANSLATION")
            for line in ("beta", "\tnove", "beta\t", "beta\tnove\tsei")
        ),
        ("terms.csv", "alpha;uno\nbeta;\n", r"terms\.csv:2: expected a term and its translation, got 'beta"),
        (
            "terms.tsv",
            "beta\tnove\nalpha\tuno\nBeta\tsei\nalpha\tuno\n",
            r"terms\.tsv:3: 'Beta' is 'sei' here but 'nove' in line 1",
        ),
    ],
)
def test_a_damaged_glossary_is_named(tmp_path: Path, name: str, content: str, why: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=why):
        read_glossary(tmp_path / name)


def test_init_writes_a_recipe_that_learns_to_take_terms(tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("cell\tcelda\n")
    rows = "".join(f"cell {n} of a row\tcelda {n} de una fila\n" for n in range(40))
    (tmp_path / "pairs.tsv").write_text(f"en\tes\n{rows}")
    options = ["--glossary", tmp_path / "terms.tsv", "--output", tmp_path / "my.yaml"]
    weft("init", "translate", tmp_path / "pairs.tsv", *options, code=0)
    assert f"  glossary: {tmp_path}/terms.tsv" in (tmp_path / "my.yaml").read_text()
    (tmp_path / "terms.tsv").write_text("cell\tcelda\nrow\n")
    options[-1] = tmp_path / "other.yaml"
    said = refused(weft("init", "translate", tmp_path / "pairs.tsv", *options))
    assert "terms.tsv:2: expected TERM TAB TRANSLATION" in said


def test_a_missing_glossary_is_named_before_the_training(toy: Path, tmp_path: Path) -> None:
    said = refused(weft("train", toy, "--run", tmp_path / "run", f"decoding.glossary={tmp_path}/gone.tsv"))
    assert "gone.tsv: no such file" in said and not (tmp_path / "run" / "checkpoints").exists()


def test_a_term_that_the_vocabulary_cannot_spell_is_put_in_its_place(trained: Path, tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("beta\tunheard\n")
    found = weft("predict", trained, "--glossary", path, stdin=b"alpha\nbeta\nalpha beta\n")
    plain = weft("predict", trained, stdin=b"alpha beta\n").lines[0]
    assert found.code == 0 and not found.err
    assert found.lines[:2] == [corpus.WORDS["alpha"], "unheard"]
    assert found.lines[2] == plain.replace(corpus.WORDS["beta"], "unheard")


def test_sampling_and_required_words_exclude_it(trained: Path, terms: Path) -> None:
    said = refused(weft("predict", trained, "--glossary", terms, "--require", "uno", stdin=b"alpha\n"))
    assert "--require and --glossary: cannot be combined" in said
    assert "glossary" in refused(weft("predict", trained, "--glossary", terms, "--sample", stdin=b"alpha\n"))


def test_half_of_the_sources_whose_terms_are_translated_so_are_annotated(tmp_path: Path) -> None:
    (tmp_path / "x.en").write_text("".join(f"{n} cells, then a row\n" for n in range(400)))
    (tmp_path / "x.es").write_text("".join(f"{n} CELDAS, luego otra\n" for n in range(400)))
    path = tmp_path / "terms.tsv"
    path.write_text("cells\tceldas\nrow\tfila\n")
    text = AnnotatedText(ParallelText(tmp_path / "x", "en", "es"), path)
    pairs = list(text)
    assert pairs == list(text) and text.files[-1] == path and text.place(3) == f"{tmp_path / 'x.en'}:3"
    annotated = [pair.source for pair in pairs if "<term>" in pair.source]
    assert annotated[0].endswith(" cells <term> celdas </term>, then a row")  # not fila: the target lacks it
    assert 150 < len(annotated) < 250
    assert [pair.target for pair in pairs[:2]] == ["0 CELDAS, luego otra", "1 CELDAS, luego otra"]


@pytest.mark.parametrize("updates", [3, pytest.param(400, marks=pytest.mark.slow)])
def test_a_model_trained_with_a_glossary_follows_what_its_sources_say(updates: int, tmp_path: Path) -> None:
    recipe = corpus.make(tmp_path / "toy")
    for side in (tmp_path / "toy" / "train.yy", tmp_path / "toy" / "valid.yy"):
        lines = [
            line if n % 3 else line.replace("uno", "once")
            for n, line in enumerate(side.read_text().split("\n"))
        ]
        side.write_text("\n".join(lines))
    terms = tmp_path / "terms.tsv"
    terms.write_text("alpha\tonce\n")
    run = tmp_path / "run"
    weft("train", recipe, "--run", run, f"data.glossary={terms}", f"training.max_updates={updates}", code=0)
    sources = (tmp_path / "toy" / "train.xx").read_text().splitlines()[:60]
    text = "".join(f"{line}\n" for line in sources).encode()
    options = ["--glossary", terms, "--set", "terms=annotate"]
    plain, found = (weft("predict", run, *extra, stdin=text).lines for extra in ([], options))
    if updates == 400:  # it has learnt to
        counts = [kept(read_glossary(terms), sources, lines, sources) for lines in (plain, found)]
        assert counts[0].outputs < 0.5 * counts[0].terms, counts
        assert counts[1].outputs > 0.65 * counts[1].terms, counts
    same = [
        line == other
        for line, other, source in zip(plain, found, sources, strict=True)
        if "alpha" not in source
    ]
    assert all(same) and len(same) > 5
    report = weft("evaluate", run, *options, "--beam", 1).out
    assert "greedy, glossary" in report and "terms annotate" in report and "terms of the glossary" in report
    answer = weft("predict", run, *options, "--alignments", tmp_path / "a", stdin=text)
    assert "count the words that they write" in refused(answer)


def test_only_a_model_of_annotated_sources_takes_annotations(trained: Path, terms: Path) -> None:
    answer = weft("predict", trained, "--glossary", terms, "--set", "terms=annotate", stdin=b"alpha\n")
    assert "train with data.glossary=FILE" in refused(answer)
