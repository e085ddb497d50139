"""Professor forcing: the decoder learns to behave the same on true words and on its own words.

A discriminator D reads the decoder's states h over a sentence and predicts whether they are from teacher
forcing; the decoder learns to fool it:

    C_d = -log D(h_true) - log(1 - D(h_free))    trains D only
    C_f = -log D(h_free)                         trains the model only
    C_t = -log(1 - D(h_true))                    the same for the other states, if `both` is set

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
from weft.nn.ops import Linear
from weft.setting_types import AtLeastOne, NonNegative, Probability, check_fields
from weft.tasks.task import Pipeline
from weft.train.objectives.objective import Criterion, Objective, mirror


@dataclass(frozen=True, kw_only=True)
class ProfessorForcing(Objective):
    """Professor forcing, for decoders that write tokens.

    The costs of a sentence are multiplied by its number of tokens, to match nats per token. The reported loss
    is the likelihood alone.

    Args:
        size: size of the discriminator's GRU per direction, and of the layer above it.
        strength: weight of the adversarial cost in the loss of the model.
        both: add C_t.
        fools_above: apply the cost to the model only if D is right on more than this share of the batch.
        learns_below: train D only if it is right on less than this share of the batch.
        drawn: sample the decoder's own words; false takes the most probable ones.

    Raises:
        ConfigError: a number is out of its range.

    Source: Lamb et al. 2016, equations 2 to 4 and section 3.1 (0.75 and 0.99).

    Example:
        >>> ProfessorForcing(size=64).strength
        1.0
    """

    size: AtLeastOne = 128
    strength: NonNegative = 1.0
    both: bool = False
    fools_above: Probability = 0.75
    learns_below: Probability = 0.99
    drawn: bool = True

    def __post_init__(self) -> None:
        check_fields(self)

    def build(self, pipeline: Pipeline, model: nn.Module) -> Criterion:
        if (
            not isinstance(model, Generator)
            or pipeline.writes() is None
            or model.prompt == "learned"
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
    """Computes the logit of D: a bidirectional GRU of `size` over the states, then two layers."""

    def __init__(self, in_size: int, size: int) -> None:
        super().__init__()
        self.reader = RecurrentEncoder(in_size, sizes=(size,), cell=GRU, bidirectional=True)
        self.judge = nn.Sequential(Linear(self.reader.size, size), nn.ReLU(), Linear(size, 1))

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """Map states [B, T, D] and their mask [B, T] to logits [B], above 0 for teacher forcing."""
        logit: Tensor = self.judge(self.reader(h, mask).summary)[:, 0]
        return logit.float() if logit.dtype == torch.bfloat16 else logit


class Costs(NamedTuple):
    """The costs of a batch, [B] nats per sentence each, and the accuracy of the discriminator."""

    critic: Tensor  # C_d, depends on the discriminator only
    fool: Tensor  # C_f + C_t, depends on the states only
    accuracy: Tensor  # [], 0 to 1


class Adversaries(Criterion):
    """The professor-forcing loss of a model and its discriminator."""

    model: Generator
    own: Discriminator

    def __init__(self, settings: ProfessorForcing, model: Generator, own: Discriminator) -> None:
        super().__init__(model, own)
        self.settings = settings
        self._frozen = mirror(own)

    def loss(self, batch: Any, **forced: Any) -> Loss:
        """The value of the likelihood, with the gradients of both adversaries."""
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
        """The discriminator's costs for states [B, T, D] after true words, and after its own."""
        seen, own = self.own(true.detach(), mask), self.own(free.detach(), mask)
        critic = F.softplus(-seen) + F.softplus(own)
        fool = F.softplus(-self._frozen(free, mask))
        if self.settings.both:
            fool = fool + F.softplus(self._frozen(true, mask))
        right = (seen > 0).sum() + (own <= 0).sum()
        return Costs(critic, fool, right / (2 * len(seen)))
