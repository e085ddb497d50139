"""Law 11: tiny tasks are learnt in seconds. Copying and reversing need every part of the model to work."""

import pytest
import torch
from torch import Tensor

from tests.slow import slow
from weft import masks
from weft.models import Generator
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical

PAD, SOS, EOS, V, LONGEST, WIDTH = 0, 2, 3, 11, 5, 32
UPDATES = 250


class Lines:
    """Rows of 1 to 5 random symbols; the target is the row itself or the reversed row."""

    def __init__(self, task: str, rows: int, draw: torch.Generator) -> None:
        length = torch.randint(1, LONGEST + 1, (rows,), generator=draw)
        self.source = torch.randint(4, V, (rows, LONGEST), generator=draw)
        self.source_mask = masks.from_lengths(length, LONGEST)
        words = self.source
        if task == "reverse":
            words = masks.reverse(words[..., None], self.source_mask)[..., 0]
        words = torch.cat(
            [words.masked_fill(~self.source_mask, PAD), torch.zeros(rows, 1, dtype=torch.long)], 1
        )
        self.target_in = torch.cat([torch.full((rows, 1), SOS), words[:, :-1]], 1)
        self.target_out = words.scatter(1, length[:, None], EOS)
        self.target_mask = masks.from_lengths(length + 1, LONGEST + 1)


def lstm() -> Generator:
    encoder = RecurrentEncoder(WIDTH, sizes=(WIDTH,), bidirectional=True)
    decoder = RecurrentDecoder(WIDTH, encoder, sizes=(WIDTH,))
    return Generator(Tokens(V, WIDTH), decoder, Categorical(decoder.size, V), encoder=encoder)


def transformer() -> Generator:
    encoder = TransformerEncoder(WIDTH, size=WIDTH, num_layers=1, num_heads=4, inner=64, dropout=0.0)
    decoder = TransformerDecoder(WIDTH, encoder, size=WIDTH, num_layers=1, num_heads=4, inner=64, dropout=0.0)
    return Generator(Tokens(V, WIDTH), decoder, Categorical(WIDTH, V), encoder=encoder)


def written(model: Generator, lines: Lines) -> Tensor:
    """The model's greedy output, as long as the longest target."""
    token = torch.full((len(lines.source),), SOS)
    state, words = model.start(lines.source, lines.source_mask), []
    for _ in range(LONGEST + 1):
        logp, state = model.step(token, state)
        token = logp.argmax(-1)
        words.append(token)
    return torch.stack(words, 1)


@pytest.mark.parametrize(
    ("make", "task"),
    [(lstm, "reverse"), *slow([(transformer, "copy"), (lstm, "copy"), (transformer, "reverse")])],
)
def test_law_11_a_tiny_task_is_learnt(make, task: str) -> None:
    torch.manual_seed(1)
    draw = torch.Generator().manual_seed(1)
    model = make()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, total_steps=UPDATES)
    for _ in range(UPDATES):
        loss = model.loss(Lines(task, 32, draw)).mean
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    lines = Lines(task, 500, draw)
    with torch.no_grad():
        right = (written(model.eval(), lines) == lines.target_out) | ~lines.target_mask
    assert right.all(1).float().mean().item() > 0.98
