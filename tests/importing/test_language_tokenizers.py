"""A run of mBART or NLLB encodes both languages as the tokenizer of `transformers` does."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.importing.byte_level import SPECIALS
from tests.importing.random_models import pair_model, transformers
from weft.importing.runs import import_run
from weft.run import open_run

PIECES = [*SPECIALS, *"▁eaoth", "▁t", "he", *"Click", "▁b", "u", "n", "."]
UNIGRAM = {"vocab": [(piece, -float(place)) for place, piece in enumerate(dict.fromkeys(PIECES))]}
BPE = {"vocab": {piece: place for place, piece in enumerate(dict.fromkeys(PIECES))}, "merges": [("h", "e")]}
LANGUAGES = {"MBart50": ("en_XX", "ro_RO"), "MBart": ("en_XX", "ro_RO"), "Nllb": ("eng_Latn", "ron_Latn")}


@pytest.mark.parametrize(
    ("name", "legacy"), [("MBart50", False), ("MBart", False), ("Nllb", False), ("Nllb", True)]
)
def test_both_sides_are_numbered_as_the_library_does(name: str, legacy: bool, tmp_path: Path) -> None:
    source, target = LANGUAGES[name]
    settings: dict[str, Any] = {"src_lang": source, "tgt_lang": target}
    settings |= {"legacy_behaviour": legacy, **BPE} if name == "Nllb" else UNIGRAM
    theirs = getattr(transformers, f"{name}Tokenizer")(**settings)
    language = theirs.convert_tokens_to_ids(target)
    start = language if name == "MBart" else theirs.eos_token_id
    model = pair_model(
        "m2m_100" if name == "Nllb" else "mbart", vocab_size=len(theirs), decoder_start_token_id=start
    )
    model.save_pretrained(tmp_path / "checkpoint")
    theirs.save_pretrained(tmp_path / "checkpoint")
    import_run(tmp_path / "checkpoint", tmp_path / "run", source=source, target=target)
    pipeline = open_run(tmp_path / "run", device="cpu").pipeline
    order = pipeline.target.order
    for text in ("Click the button.", "the  oat", "e", "中"):
        want = theirs(text)["input_ids"]
        assert [order[number] for number in pipeline.source.encode(text)] == want
        written = theirs(text, add_special_tokens=False)["input_ids"]
        first = [] if name == "MBart" else [language]  # mBART's first form reads it as the first input
        assert [order[number] for number in pipeline.target.encode(text)] == [*first, *written]
        assert order[2] == start
        assert pipeline.target.decode(pipeline.target.encode(text)) == theirs.decode(
            written, skip_special_tokens=True
        )
