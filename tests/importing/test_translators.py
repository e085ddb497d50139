"""Encoder-decoders of the `transformers` library give the same logits once imported."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.laws.members import close
from weft import masks
from weft.importing.families import import_model
from weft.models import Generator

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: pip install --group import-tests"
)
transformers.utils.logging.disable_progress_bar()

TOKENS, LENGTHS, STEPS = 37, (11, 4, 1, 7), 11
ENDS = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
PAIR: dict[str, Any] = {
    "vocab_size": TOKENS,
    "d_model": 12,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 19,
    "decoder_ffn_dim": 17,
    "max_position_embeddings": 23,
    **ENDS,
}
T5: dict[str, Any] = {
    "vocab_size": TOKENS,
    "d_model": 12,
    "d_kv": 5,  # not d_model / num_heads, as in v1.1
    "d_ff": 19,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 3,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
}
MADE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "mbart": ("MBartConfig", "MBartForConditionalGeneration", PAIR | {"scale_embedding": True}),
    "pegasus": ("PegasusConfig", "PegasusForConditionalGeneration", PAIR | {"scale_embedding": True}),
    "m2m_100": ("M2M100Config", "M2M100ForConditionalGeneration", PAIR | {"scale_embedding": True}),
    "t5": ("T5Config", "T5ForConditionalGeneration", T5),
    "t5-v1.1": (
        "T5Config",
        "T5ForConditionalGeneration",
        T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    ),
    "mt5": ("MT5Config", "MT5ForConditionalGeneration", T5 | {"feed_forward_proj": "gated-gelu"}),
}


def random_model(name: str) -> Any:
    """A small model of the library, with no parameter at zero or one."""
    torch.manual_seed(3)
    config, model, settings = MADE[name]
    theirs = getattr(transformers, model)(getattr(transformers, config)(**settings))
    for key, parameter in theirs.named_parameters():
        if name == "mbart" or "embed_positions" not in key:
            parameter.data += 0.2 * torch.randn(parameter.shape)
    if hasattr(theirs, "final_logits_bias"):
        theirs.final_logits_bias = 0.1 * torch.randn(theirs.final_logits_bias.shape)
    return theirs.eval()


@pytest.fixture(scope="module", params=MADE)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Generator]:
    """The library's model and the imported one."""
    theirs, path = random_model(request.param), tmp_path_factory.mktemp("checkpoint") / request.param
    theirs.save_pretrained(path)
    ours = import_model(Path(path))
    assert isinstance(ours, Generator) and ours.encoder is not None
    return theirs, ours


def tokens(seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(4, TOKENS, (len(LENGTHS), STEPS), generator=generator)
    return drawn, masks.from_lengths(torch.tensor(LENGTHS), STEPS)


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
