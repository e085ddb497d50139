"""The page "Files that Weft reads" lists what the tests read, wherever its kind can stand."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.formats import FORMATS, PAGE, Written, with_declared
from weft.search.offered import Decoding
from weft.tasks.caption.task import CaptionPipeline, CaptionTask
from weft.tasks.images.data import ClassData
from weft.tasks.images.task import ImagesPipeline, ImagesTask
from weft.tasks.pictures.data import CaptionData, CaptionModel, ImageModel
from weft.tasks.speech.data import FrameSettings, SpeechData
from weft.tasks.speech.predictor import SpeechDecoding
from weft.tasks.speech.task import SpeechModel, SpeechPipeline, SpeechTask
from weft.text.vocabulary import Vocabulary


@pytest.mark.parametrize(
    ("part", "file"), [(part, file) for part, files in FORMATS.items() for file in files]
)
def test_a_file_of_another_program_is_read_as_it_was_written(part: str, file: str, tmp_path: Path) -> None:
    found, want = FORMATS[part][file](tmp_path)
    assert found == want and len(found) > 0


def test_the_page_lists_what_is_read() -> None:
    parts = PAGE.read_text("utf-8").split("\n## ")[1:]
    tables = {part.split("\n")[0]: re.findall(r"^\| (`.*?|[^|-][^|]*?) \|", part, re.M) for part in parts}
    listed = {name: [cell for cell in cells if cell != "File"] for name, cells in tables.items() if cells}
    assert {name: listed.get(name) for name in FORMATS} == {name: [*files] for name, files in FORMATS.items()}


def test_the_page_says_what_the_readers_declare() -> None:
    assert PAGE.read_text("utf-8") == with_declared(PAGE.read_text("utf-8")), "type python -m tests.formats"


SHORT: dict[str, Any] = {"search": "greedy", "max_extra": 2}


def pipeline(part: str) -> Any:
    """A run of the task that reads the files of a part of the page, as training would open it."""
    words = Vocabulary.train(["a dog, asleep", "two cats", "go now", "stop"], kind="word", size=None)
    if part == "Lists of recordings":
        data = SpeechData(sound=FrameSettings(rate=8000, bins=8))
        how = SpeechDecoding(**SHORT, max_ratio=0.0)
        return SpeechPipeline(SpeechTask(data=data, model=SpeechModel(), decoding=how), words, "stop")
    if part == "Lists of captions":
        pictures = CaptionData(train="x.tsv", hold_out=2, size=8)
        task = CaptionTask(data=pictures, model=CaptionModel(), decoding=Decoding(**SHORT))
        return CaptionPipeline(task, words, (8, 8, 3))
    return ImagesPipeline(
        ImagesTask(data=ClassData(train="x", size=8), model=ImageModel()), (8, 8, 3), ["cat", "dog"]
    )


LISTS = ("Lists of recordings", "Lists of captions", "Pictures with classes")


@pytest.mark.parametrize(
    ("part", "file"),
    [(part, file) for part in LISTS for file, write in FORMATS[part].items() if isinstance(write, Written)],
)
def test_a_list_is_read_in_every_place(part: str, file: str, tmp_path: Path) -> None:
    """For training (formats.py), by `weft predict`, `weft evaluate --data` and `weft data check`."""
    write = FORMATS[part][file]
    assert isinstance(write, Written)
    write(tmp_path)
    source = tmp_path / write.name
    run = pipeline(part)
    model = run.model().eval()
    predictor = run.predictor(model)
    inputs = [*predictor.inputs(source)]
    assert len(inputs) >= 2 and not [one for one in inputs if isinstance(one.value, Exception)]
    assert len([*predictor.answers([one.value for one in inputs])]) == len(inputs)
    assert len(run.evaluate(model, data=source).outputs) == (1 if "`test`" in file or "PART" in file else 2)
    report = type(run.task).check([source])
    assert not [one for one in report.findings if one.kind in ("file", "columns", "recording", "unlabelled")]
