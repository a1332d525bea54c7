"""Situation: what is known when a person asks which node to label next."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.graphs.neighbours import NeighbourLists
from bangs.graphs.pagerank import PPR, Operator
from bangs.suggestion.posterior import Posterior, weighted_gram

TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Situation:
    """N nodes of C classes: what a model says of them, which have a label, and where they lie; on the CPU."""

    graph: Any  # an `EdgeList`, a `Data` or a `StoredGraph`
    probs: Tensor  # float [N, C], calibrated
    label: Tensor  # long [N], known labels, -1 = none
    pool: Tensor  # bool [N], nodes that may be suggested
    points: Tensor | None = None  # float [N, d], propagated features; None = the model's own log-probabilities
    disagreement: Tensor | None = None  # float [N], between the models of the folds, in nats
    seed: int = 0
    count: int = 20  # how many nodes are asked for
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False)

    def cached(self, make: "Callable[[Situation], Any]") -> Any:
        """What the function makes of the situation, made once."""
        if make not in self._kept:
            self._kept[make] = make(self)
        return self._kept[make]

    @property
    def nodes(self) -> int:
        return len(self.probs)

    @property
    def classes(self) -> int:
        return self.probs.shape[1]

    @cached_property
    def known(self) -> Tensor:
        """The nodes with a label: bool [N]."""
        return self.label >= 0

    @cached_property
    def entropy(self) -> Tensor:
        """−Σ_c p_c log p_c, as a share of log C: float [N] in [0, 1]."""
        p = self.probs.clamp_min(TINY)
        found: Tensor = -(p * p.log()).sum(1) / torch.tensor(float(max(self.classes, 2))).log()
        return found.clamp(0, 1)

    @cached_property
    def margin(self) -> Tensor:
        """One less the lead of the likeliest class over the second: float [N] in [0, 1]."""
        if self.classes < 2:
            return torch.zeros(self.nodes)
        best = self.probs.topk(2, dim=1).values
        return 1 - (best[:, 0] - best[:, 1])

    @cached_property
    def risk(self) -> Tensor:
        """The chance that the likeliest class is wrong, 1 − max_c p_c: float [N]."""
        return 1 - self.probs.amax(1)

    @cached_property
    def places(self) -> Tensor:
        """Where nodes lie, scaled to a mean squared length of one: float [N, d]."""
        own = self.points
        if own is None:
            own = self.probs.clamp_min(1e-6).log()
            own = own - own.mean(1, keepdim=True)
            own = own - own.mean(0)
        own = own.float()
        if not bool(own.isfinite().all()):
            raise InvalidInput("the places of nodes must be finite numbers; fit the model again")
        return own / own.square().sum(1).mean().clamp_min(TINY).sqrt()

    @cached_property
    def alone(self) -> Tensor:
        """The nodes without an edge to another node: bool [N]; none, where no node has an edge."""
        links = NeighbourLists.of(self.graph)
        if hasattr(self.graph, "into"):  # on disk: edges are not read
            return links.pointers.diff() == 0
        nodes = torch.arange(self.nodes).repeat_interleave(links.pointers.diff())
        apart = links.nodes != nodes
        linked = torch.zeros(self.nodes, dtype=torch.bool)
        linked[nodes[apart]] = True
        linked[links.nodes[apart].long()] = True
        return ~linked if bool(linked.any()) else linked

    @cached_property
    def operator(self) -> Operator:
        """Personalised PageRank P of the graph."""
        return PPR()(self.graph)

    @cached_property
    def reached(self) -> Tensor:
        """How much of every node known labels reach, Σ_{i known} P[j, i]: float [N]."""
        return self.operator(self.known.float()[:, None])[:, 0]

    @cached_property
    def given(self) -> Posterior:
        """What the known labels teach a linear model of the places."""
        return Posterior.of(self.places[self.known])

    @cached_property
    def spread(self) -> Tensor:
        """Its variance at every node before anything is taken: float [N]."""
        return self.given.variance(self.places)

    @cached_property
    def mass(self) -> Tensor:
        """Where nodes lie, Σ_j z_j z_jᵀ / N over nodes without a label: float [d, d]."""
        return weighted_gram(self.places, (~self.known).float())

    @cached_property
    def risky_mass(self) -> Tensor:
        """The same, each node weighted by the chance that its prediction is wrong: float [d, d]."""
        return weighted_gram(self.places, torch.where(self.known, 0.0, self.risk))

    def after(self, taken: Sequence[int]) -> Posterior:
        """What the known labels and those of the taken nodes teach; labels need not be known for that."""
        return self.given.beside(self.places[list(taken)])

    def news(self, taken: Sequence[int]) -> Tensor:
        """The share of the variance at every node that the taken nodes leave: float [N] in [0, 1]."""
        if not taken:
            return torch.ones(self.nodes)
        return (self.after(taken).variance(self.places) / self.spread.clamp_min(TINY)).clamp(0, 1)
