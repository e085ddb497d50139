"""Tasks without graphs: the error says what to type instead, and each format says the same."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from weft.errors import ConfigError
from weft.export.formats.onnx import Onnx
from weft.export.formats.web import Web


class WithVectors:
    matrix = np.zeros((1, 1))
    words = ("a",)

    def save(self, path: Path) -> None: ...


def opened(predictor: object) -> Any:
    pipeline = SimpleNamespace(model_export=lambda model: None, predictor=lambda model: predictor)
    return SimpleNamespace(pipeline=pipeline, model=None, name="sums", path=Path("my run"))


@pytest.mark.parametrize(("to", "form"), [("web", Web()), ("onnx", Onnx())])
def test_the_error_says_what_to_type_instead(to: str, form: Web | Onnx) -> None:
    with pytest.raises(ConfigError) as raised:
        form.check(opened(object()), None)
    assert str(raised.value) == (
        f"--to {to}: a model of the task sums cannot be exported; use weft serve 'my run'"
    )
    with pytest.raises(ConfigError, match=r"weft export 'my run' --vectors vectors.txt"):
        form.check(opened(WithVectors()), None)
