"""D2, professor forcing: the decoder learns to behave alike whether it reads the truth or its own words.

A discriminator D reads the decoder's states h over a sentence and says whether they are from teacher forcing;
it learns to tell, and the decoder learns to be mistaken:

    C_d = -log D(h_true) - log(1 - D(h_free))    moves D alone
    C_f = -log D(h_free)                         moves the model alone
    C_t = -log(1 - D(h_true))                    the same from the other side, where `both` is set

and the model's loss is NLL + strength (C_f + C_t). Read next: ../../models.py (`free_running`).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.models import Generator
from weft.nn.cells.gru import GRU
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.head import Loss
from weft.nn.kernels.linear import Linear
from weft.tasks.ready import Ready
from weft.train.objectives.objective import Criterion, Objective, mirror


@dataclass(frozen=True, kw_only=True)
class ProfessorForcing(Objective):
    """Professor forcing, for decoders that write tokens.

    The costs of a sentence count for each of its tokens, so that they stand beside nats a token. The loss
    that is reported is the likelihood's alone.

    Args:
        size: of the discriminator's GRU in each direction, and of its layer above.
        strength: weight of what the discriminator tells the model.
        both: C_t too.
        fools_above: the model listens where more than this share of the batch is told apart.
        learns_below: the discriminator learns where less than this share of the batch is told apart.
        drawn: own words are drawn by their probability; false takes the most probable ones.

    Raises:
        ConfigError: a number out of its range.

    Source: Lamb et al. 2016, equations 2 to 4 and section 3.1 (0.75 and 0.99).
    """

    size: int = 128
    strength: float = 1.0
    both: bool = False
    fools_above: float = 0.75
    learns_below: float = 0.99
    drawn: bool = True

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigError(f"size: expected at least 1, got {self.size}")
        if not self.strength >= 0:
            raise ConfigError(f"strength: expected at least 0, got {self.strength}")
        for name in ("fools_above", "learns_below"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name}: expected a share from 0 to 1, got {getattr(self, name)}")

    def build(self, ready: Ready, model: nn.Module) -> Criterion:
        """See Objective.build."""
        if (
            not isinstance(model, Generator)
            or ready.writes() is None
            or model.prompt == "learnt"
            or model.decoder.copies
        ):
            raise ConfigError(
                "training.objective: professor_forcing needs a model that writes the tokens of a target; "
                "leave it out"
            )
        like = next(model.parameters())
        own = Discriminator(model.decoder.size, self.size).to(like.device, like.dtype)
        return Adversaries(self, model, own)


class Discriminator(nn.Module):
    """The logit of D: a GRU reads the states from both ends, two layers judge what it has kept.

    Args:
        in_size: features of a state.
        size: of the GRU in each direction, and of the layer above it.
    """

    def __init__(self, in_size: int, size: int) -> None:
        super().__init__()
        self.reader = RecurrentEncoder(in_size, sizes=(size,), cell=GRU, bidirectional=True)
        self.judge = nn.Sequential(Linear(self.reader.size, size), nn.ReLU(), Linear(size, 1))

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """States [B, T, D] and their mask [B, T] to logits [B], above 0 for teacher forcing."""
        logit: Tensor = self.judge(self.reader(h, mask).summary)[:, 0]
        return logit.float() if logit.dtype == torch.bfloat16 else logit


class Costs(NamedTuple):
    """What a batch costs, each [B] nats a sentence, and how well both kinds were told apart."""

    critic: Tensor  # C_d, a function of the discriminator alone
    fool: Tensor  # C_f + C_t, a function of the states alone
    accuracy: Tensor  # [], 0 to 1


class Adversaries(Criterion):
    """Professor forcing at work: a model and its discriminator.

    Args:
        settings: of the objective.
        model: writes.
        own: the discriminator.
    """

    model: Generator
    own: Discriminator

    def __init__(self, settings: ProfessorForcing, model: Generator, own: Discriminator) -> None:
        super().__init__(model, own)
        self.settings = settings
        self._frozen = mirror(own)

    def loss(self, batch: Any, **forced: Any) -> Loss:
        """The likelihood's value, with the gradients of both adversaries."""
        how, mask = self.settings, batch.target_mask
        true = self.model.features(batch)
        free = self.model.free_running(batch, drawn=how.drawn)
        total, count = self.model.head.loss(true, batch.target_out, mask)
        costs = self.costs(true, free, mask)
        learns = (costs.accuracy < how.learns_below).to(costs.critic)
        fools = how.strength * (costs.accuracy > how.fools_above).to(costs.fool)
        beside = ((learns * costs.critic + fools * costs.fool) * mask.sum(1)).sum()
        return Loss(total + (beside - beside.detach()), count)

    def costs(self, true: Tensor, free: Tensor, mask: Tensor) -> Costs:
        """What the discriminator makes of the states of both ways.

        Args:
            true: [B, T, D] with the truth as input.
            free: [B, T, D] with own words as input.
            mask: [B, T].
        """
        seen, own = self.own(true.detach(), mask), self.own(free.detach(), mask)
        critic = F.softplus(-seen) + F.softplus(own)
        fool = F.softplus(-self._frozen(free, mask))
        if self.settings.both:
            fool = fool + F.softplus(self._frozen(true, mask))
        right = (seen > 0).sum() + (own <= 0).sum()
        return Costs(critic, fool, right / (2 * len(seen)))
