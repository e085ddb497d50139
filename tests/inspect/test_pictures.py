"""What `weft inspect` shows of pictures and recordings: what predict answers, and where the model looked."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.commands.shell import refused, weft
from tests.inspect.every import looked_at
from weft.figures.sheets import lit
from weft.inspect.views.media import HeardView, PictureView, strip
from weft.inspect.views.view import View
from weft.run import LoadedRun
from weft.tasks.caption.predictor import Captioner
from weft.tasks.inspection import Inspection
from weft.tasks.seq2seq.inspection import plain_beam


@pytest.fixture
def captioned(runs: Callable[[str], LoadedRun]) -> tuple[LoadedRun, Inspection, dict[str, View]]:
    opened = runs("caption")
    return opened, *looked_at(opened)


def test_a_caption_is_the_one_that_predict_gives_and_looks_where_the_model_looked(
    captioned: tuple[LoadedRun, Inspection, dict[str, View]],
) -> None:
    opened, subject, views = captioned
    captioner = opened.pipeline.predictor(opened.model)
    assert isinstance(views["Picture"], PictureView)
    picture = views["Picture"].picture
    tokens = captioner.vocabulary.encode(subject.answer)
    weights = captioner.look(picture.pixels, tokens)
    for mine, (_, grid) in zip(weights, picture.looks, strict=False):
        assert np.abs(mine - grid).max() < 1e-5
    assert len(picture.looks) == len(tokens) + 1  # the end too
    assert [len(subject.source)] == [captioner._front.places]


def test_pictures_come_from_files_and_what_is_none_is_named(
    runs: Callable[[str], LoadedRun], tmp_path: Path
) -> None:
    for name in ("caption", "images"):
        opened = runs(name)
        side = opened.pipeline.shape[0]
        noise = np.random.default_rng(3).integers(0, 256, (side, side, 3), np.uint8)
        Image.fromarray(noise).save(tmp_path / "x.png")
        subject, views = looked_at(opened, str(tmp_path / "x.png"))
        assert subject.text == "x.png"
        assert isinstance(views["Picture"], PictureView)
        assert (views["Picture"].picture.pixels == noise).all()
        predictor = opened.pipeline.predictor(opened.model)
        if name == "caption":  # a plain beam, whatever the run's own search is
            how = plain_beam(predictor.decoding)
            predictor = Captioner(
                predictor.model, predictor.vocabulary, how, predictor._shape, predictor._data
            )
        assert subject.answer.split(" (")[0] == predictor.predict(noise)
        run = opened.path
        assert "no such file" in refused(weft("inspect", run, "nothing.png"))
        assert "name of a picture" in refused(weft("inspect", run, " "))
        (tmp_path / "bad.png").write_bytes(b"no picture")
        assert "damaged, or no picture" in refused(weft("inspect", run, tmp_path / "bad.png"))


def test_what_weighed_in_a_picture_is_the_slope_times_the_pixel(runs: Callable[[str], LoadedRun]) -> None:
    opened = runs("images")
    subject, views = looked_at(opened)
    assert isinstance(views["Picture"], PictureView)
    name, weights = views["Picture"].picture.looks[-1]
    assert name == "gradient times pixel" and weights.sum() == pytest.approx(1, abs=1e-5)
    # A finite difference of the class's log-probability at the heaviest pixel, all colours scaled.
    x, mask = subject.batch.source.double(), subject.batch.source_mask
    model = opened.model.double()
    number = int(subject.batch.target[0])

    def logp(at: torch.Tensor) -> float:
        with torch.no_grad():
            return float(model(at, mask)[0, 0, number])

    slopes = []
    for row, column in [np.unravel_index(weights.argmax(), weights.shape), (0, 0)]:
        step = torch.zeros_like(x)
        step[0, row, column] = 1e-6 * x[0, row, column]
        slopes.append(abs(logp(x + step) - logp(x - step)) / 2e-6)
    opened.model.float()
    assert slopes[1] / slopes[0] == pytest.approx(float(weights[0, 0] / weights.max()), abs=1e-4)


def test_a_clip_is_a_strip_of_frames_and_dark_where_the_weight_is_not() -> None:
    clip = np.arange(2 * 3 * 5 * 3, dtype=np.uint8).reshape(2, 3, 5, 3)
    assert strip(clip).shape == (3, 10, 3) and (strip(clip)[:, 5:] == clip[1]).all()
    shown = lit(np.full((4, 4, 3), 200, np.uint8), np.array([[1.0, 0.0], [0.5, 0.0]]))
    assert shown[0, 0].tolist() == [200] * 3 and shown[0, 3].tolist() == [50] * 3
    assert shown[3, 0].tolist() == [125] * 3


def test_a_drawn_picture_is_that_of_predict_and_every_tile_has_its_chance(
    runs: Callable[[str], LoadedRun],
) -> None:
    opened = runs("draw")
    text = "a red circle at the top"
    subject, views = looked_at(opened, text)
    painter = opened.pipeline.predictor(opened.model)
    assert isinstance(views["Picture"], PictureView)
    assert (views["Picture"].picture.pixels == painter.predict(text)).all()
    sure = views["Picture"].picture.looks[-1][1]
    where = [f"{row},{column}" for row in range(1, 5) for column in range(1, 5)]
    assert subject.hypotheses[0].pieces[:16] == where and subject.target[:3] == ["<sos>", "1,1", "1,2"]
    assert [one.given for one in subject.choices[:16]] == where
    assert "Each row is a region of the picture" in views["Alignment"].blocks()[0]["text"]
    assert sure.shape == (4, 4) and sure.ravel().tolist() == [one.prob for one in subject.choices[:16]]


def test_a_recording_is_transcribed_as_predict_does_and_listens_there(
    runs: Callable[[str], LoadedRun],
) -> None:
    opened = runs("speech")
    subject, views = looked_at(opened)
    path = opened.task.data.find("valid").parent / "valid0.wav"
    assert subject.text == "valid0.wav"
    assert subject.answer == weft("predict", opened.path, path).lines[0]
    assert isinstance(views["Recording"], HeardView)
    heard = views["Recording"].heard
    assert np.allclose(heard.weights.sum(1), 1, atol=1e-5) and len(heard.pieces) == len(heard.weights)
    bands = views["Recording"].figure().axes[0].images[0].get_array()
    assert np.allclose(bands, heard.frames.T - heard.frames.min())
    assert "give a recording" in refused(weft("inspect", opened.path, "none.wav"))
