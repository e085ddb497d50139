"""Tagged sentences and classes as annotation tools write them, archives, and text that is cut already."""

import json
import zipfile
from pathlib import Path

import pytest

from tests.commands.shell import refused, weft
from weft.data.conll import form_of, holds_tags
from weft.data.conllu import read_sentences
from weft.data.guess import columns_of, holds_pairs, holds_texts, texts_of
from weft.data.labelled import LabelledText
from weft.data.lines import line_findings, read_lines
from weft.data.parallel import ParallelText
from weft.data.plain import PlainText, check_plain_texts
from weft.data.spans import tagged_records
from weft.errors import DataError
from weft.tasks.tag.data import check_tags

TEXT = "Anna Lee lives in Rome."
SPANS = [(0, 8, "PER"), (18, 22, "LOC")]
WORDS = ["Anna", "Lee", "lives", "in", "Rome", "."]
TAGS = ["B-PER", "I-PER", "O", "O", "B-LOC", "O"]
RECORDS = {
    "hugging_face.jsonl": {"tokens": WORDS, "ner_tags": TAGS},
    "doccano.jsonl": {"id": 1, "text": TEXT, "label": [list(one) for one in SPANS]},
    "doccano_relations.jsonl": {
        "text": TEXT,
        "entities": [{"start_offset": a, "end_offset": b, "label": name} for a, b, name in SPANS],
    },
    "prodigy.jsonl": {"text": TEXT, "spans": [{"start": a, "end": b, "label": c} for a, b, c in SPANS]},
    "spacy.jsonl": [TEXT, {"entities": [list(one) for one in SPANS]}],
    "label_studio.json": {
        "data": {"text": TEXT},
        "annotations": [
            {"result": [{"value": {"start": a, "end": b, "labels": [c]}} for a, b, c in SPANS]},
        ],
    },
}


