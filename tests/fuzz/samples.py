"""Small valid files of all formats that Weft reads, as starting points. Read next: readers.py."""

import io
import json
import tempfile
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import safetensors.torch
import soundfile
import torch
from PIL import Image

from tests.train.saved import save
from weft.data.vectors import write_vectors
from weft.text.vocabulary import Vocabulary

RECIPES = Path(__file__).resolve().parents[2] / "recipes"

CONLLU = b"""# text = They buy books.
1-2\tTheyd\t_\t_\t_\t_\t_\t_\t_\t_
1\tThey\tthey\tPRON\tPRP\tCase=Nom\t2\tnsubj\t_\t_
2\tbuy\tbuy\tVERB\tVBP\tNumber=Plur\t0\troot\t_\t_
2.1\tnew\t_\t_\t_\t_\t_\t_\t_\t_
3\tbooks\tbook\tNOUN\tNNS\t_\t2\tobj\t_\tSpaceAfter=No

"""
ARPA = b"""\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-99\t<s>\t-0.3
-0.5\t</s>
-0.7\ta\t-0.2
-0.9\tb

\\2-grams:
-0.2\t<s> a
-0.4\ta b

\\end\\
"""
SERIES = b"date,first,second\n2024-01-01 00:00,1.5,2\n2024-01-01 01:00,,3\n2024-01-01 03:00,2e-3,-4\n"
LONG = b"unique_id,ds,y\na,2024-01,1\na,2024-02,2\nb,2024-01-31,3\n"
RECORD = b'{"image": "x.png", "captions": {"en": ["a"]}, "split": "val"}\n'
COCO = {
    "images": [{"id": 1, "file_name": "x.png"}],
    "annotations": [{"image_id": 1, "caption": "a dot"}],
}
LEXICON = {"words": ["a", "b"], "counts": [3, 0], "letters": ["a"], "tags": ["X", "Y"], "lowercase": True}
EVENTS = (
    b'{"event": "update", "update": 1, "loss": 2.5}\n'
    b'{"event": "validation", "update": 2, "scores": {"loss": 1}, "samples": []}\n'
)
GPT2 = {
    "model_type": "gpt2",
    "n_embd": 4,
    "n_layer": 1,
    "n_head": 2,
    "n_positions": 7,
    "vocab_size": 11,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "eos_token_id": 0,
    "n_inner": None,
}


def recipes() -> list[bytes]:
    """Recipes of several tasks."""
    names = ["translate/help-transformer", "translate/help-gru-attention", "forecast/waves-segments"]
    names += ["classify/sst2-bigru-queries", "tag/ewt-bilstm-crf", "memory/adding-lstm"]
    return [(RECIPES / f"{name}.yaml").read_bytes() for name in names]


def workbook() -> bytes:
    """A table of labelled texts as Excel writes it."""
    book, out = openpyxl.Workbook(), io.BytesIO()
    for row in (["label", "text"], ["a", "some text"], [1, "more"]):
        book.active.append(row)
    book.save(out)
    return out.getvalue()


def wav(width: int) -> bytes:
    """Forty samples in two channels."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(width)
        file.setframerate(8000)
        file.writeframes(bytes(range(8 * width)) * 5)
    return out.getvalue()


def sound(kind: str) -> bytes:
    """A quarter of a second of a tone."""
    out = io.BytesIO()
    soundfile.write(out, np.sin(np.arange(2000) / 9) / 2, 8000, format=kind)
    return out.getvalue()


def array(numbers: np.ndarray) -> bytes:
    """The numbers as a .npy file."""
    out = io.BytesIO()
    np.save(out, numbers)
    return out.getvalue()


def picture(kind: str) -> bytes:
    """An image of 5 x 7 pixels."""
    out = io.BytesIO()
    Image.fromarray(np.arange(7 * 5 * 3, dtype=np.uint8).reshape(7, 5, 3)).save(out, kind)
    return out.getvalue()


def gif() -> bytes:
    """A clip of three frames."""
    out = io.BytesIO()
    frames = [Image.fromarray(np.full((5, 7), level, np.uint8)) for level in (0, 90, 200)]
    frames[0].save(out, "gif", save_all=True, append_images=frames[1:])
    return out.getvalue()


def written(name: str, write: Callable[[Path], Any]) -> bytes:
    """What a function writes to a file with this name."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / name)
        return (Path(folder) / name).read_bytes()


def vectors(ending: str) -> bytes:
    """Vectors of three words."""
    numbers = np.linspace(-1, 1, 9).reshape(3, 3)
    return written(f"x{ending}", lambda path: write_vectors(path, ["a", "bc", "é"], numbers))


def tokenizer(kind: str) -> bytes:
    """A tokenizer.json of Weft."""
    size = {"bpe": 20, "unigram": 20}.get(kind)
    made = Vocabulary.train(["a cat sat", "the cats sit, they sat"], kind=kind, size=size)
    return written("tokenizer.json", made.save)


def foreign_tokenizer() -> bytes:
    """A tokenizer.json as another program writes it."""
    plain = json.loads(tokenizer("bpe"))
    return json.dumps(plain | {"weft": {"order": list(range(20)), "framed": False}}).encode()


def checkpoint(name: str) -> bytes:
    """A file of a checkpoint."""
    return written(f"checkpoints/step-00000003/{name}", lambda path: save(path.parents[2], 3))


def gpt2(folder: Path) -> None:
    """Write GPT-2's weights."""
    shapes: dict[str, tuple[int, ...]] = {"wte.weight": (11, 4), "wpe.weight": (7, 4)}
    for norm in ("ln_f", "h.0.ln_1", "h.0.ln_2"):
        shapes |= {f"{norm}.weight": (4,), f"{norm}.bias": (4,)}
    products = {"attn.c_attn": (4, 12), "attn.c_proj": (4, 4), "mlp.c_fc": (4, 16), "mlp.c_proj": (16, 4)}
    for name, shape in products.items():
        shapes |= {f"h.0.{name}.weight": shape, f"h.0.{name}.bias": shape[1:]}
    tensors = {name: torch.zeros(shape) for name, shape in shapes.items()}
    safetensors.torch.save_file(tensors, folder / "model.safetensors")
