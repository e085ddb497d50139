"""Use a model that Weft exported to ONNX, with onnxruntime and numpy.

It also needs tokenizers for text, Pillow for pictures and soundfile for recordings.

On the command line, one answer per line of input:
    python weft_onnx.py < input.txt
    python weft_onnx.py --beam 1 < input.txt

From Python:
    from weft_onnx import load
    model = load("folder")
    print(model("Click the button."))
"""

import argparse
import inspect
import json
import sys
from pathlib import Path
from typing import Any

from weft.export.programs.common import KINDS


def load(folder: str | Path) -> Any:
    """The model in a folder."""
    place = Path(folder)
    about = json.loads((place / "weft.json").read_text("utf-8"))
    return KINDS[about["kind"]](place, about)


def main() -> None:
    """Answer each line of standard input; of a model that reads tables, all of it."""
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--folder", default=here, help="the exported model (default: this file's folder)")
    parser.add_argument("--beam", type=int, help="beam width; 1 is greedy (default: the recipe's)")
    parser.add_argument("--scores", action="store_true", default=None, help="probabilities too")
    parser.add_argument("--nbest", type=int, help="pieces of each gap (default: the text, filled)")
    parser.add_argument("--source", help="source language, of a model of several")
    parser.add_argument("--target", help="target language, of a model of several")
    options = parser.parse_args()
    model = load(options.folder)
    more = {name: value for name, value in vars(options).items() if name != "folder" and value is not None}
    wrong = [f"--{name}" for name in more if name not in inspect.signature(model.__call__).parameters]
    if wrong:
        parser.error(f"{', '.join(wrong)}: a model of this kind has no such option")
    failed, whole = False, getattr(model, "whole", False)
    for number, line in enumerate([sys.stdin.read()] if whole else sys.stdin, 1):
        try:
            answer = model(line if whole else line.rstrip("\n"), **more)
        except ValueError as error:  # the next line may be right
            print(error if whole else f"line {number}: {error}", file=sys.stderr)
            answer, failed = "", True
        print(answer, flush=True)
    sys.exit(3 if failed else 0)


if __name__ == "__main__":
    main()
