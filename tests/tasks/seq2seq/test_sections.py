"""The section `data`: files are found from anywhere and have weights and domains, which a search may name."""

import shlex
from pathlib import Path
from typing import cast

import pytest

import weft as package
from tests.commands import corpus
from tests.commands.shell import refused, weft
from tests.shared import shared_run
from weft.config import dump, read_recipe
from weft.errors import ConfigError
from weft.run.training import check_recipe
from weft.tasks.seq2seq.glossary import in_domain
from weft.tasks.seq2seq.sections import PairData
from weft.tasks.seq2seq.translator import Translator
from weft.tasks.translate.task import TranslateTask

NO_DOMAINS = "domain: the model was trained without data.domains; leave it out"
FILES = {"legal.tsv": 40, "help.tsv": 60, "more/c.tsv": 20}


@pytest.fixture
def memories(tmp_path: Path) -> Path:
    """Three tables of pairs, one of them in a folder."""
    for name, rows in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("en\tes\n" + "".join(f"{name} {n}\tes {n}\n" for n in range(rows)))
    return tmp_path


def data(folder: Path, **settings: object) -> PairData:
    given = {"train": ["legal.tsv", "help.tsv", "more"], "hold_out": 5, **settings}
    return PairData(source="en", target="es", folder=folder, **given)  # type: ignore[arg-type]


def test_sources_of_a_file_name_its_domain_but_for_one_in_ten(memories: Path) -> None:
    found = data(memories, domains={"legal.tsv": "legal", "more/c.tsv": "new"}, hold_out=0, valid="v")
    rest, legal, new = [list(text) for text in found.texts()]
    assert [pair.source for pair in rest] == [f"help.tsv {n}" for n in range(60)]
    for pairs, domain, name in ((legal, "legal", "legal.tsv"), (new, "new", "more/c.tsv")):
        named = [pair.source.startswith(f"<{domain}> {name}") for pair in pairs]
        assert len(named) == FILES[name] and 0.75 < sum(named) / len(named) < 1
    assert all(pair.target.startswith("es ") for pair in legal)
    assert "<" not in "".join(found.complete("train")[0])  # what baselines and evaluations read


def test_held_out_pairs_are_of_every_file_and_keep_their_domains_in_training(memories: Path) -> None:
    found = data(memories, domains={"legal.tsv": "legal"}, mixed={"more/c.tsv": 2.0})
    parts = [list(found.open(split)) for split in ("train", "valid")]
    assert sorted(pair.source for part in parts for pair in part) == sorted(
        f"{name} {n}" for name, rows in FILES.items() for n in range(rows)
    )
    sources = [pair.source for pair in parts[1]]
    assert {source.split()[0] for source in sources} == {*FILES}
    read = found.validation()[0]
    assert read == [in_domain("legal", one) if one.startswith("legal") else one for one in sources]
    joined = found.open("train")
    places = [joined.place(pair.number) for pair in joined]
    assert places[-1] == f"{memories}/legal.tsv:41" and f"{memories}/more/c.tsv:21" in places


def test_a_file_of_the_list_has_the_weight_that_mixed_gives_it(memories: Path) -> None:
    found = data(memories, mixed={"help.tsv": 3.0, "more/c.tsv": 0.5}, hold_out=0, valid="v")
    assert [len([*text]) for text in found.texts()] == [40, 60, 20] and found.weights == [1.0, 3.0, 0.5]
    every = data(
        memories, mixed={"legal.tsv": 2.0, "help.tsv": 3.0, "more/c.tsv": 0.5}, hold_out=0, valid="v"
    )
    assert every.weights == [2.0, 3.0, 0.5] and len([*every.open("train")]) == 120


