"""Encoder-decoders of the `transformers` library: the same logits, and languages as it numbers them."""

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.importing.random_models import PAIRS, STEPS, pair_model, tokens, transformers
from tests.importing.started import SPECIALS
from tests.laws.members import close
from weft.importing.families import import_model
from weft.importing.runs import import_run
from weft.models import Generator
from weft.run import open_run


@pytest.fixture(scope="module", params=PAIRS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Generator]:
    """The library's model and the imported one."""
    theirs, path = pair_model(request.param), tmp_path_factory.mktemp("checkpoint") / request.param
    theirs.save_pretrained(path)
    ours = import_model(Path(path))
    assert isinstance(ours, Generator) and ours.encoder is not None
    return theirs, ours


@torch.no_grad()
def test_they_say_the_same_at_once_and_step_by_step(pair: tuple[Any, Generator]) -> None:
    theirs, ours = pair
    (source, mask), (target, target_mask) = tokens(1), tokens(2)
    want = theirs(
        input_ids=source.masked_fill(~mask, theirs.config.pad_token_id),
        attention_mask=mask.long(),
        decoder_input_ids=target,
        decoder_attention_mask=target_mask.long(),
    ).logits.log_softmax(-1)
    h, _ = ours.decoder(ours.embed(target), ours.start(source, mask))
    close(ours.head(h)[target_mask], want[target_mask], 1e-5)
    state = ours.start(source, mask)
    for t in range(STEPS):
        logp, state = ours.step(target[:, t], state)
        close(logp[target_mask[:, t]], want[:, t][target_mask[:, t]], 1e-5)


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
