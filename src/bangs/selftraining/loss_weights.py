"""Loss weights: how much every soft label counts in the student's loss."""

from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

from bangs.core.types import Labels, Round
from bangs.errors import InvalidInput
from bangs.graphs.pagerank import PPR, Propagator
from bangs.utils.setting_checks import check_choice, check_integer, check_number
from bangs.valuation.banzhaf import Estimator, MeanField
from bangs.valuation.influence import Normalisation
from bangs.valuation.information import Information


class NodeWeight(Protocol):
    """How much a pseudo-label should count beside the others: float [R, N], at least 0; the scale does not matter."""

    def __call__(self, round: Round, labels: Labels) -> Tensor: ...


@dataclass(frozen=True)
class Balance:
    """Weights that make the loss: weighted mean over given labels + `strength` · weighted mean over pseudo-labels.

        L = Σ_{i∈G} v_i H(y_i, p_i) / Σ_{i∈G} v_i + strength · Σ_{i∈P} w_i H(q_i, p_i) / Σ_{i∈P} w_i

    with given nodes G and their weights v in the task, pseudo-labelled nodes P, w from `by`, and the cross-entropy H.
    The trainer takes the mean of weight · H over all labelled nodes, so weights are multiplied by their number. Float
    [R, N].
    """

    by: NodeWeight
    strength: float = 1.0

    def __post_init__(self) -> None:
        check_number("Balance.strength", self.strength, within="[0, inf)")

    def __call__(self, round: Round, labels: Labels) -> Tensor:
        given, adopted = round.task.given.weight, labels.adopted
        weight = torch.where(adopted, self.by(round, labels), 0.0).double()
        total = weight.sum(1, keepdim=True)
        equal = adopted / adopted.sum(1, keepdim=True).clamp_min(1)  # used if no pseudo-label has a weight
        weight = torch.where(total > 0, weight / total.clamp_min(1e-300), equal)
        mean = given / given.sum(1, keepdim=True)
        return ((mean + self.strength * weight) * labels.known.sum(1, keepdim=True)).float()


@dataclass(frozen=True)
class Certainty:
    """The confidence of the prediction to a power: w = (max_c p_c)^power; 0 counts every node alike. Float [R, N]."""

    power: float = 3.0

    def __post_init__(self) -> None:
        check_number("Certainty.power", self.power, within="[0, inf)")

    def __call__(self, round: Round, labels: Labels) -> Tensor:
        return round.prediction.confidence.pow(self.power)


@dataclass(frozen=True)
class BanzhafWeight:
    """The k-bounded Banzhaf value of every pool node in the information game, all of them players. Float [R, N].

    `scale = "value"` takes the value where it is positive, divided by the largest; `"rank"` takes the rank among the
    players, the best 1, the worst near 0. The values come from one mean-field pass: a propagation and its adjoint,
    whatever the number of players. `k` is the largest coalition; None = half of the players.
    """

    scale: Literal["value", "rank"] = "rank"
    k: int | None = None
    estimate: Estimator = field(default_factory=MeanField)
    propagate: Propagator = field(default_factory=PPR)
    normalise: Normalisation = "mass"

    def __post_init__(self) -> None:
        check_choice("BanzhafWeight.scale", self.scale, ("value", "rank"))
        check_choice("BanzhafWeight.normalise", self.normalise, get_args(Normalisation))
        for name, part in (("estimate", self.estimate), ("propagate", self.propagate)):
            if not callable(part):
                raise InvalidInput(f"BanzhafWeight.{name} must be a part that can be called, got {part!r}")
        if self.k is not None:
            check_integer("BanzhafWeight.k", self.k, least=1)

    def __call__(self, round: Round, labels: Labels) -> Tensor:
        value = self.values(round)
        out = torch.zeros_like(value)
        for run, pool in enumerate(round.pool):
            values = value[run, pool]
            if self.scale == "rank":
                out[run, pool] = (values.argsort().argsort() + 1).to(out.dtype) / len(values)
            else:
                out[run, pool] = values.clamp_min(0) / values.max().clamp_min(1e-30)
        return out

    def values(self, round: Round) -> Tensor:
        """The value of every node of the pool, zero elsewhere: float [R, N]."""
        value = torch.zeros_like(round.prediction.confidence)
        sizes = round.pool.sum(1)
        for size in sorted(set(sizes.tolist()) - {0}):
            runs = (sizes == size).nonzero().squeeze(1)
            players = round.pool[runs].nonzero()[:, 1].view(len(runs), size)
            game = Information.of(
                round.task.cached(self.propagate),
                round.prediction.logits[runs],
                ~round.pool[runs] & round.labels.known[runs],
                players,
                normalise=self.normalise,
            )
            k = (size + 1) // 2 if self.k is None else min(self.k, size)
            generators = round.rng.only(runs.tolist()).at("coalitions").generators(value.device)
            value[runs[:, None], players] = self.estimate(game, k, generators).mean.to(value.dtype)
        return value


@dataclass(frozen=True)
class Product:
    """The product of two weights. Float [R, N]."""

    first: NodeWeight
    second: NodeWeight

    def __call__(self, round: Round, labels: Labels) -> Tensor:
        return self.first(round, labels) * self.second(round, labels)
