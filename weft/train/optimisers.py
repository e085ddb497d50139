"""Optimisers: their settings, and how to build them for a model.

A class holds plain numbers; `build` makes the torch optimiser. The loop sets the learning rate of every group
before each update: `lr` times the factor of the schedule. Two steps that torch does not have are here too.
The state of an optimiser is stored by parameter name, tensors and JSON for the rest: torch numbers parameters
in the order of their groups and pickles the state. Read next: schedules.py; checkpoints.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from weft import native
from weft.errors import CheckpointError, ConfigError
from weft.native import jobs, pointer
from weft.nn.cells.cell import Cell
from weft.nn.heads.head import Head
from weft.setting_types import NonNegative, Section, Share
from weft.train.sharding import is_sharded, rows


class Optimiser(Section, ABC):
    """Settings of an optimiser.

    Attributes:
        lr: learning rate, which the factor of the schedule multiplies.

    Raises:
        ConfigError: a setting is out of its range.

    Example:
        >>> @dataclass(frozen=True)
        ... class Plain(Optimiser):
        ...     lr: float = 0.5
        ...     def build(self, model):
        ...         return torch.optim.SGD(model.parameters(), lr=self.lr)
        >>> Plain().build(nn.Linear(3, 2)).param_groups[0]["lr"]
        0.5
    """

    lr: float

    @abstractmethod
    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """Make the torch optimiser over every trainable parameter of the model."""


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """Every parameter with a gradient, tied ones once."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def decay_groups(model: nn.Module, weight_decay: float, decay_all: bool) -> list[dict[str, Any]]:
    """Parameter groups with and without weight decay.

    Without `decay_all`, only matrices decay: not biases and norm gains, which have one dimension, and not
    embeddings, whose rare rows would shrink without being read.
    """
    if decay_all:
        return [{"params": trainable(model), "weight_decay": weight_decay}]
    embeddings = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, nn.Embedding)
        for parameter in module.parameters(recurse=False)
    }
    parameters = trainable(model)
    chosen = [parameter.dim() > 1 and id(parameter) not in embeddings for parameter in parameters]
    groups = [
        {"params": [p for p, c in zip(parameters, chosen, strict=True) if c], "weight_decay": weight_decay},
        {"params": [p for p, c in zip(parameters, chosen, strict=True) if not c], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def can_fuse(model: nn.Module, devices: tuple[str, ...] = ("cpu", "cuda")) -> bool:
    """Whether torch's fused step applies: 4 to 5 times faster than its loop on a CPU (AdamW, 3M weights)."""
    return all(p.is_floating_point() and p.device.type in devices for p in trainable(model))


@dataclass(frozen=True, kw_only=True)
class SGD(Optimiser):
    """g = g + λ θ;  b = μ b + g;  θ = θ - lr (b, or g + μ b with Nesterov's momentum).

    Args:
        lr: learning rate.
        momentum: μ; 0 is plain gradient descent.
        nesterov: use Nesterov's momentum.
        weight_decay: λ, the L2 penalty λ/2 |θ|², over every parameter.

    Example:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(model.weight)
        >>> model.weight.grad = torch.tensor([[2.0]])
        >>> SGD(lr=0.1).build(model).step()
        >>> round(model.weight.item(), 4)
        0.8
    """

    lr: NonNegative = 0.1
    momentum: NonNegative = 0.0
    nesterov: bool = False
    weight_decay: NonNegative = 0.0

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(trainable(model), **asdict(self), fused=can_fuse(model))


@dataclass(frozen=True, kw_only=True)
class Adam(Optimiser):
    """m = β1 m + (1-β1) g;  v = β2 v + (1-β2) g²;  θ = θ - lr m̂ / (√v̂ + ε), with m̂ and v̂ bias-corrected.

    Args:
        lr: learning rate.
        betas: β1, β2.
        eps: ε.
        weight_decay: λ; λ θ is added to the gradient of every parameter.

    Source: Kingma and Ba 2015, algorithm 1.

    Example:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(model.weight)
        >>> model.weight.grad = torch.tensor([[2.0]])
        >>> Adam(lr=0.1).build(model).step()
        >>> round(model.weight.item(), 4)  # the first step has the size lr
        0.9
    """

    lr: NonNegative = 0.001
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: NonNegative = 1e-8
    weight_decay: NonNegative = 0.0

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(trainable(model), **asdict(self), fused=can_fuse(model))


@dataclass(frozen=True, kw_only=True)
class AdamW(Optimiser):
    """θ = θ - lr λ θ, then Adam's step.

    Args:
        lr: learning rate.
        betas: β1, β2.
        eps: ε.
        weight_decay: λ.
        decay_all: decay every parameter; by default not biases, norm gains and embeddings.

    Source: Loshchilov and Hutter 2019, algorithm 2.

    Example:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(model.weight)
        >>> model.weight.grad = torch.tensor([[2.0]])
        >>> AdamW(lr=0.1, weight_decay=0.5).build(model).step()
        >>> round(model.weight.item(), 4)  # 1 - 0.1 * 0.5, then a step of 0.1
        0.85
    """

    lr: NonNegative = 0.001
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: NonNegative = 1e-8
    weight_decay: NonNegative = 0.01
    decay_all: bool = False

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """torch.optim.AdamW with one group with weight decay and one without."""
        return torch.optim.AdamW(
            decay_groups(model, self.weight_decay, self.decay_all),
            lr=self.lr,
            betas=(self.betas[0], self.betas[1]),
            eps=self.eps,
            fused=can_fuse(model),
        )


@dataclass(frozen=True, kw_only=True)
class Adagrad(Optimiser):
    """s = s + g²;  θ = θ - lr g / (√s + ε).

    A row without a gradient does not move (with Adam, its momentum would move it), which suits word vectors.

    Args:
        lr: learning rate.
        start: s before the first update.
        eps: ε.

    Source: Duchi et al. 2011, figure 1.

    Example:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(model.weight)
        >>> model.weight.grad = torch.tensor([[2.0]])
        >>> Adagrad(lr=0.1).build(model).step()
        >>> round(model.weight.item(), 4)  # g / √g² = 1
        0.9
    """

    lr: NonNegative = 0.05
    start: NonNegative = 0.0
    eps: NonNegative = 1e-10

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """torch's Adagrad over the trainable parameters, which also takes gradients of a few rows."""
        module: Any
        for module in model.modules():
            if hasattr(module, "sparse_gradients"):
                module.sparse_gradients = True
        return SparseAdagrad(
            trainable(model),
            lr=self.lr,
            initial_accumulator_value=self.start,
            eps=self.eps,
            fused=can_fuse(model, ("cpu",)),  # torch has no fused Adagrad for GPUs
        )


@dataclass(frozen=True, kw_only=True)
class Muon(AdamW):
    """M = μ M + (1-μ) G;  W = (1 - lr λ) W - 0.2 √n lr U Vᵀ, where U S Vᵀ = G + μ (M - G).

    This is the step of linear layers' matrices and of the cells' `weight_x`, `weight_h`, separately for each
    gate, key and value. Embeddings, output layers, biases and norms have AdamW's step with the same learning
    rate; 0.2 √n, with n the longer side, makes the steps of both about as large. U Vᵀ is approximate (three
    Newton-Schulz iterations; singular values from 0.73 to 1.27).

    Args:
        momentum: μ.

    Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks"; Liu et al. 2025,
    equation 4.

    Example:
        >>> from weft.nn import Categorical
        >>> model = nn.Sequential(nn.Embedding(7, 3), nn.Linear(3, 3), Categorical(3, 7))
        >>> groups = Muon().build(model).param_groups
        >>> [[list(one.shape) for one in group["params"]] for group in groups if group["hidden"]]
        [[[3, 3]]]
    """

    lr: NonNegative = 0.01
    momentum: Share = 0.95

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """AdamW, with groups whose matrices are orthogonalised.

        Raises:
            ConfigError: no process has whole matrices.
        """
        if any(map(is_sharded, trainable(model))):
            raise ConfigError("muon needs whole matrices; set training.sharding: none, or use: adamw")
        cuts, groups = cut_matrices(model), []
        for group in super().build(model).param_groups:
            for hidden in (True, False):
                own = [one for one in group["params"] if (one in cuts) == hidden]
                groups += [{**group, "params": own, "hidden": hidden}] if own else []
        return MuonStep(groups, cuts, self.momentum)


POLYNOMIALS = ((8.0934, -23.6204, 17.4462), (3.6366, -2.7219, 0.5365), (2.6613, -1.9772, 0.4526))
"""a, b, c of X = a X + b X Xᵀ X + c (X Xᵀ)² X, one after the other, each the best for its interval (method
of Amsel et al. 2025, "The Polar Express"). They take 0.01..1 to 0.73..1.27, as five of Jordan et al. do."""
FEWEST = 16
"""A matrix with a shorter side is not cut into squares."""


def cut_matrices(model: nn.Module) -> dict[Tensor, int]:
    """The matrices to orthogonalise, with the number of rows per gate of each."""
    found: dict[Tensor, int] = {}
    outer: set[Tensor] = set()
    for module in model.modules():
        if isinstance(module, (Head, nn.Embedding)):
            outer.update(module.parameters())
        elif isinstance(module, nn.Linear):
            wide = module.in_features
            found[module.weight] = wide if wide >= FEWEST else len(module.weight)
        elif isinstance(module, Cell):
            weights = (getattr(module, name, None) for name in ("weight_x", "weight_h"))
            found |= {weight: module.size for weight in weights if isinstance(weight, nn.Parameter)}
    return {
        weight: rows if len(weight) % rows == 0 else len(weight)
        for weight, rows in found.items()
        if weight.dim() == 2 and weight not in outer
    }


class MuonStep(torch.optim.AdamW):
    """AdamW, with Muon's step for groups marked `hidden`; `cuts` are the rows per gate of their matrices."""

    def __init__(self, groups: list[dict[str, Any]], cuts: Mapping[Tensor, int], momentum: float) -> None:
        super().__init__(groups)
        self.cuts, self.momentum = cuts, momentum

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        held = []
        for group in self.param_groups:
            if group["hidden"]:
                matrices: list[Tensor] = [one for one in group["params"] if one.grad is not None]
                held += [(one, one.grad) for one in matrices]
                self._turn(matrices, group["lr"], group["weight_decay"])
        for matrix, _ in held:
            matrix.grad = None
        loss = super().step(closure)
        for matrix, gradient in held:
            matrix.grad = gradient
        return loss

    def _turn(self, matrices: list[Tensor], rate: float, decay: float) -> None:
        waiting: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}
        for matrix in matrices:
            state, gradient = self.state[matrix], matrix.grad
            assert gradient is not None
            if not state:
                state["step"], state["momentum_buffer"] = torch.zeros(()), torch.zeros_like(matrix)
            state["step"] += 1
            moved = state["momentum_buffer"].lerp_(gradient, 1 - self.momentum)
            matrix.mul_(1 - rate * decay)
            rows = self.cuts[matrix]
            ahead = gradient.lerp(moved, self.momentum).split(rows)
            for part, direction in zip(matrix.split(rows), ahead, strict=True):
                waiting.setdefault(part.shape, []).append((part, direction))
        for shape, pairs in waiting.items():
            steps = orthogonal(torch.stack([direction for _, direction in pairs]))
            torch._foreach_add_(
                [part for part, _ in pairs], list(steps), alpha=-0.2 * max(shape) ** 0.5 * rate
            )


def orthogonal(matrices: Tensor) -> Tensor:
    """U Vᵀ of matrices U S Vᵀ [N, A, B], roughly: S from 0.01 of its norm on becomes 0.73 to 1.27."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(1e-7)
    for a, b, c in POLYNOMIALS:
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class SparseAdagrad(torch.optim.Adagrad):
    """torch.optim.Adagrad for dense gradients and sparse, coalesced ones (float32 on a CPU).

    Word vectors read a few thousand rows of a large table in an update; other rows do not move.
    """

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Take a step."""
        held: list[tuple[nn.Parameter, Tensor]] = []
        for options in self.param_groups:
            for parameter in options["params"]:
                if parameter.grad is not None and parameter.grad.is_sparse:
                    held.append((parameter, parameter.grad))
                    _adagrad_rows(
                        parameter, parameter.grad, self.state[parameter], options["lr"], options["eps"]
                    )
                    parameter.grad = None
        loss = super().step(closure)
        for parameter, gradient in held:
            parameter.grad = gradient
        return loss


def _adagrad_rows(
    weight: Tensor, gradient: Tensor, state: dict[str, Any], rate: float, epsilon: float
) -> None:
    rows, values = gradient._indices()[0], gradient._values()
    slabs = native.slabs(len(rows))
    state["step"] += 1
    job = jobs.AdagradJob(
        *(len(rows), weight.shape[1], slabs, rate, epsilon),
        *map(pointer, (rows, values, weight, state["sum"])),
    )
    native.call("weft_adagrad", job)


_LIKE_PARAMETER = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "sum"}
_NEEDED = {
    "Adam": {"step", "exp_avg", "exp_avg_sq"},
    "AdamW": {"step", "exp_avg", "exp_avg_sq"},
    "Adagrad": {"step", "sum"},
}
"""Entries that torch's optimisers expect in their state, by class."""

