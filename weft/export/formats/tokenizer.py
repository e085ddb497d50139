"""The tokenizer of a language model alone, for programs that ask the model over HTTP: evaluation harnesses.

Any language model has one, also one that no other program can compute. Read next: huggingface.py.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from tokenizers import Tokenizer

from weft.errors import ConfigError
from weft.export.agreement import sources
from weft.export.format import Format
from weft.export.tokenizer import check_numbers, settings, tokenizer_json
from weft.run import LoadedRun
from weft.tasks.abilities import ContinuesText
from weft.text.imported import ImportedVocabulary
from weft.text.vocabulary import Vocabulary

TO = "tokenizer"


class TokenizerOnly(Format):
    """A directory with tokenizer.json and tokenizer_config.json, which AutoTokenizer loads."""

    about: ClassVar[str] = "only the tokenizer of a language model, for evaluation harnesses"

    def check(self, opened: LoadedRun, int8: bool | None) -> None:
        if not isinstance(opened.pipeline, ContinuesText):
            raise ConfigError(
                f"--to {TO}: expected a language model, got a run of the task {opened.name}; "
                "use --to onnx, which includes the tokenizer"
            )

    def write(self, opened: LoadedRun, folder: Path, int8: bool | None) -> Sequence[str]:
        pipeline: Any = opened.pipeline
        vocabulary: Vocabulary = pipeline.vocabulary
        if isinstance(vocabulary, ImportedVocabulary):
            content, about = vocabulary.content, _of(vocabulary)
            said = "tokenizer.json is that of the imported model"
        else:
            content = tokenizer_json(vocabulary, TO, begin="<eos>")
            about = settings(begins=True)
            count = check_numbers(vocabulary, content, sources(opened))
            said = f"tokenizer.json: {count} texts give Weft's tokens"
        (folder / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False), "utf-8")
        (folder / "tokenizer_config.json").write_text(json.dumps(about, indent=2))
        return [said]

    def hints(self, output: Path) -> Sequence[str]:
        return [f"next: weft serve RUN, and tokenizer={output} in the --model_args of lm_eval"]


def _of(vocabulary: ImportedVocabulary) -> dict[str, Any]:
    """The names of another program's symbols."""
    made, order = Tokenizer.from_str(json.dumps(vocabulary.content)), vocabulary.order
    names = {"pad_token": 0, "unk_token": 1, "bos_token": 2, "eos_token": 3}
    found = {name: made.id_to_token(order[number]) for name, number in names.items() if order[number] >= 0}
    return {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **found}