@pytest.mark.parametrize("name", RECORDS)
def test_records_of_annotation_tools_are_tagged_sentences(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    one = json.dumps(RECORDS[name])
    path.write_text(f"[{one}, {one}]" if name.endswith(".json") else f"{one}\n{one}\n")
    first, second = read_sentences(path)
    assert (first.forms, first.tags, second.first) == (WORDS, TAGS, 2)
    assert holds_tags(path) and not holds_texts(path) and not holds_pairs(path)
    report = check_tags([path])
    assert report.num_errors == 0 and report.lines == {str(path): 2}


def test_what_a_record_lacks_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    wrong = {
        "expected the names of tags, got numbers": {"tokens": ["a"], "ner_tags": [3]},
        "expected a tag for each of 2 words, got 1": {"tokens": ["a", "b"], "ner_tags": ["O"]},
        "expected a span inside the text, got 0 to 9 of 1": {
            "text": "a",
            "spans": [{"start": 0, "end": 9, "label": "X"}],
        },
        "got half a surrogate pair": {"tokens": ["\ud83d"], "ner_tags": ["O"]},
    }
    for told, record in wrong.items():
        path.write_text(json.dumps(RECORDS["hugging_face.jsonl"]) + "\n" + json.dumps(record) + "\n")
        with pytest.raises(DataError, match=told) as error:
            list(read_sentences(path))
        assert str(error.value).startswith(f"{path}:2:"), told
    path.write_text(json.dumps({"tokens": ["\ud83d"], "ner_tags": ["O"]}) + "\n")
    assert "a.jsonl:1: expected whole characters" in refused(weft("init", "tag", path))
    listed = {"classes": ["X"], "annotations": [None, ["Ann ran.", {"entities": [[0, 3, "X"]]}]]}
    (tmp_path / "page.json").write_text(json.dumps(listed))
    assert [one.tags for one in read_sentences(tmp_path / "page.json")] == [["B-X", "O", "O"]]
    rejected = {**RECORDS["prodigy.jsonl"], "answer": "reject"}  # type: ignore[dict-item]
    path.write_text(json.dumps(rejected) + "\n" + json.dumps(RECORDS["prodigy.jsonl"]) + "\n")
    assert [one.first for one in read_sentences(path)] == [2]


def test_the_outer_names_of_germeval_are_read(tmp_path: Path) -> None:
    path = tmp_path / "germeval.tsv"
    rows = [
        "#\thttp://x.org/0\t[2009-10-17]",
        "1\tZagreb\tB-LOC\tO",
        "2\tGornji\tI-LOC\tB-OTH",
        "3\t.\tO\tO",
        "",
    ]
    path.write_text("\n".join(rows) + "\n")
    form = form_of(path)
    assert form is not None and (form.width, form.word) == (4, 1)
    (sentence,) = read_sentences(path, column="ner")
    assert (sentence.forms, sentence.tags) == (["Zagreb", "Gornji", "."], ["B-LOC", "I-LOC", "O"])
    assert sentence.tagged(["X", "Y", "Z"], "ner")[1] == "1\tZagreb\tX\tO"
    assert holds_tags(path) and not check_tags([path]).num_errors


def test_a_single_sentence_of_which_none_can_be_held_out_gets_no_recipe(tmp_path: Path) -> None:
    path = tmp_path / "one.tsv"
    path.write_text("a\tX\nb\tY\n")
    said = refused(weft("init", "tag", path, "--output", tmp_path / "tag.yaml"))
    assert "one.tsv: expected 2 sentences or more, got 1; give more, or --valid" in said
    assert not (tmp_path / "tag.yaml").exists()


def test_the_choices_of_prodigy_are_classes_without_those_that_were_rejected(tmp_path: Path) -> None:
    path = tmp_path / "choice.jsonl"
    options = [{"id": "neg", "text": "neg"}, {"id": "pos", "text": "pos"}]
    answers = [("awful", ["neg"], "accept"), ("hm", ["pos"], "reject"), ("fine", ["pos"], "accept")]
    path.write_text(
        "".join(
            json.dumps({"text": text, "options": options, "accept": accept, "answer": answer}) + "\n"
            for text, accept, answer in answers
        )
    )
    found = texts_of(columns_of(path))
    assert found is not None and (found.texts, found.label) == (["text"], "accept") and holds_texts(path)
    read = LabelledText(path, label="accept")
    assert [(one.label, one.text) for one in read] == [("neg", "awful"), ("pos", "fine")]


def test_a_folder_of_texts_for_each_class_is_read(tmp_path: Path) -> None:
    for label in ("bad", "good"):
        (tmp_path / label).mkdir()
        (tmp_path / label / "1.txt").write_text(f"a {label}\ntext \n")
    (tmp_path / "good" / "2.txt").write_text("\n")
    assert holds_texts(tmp_path)
    assert [one[1:3] for one in LabelledText(tmp_path)] == [("bad", "a bad text"), ("good", "a good text")]
    with pytest.raises(DataError, match="expected a folder of texts"):
        LabelledText(tmp_path / "bad")


def test_a_file_in_a_zip_is_read_as_it_would_be_outside(tmp_path: Path) -> None:
    table = "en\tes\none\tuno\n"
    with zipfile.ZipFile(tmp_path / "named.zip", "w") as archive:
        archive.writestr("pairs.tsv", table)
        archive.writestr("__MACOSX/._pairs.tsv", "x")
    with zipfile.ZipFile(tmp_path / "pairs.tsv.zip", "w") as archive:
        archive.writestr("pairs.tsv", table)
    for name in ("named.zip", "pairs.tsv.zip"):
        assert [pair[1:] for pair in ParallelText(tmp_path / name, "en", "es")] == [("one", "uno")], name
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.txt", "a")
        archive.writestr("b.txt", "b")
    with pytest.raises(DataError, match=r"expected one file in the archive, got 2 \(a\.txt, b\.txt\)"):
        list(read_lines(tmp_path / "two.zip"))


def test_text_that_a_program_has_cut_is_named_with_what_undoes_it() -> None:
    told = {
        "the hou@@ se": "s/@@",
        "▁the ▁house": "s/▁/ /g",
        "don &apos;t": "detokenize",
        "well @-@ known": "detok",
    }
    for line, how in told.items():
        (found,) = line_findings(line.encode(), "a.en", 3)
        assert found.kind == "cut" and found.line == 3 and how in found.text, line
    for plain in ("mail a@@b.org", "it's well-known", "a @-mark", "R&D &amp; more"):
        assert not list(line_findings(plain.encode(), "a.en", 1)), plain


def test_places_that_a_browser_counted_are_those_of_characters(tmp_path: Path) -> None:
    for begin, end in ((2, 5), (3, 6)):  # a browser counts two for an emoji
        record = {"text": "😀 Ann lives", "spans": [{"start": begin, "end": end, "label": "PER"}]}
        (tmp_path / "a.jsonl").write_text(json.dumps(record) + "\n")
        assert [*tagged_records(tmp_path / "a.jsonl")] == [(1, ["😀\tO", "Ann\tB-PER", "lives\tO"])]


def test_cancelled_annotations_and_choices_of_label_studio_are_not_read(tmp_path: Path) -> None:
    mark = {"value": {"start": 0, "end": 3, "labels": ["PER"]}}
    record = {"data": {"text": "Ann"}, "annotations": [{"was_cancelled": True, "result": [mark]}]}
    other = {"data": {"text": "Bob"}, "annotations": [{"result": [mark]}]}
    (tmp_path / "a.json").write_text(json.dumps([record, other, {**other, "annotations": []}]))
    assert [*tagged_records(tmp_path / "a.json")] == [(2, ["Bob\tB-PER"])]
    choice = {"value": {"choices": ["good"]}}
    record = {"data": {"text": "Ann"}, "annotations": [{"result": [choice]}]}
    (tmp_path / "b.json").write_text(json.dumps([record, record]))
    with pytest.raises(DataError, match=r"those of Label Studio; export the project as JSON-MIN or CSV"):
        LabelledText(tmp_path / "b.json", text=["data"], label="annotations")


def test_running_text_is_no_records(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "text": "one"}\n' * 12)
    with pytest.raises(DataError, match=r"got records with id, text; .*: jq -r \.text .*a\.jsonl > a\.txt"):
        PlainText(tmp_path / "a.jsonl")
    assert any("jq -r .text" in one.text for one in check_plain_texts([tmp_path / "a.jsonl"]).findings)
