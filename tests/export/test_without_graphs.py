"""Without graphs a task, without libraries the help: each says what to type instead, in every format."""

import subprocess
import sys
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


def test_the_help_needs_no_library_of_the_formats() -> None:
    lacking = (
        "import sys; sys.modules |= dict.fromkeys(['onnx', 'onnxruntime', 'ctranslate2', 'sentencepiece'])"
    )
    code = f"{lacking}; from weft.cli import main; main(['export', '--help'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "\n  web " in done.stdout