_NAMES = {"SparseAdagrad": "Adagrad", "MuonStep": "Muon", "_Muon": "Muon"}


def optimiser_name(written: str) -> str:
    """The name of an optimiser in checkpoints."""
    return _NAMES.get(written, written)


def collect_state(
    model: nn.Module, optimiser: torch.optim.Optimizer
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of an optimiser's state by names such as exp_avg/encoder.weight, and the other entries."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Any] = {}
    for name, parameter in model.named_parameters():
        for key, value in optimiser.state.get(parameter, {}).items():
            (tensors if isinstance(value, Tensor) else numbers)[f"{key}/{name}"] = value
    return tensors, numbers


def restore_state(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    tensors: Mapping[str, Tensor],
    numbers: Mapping[str, Any],
    place: str,
) -> None:
    """Load a state into a newly built optimiser."""
    by_name: dict[str, dict[str, Any]] = {}
    own = dict(model.named_parameters())
    for path, value in {**tensors, **numbers}.items():
        key, _, name = path.partition("/")
        sharded = isinstance(value, Tensor) and name in own
        by_name.setdefault(name, {})[key] = rows(value, own[name]) if sharded else value
    packed = optimiser.state_dict()
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    order = [names[id(parameter)] for group in optimiser.param_groups for parameter in group["params"]]
    foreign = sorted(set(by_name) - set(order))
    if foreign:
        raise CheckpointError(
            f"{place}: the optimiser has a state for {foreign[0]}, which this recipe does not train; "
            "use the recipe it was trained with, or another --run"
        )
    needed = _NEEDED.get(optimiser_name(type(optimiser).__name__), set())
    for name, state in by_name.items():
        wrong = [f"{key} is missing" for key in needed if key not in state]
        wrong += [problem for key, value in state.items() if (problem := _problem(key, value, own[name]))]
        if wrong:
            raise CheckpointError(
                f"{place}: the state of the optimiser for {name} does not fit ({min(wrong)}); "
                "restore the checkpoint from a copy, or remove it"
            )
    packed["state"] = {index: by_name[name] for index, name in enumerate(order) if name in by_name}
    optimiser.load_state_dict(packed)


def _problem(key: str, value: Any, parameter: Tensor) -> str:
    if isinstance(value, Tensor) and not value.is_floating_point():
        return f"{key} is {str(value.dtype).removeprefix('torch.')}, not a real number"
    if key in _LIKE_PARAMETER and isinstance(value, Tensor) and value.shape != parameter.shape:
        return f"{key} is {list(value.shape)}, not {list(parameter.shape)}"
    if key in _LIKE_PARAMETER and not isinstance(value, Tensor) and value is not None:
        return f"{key} is not a tensor"
    if key == "step" and isinstance(value, Tensor) and value.numel() != 1:
        return f"{key} is {list(value.shape)}, not one number"
    return ""