def test_wrong_files_and_names_are_refused(memories: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.domains: expected a file of data\.train .*, got gone\.tsv"):
        data(memories, domains={"gone.tsv": "legal"}).texts()
    with pytest.raises(ConfigError, match=r"domains: expected a name of letters.* for help\.tsv, got 'a b'"):
        data(memories, domains={"help.tsv": "a b"})


def test_a_search_names_a_domain_of_the_model(tmp_path: Path) -> None:
    recipe = corpus.make(tmp_path / "toy")
    corpus.write(tmp_path / "toy", "more", 41, 9)
    more, run = f"{tmp_path}/toy/more", tmp_path / "run"
    weft(
        "train", recipe, "--run", run, f"data.mixed={{{more}: 2}}", f"data.domains={{{more}: legal}}",
        "training.max_updates=3", "training.validate_every=0", code=0)  # fmt: skip
    plain = weft("predict", run, "--scores", stdin=b"alpha\n\n12\n", code=0)
    named = weft("predict", run, "--scores", "--domain", "legal", stdin=b"alpha\n\n12\n", code=0)
    assert len(named.lines) == 3 and named.lines[0] != plain.lines[0] and named.lines[1:] == plain.lines[1:]
    (tmp_path / "a.txt").write_text("alpha\n")
    files = "--document", tmp_path / "a.txt", "-o", tmp_path / "b.txt"
    weft("predict", run, "--domain", "legal", *files, code=0)
    answer = named.lines[0].partition("\t")[2].strip()
    assert (tmp_path / "b.txt").read_text().strip() == answer
    translator = package.load(run, device="cpu")
    assert isinstance(translator, Translator)
    assert translator.predict("alpha", domain="legal") == answer
    assert translator.predict(["alpha"], domain="legal")[0] == answer
    assert f"{translator.in_domain('legal').translate(['alpha'])[0][0].score:.4f}" in named.lines[0]
    with pytest.raises(ConfigError, match="domain: expected one of legal, got help"):
        translator.predict("alpha", domain="help")
    said = refused(weft("predict", run, "--domain", "help", stdin=b"alpha\n"))
    assert "--domain: expected one of legal, got help" in said
    assert "domain legal" in weft("evaluate", run, "--domain", "legal", code=0).out
    said = refused(weft("train", recipe, "--run", tmp_path / "other", "decoding.domain=legal"))
    assert NO_DOMAINS in said
    with pytest.raises(ConfigError, match=NO_DOMAINS):
        cast(Translator, package.load(shared_run("translate"), device="cpu")).predict("alpha", "legal")


def test_init_writes_a_domain_for_each_file(memories: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(memories)
    weft("init", "translate", "legal.tsv", "help.tsv", "--domains", code=0)
    said = (memories / "en-es.yaml").read_text()
    assert "domains: {legal.tsv: legal, help.tsv: help} " in said
    quick = shlex.split(next(line for line in said.split("\n") if "weft train help-demo" in line)[1:])
    assert quick[:4] == ["weft", "train", "help-demo", "data.corpus=null"]
    task = check_recipe(read_recipe(quick[2], quick[3:])).task
    assert task.data.train == ["legal.tsv", "help.tsv"] and task.data.hold_out == 20  # type: ignore[attr-defined]
    assert "expected the name of a file, got -" in refused(weft("init", "translate", "help.tsv", "-o", "-"))
    said = refused(weft("init", "translate", "legal.tsv", "--domains", "--output", "other.yaml"))
    assert "--domains: expected two training files or more, got 1" in said


RECIPE = """
task: translate
data: {FOLDER source: xx, target: yy, train: train, valid: valid}
training: {max_updates: 1}
"""


@pytest.mark.parametrize("folder", ["texts", ".", ""])
def test_the_files_of_a_folder_are_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    for name in ("train", "valid"):
        for side in ("xx", "yy"):
            (tmp_path / folder / f"{name}.{side}").write_text(f"{name} {side}\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.yaml").write_text(RECIPE.replace("FOLDER", f"folder: {folder}," if folder else ""))
    (tmp_path / "resolved.yaml").write_text(dump(check_recipe(read_recipe("first.yaml")).plain))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    task = check_recipe(read_recipe(tmp_path / "resolved.yaml")).task
    assert isinstance(task, TranslateTask)
    assert [pair.source for pair in task.data.open("train")] == ["train xx"]
