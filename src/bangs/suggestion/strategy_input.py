"""StrategyInput: all that a strategy may use to choose the next nodes to label."""

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

EPSILON = 1e-12


@dataclass(frozen=True, eq=False)
class StrategyInput:
    """N nodes of C classes with predictions, labels and points; on the CPU."""

    graph: Any  # an `EdgeList`, a `Data` or a `StoredGraph`
    probs: Tensor  # float [N, C], calibrated
    label: Tensor  # long [N], known labels, -1 = none
    pool: Tensor  # bool [N], nodes that may be suggested
    features: Tensor | None = None  # float [N, d], propagated; None = the log-probabilities take their place
    disagreement: Tensor | None = None  # float [N], between the models of the folds, in nats
    seed: int = 0
    count: int = 20  # how many nodes to suggest
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    def cached(self, function: "Callable[[StrategyInput], Any]") -> Any:
        """The result of a function of the inputs, computed once."""
        if function not in self._cache:
            self._cache[function] = function(self)
        return self._cache[function]

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
        p = self.probs.clamp_min(EPSILON)
        entropy: Tensor = -(p * p.log()).sum(1) / torch.tensor(float(max(self.classes, 2))).log()
        return entropy.clamp(0, 1)

    @cached_property
    def margin(self) -> Tensor:
        """1 − (p_1 − p_2) of the two likeliest classes: float [N] in [0, 1]."""
        if self.classes < 2:
            return torch.zeros(self.nodes)
        best = self.probs.topk(2, dim=1).values
        return 1 - (best[:, 0] - best[:, 1])

    @cached_property
    def risk(self) -> Tensor:
        """The probability that the likeliest class is wrong, 1 − max_c p_c: float [N]."""
        return 1 - self.probs.amax(1)

    @cached_property
    def points(self) -> Tensor:
        """The features, or centred log-probabilities, scaled to a mean squared norm of one: float [N, d]."""
        z = self.features
        if z is None:
            z = self.probs.clamp_min(1e-6).log()
            z = z - z.mean(1, keepdim=True)
            z = z - z.mean(0)
        z = z.float()
        if not bool(z.isfinite().all()):
            raise InvalidInput("the points of nodes must be finite numbers; fit the model again")
        return z / z.square().sum(1).mean().clamp_min(EPSILON).sqrt()

    @cached_property
    def isolated(self) -> Tensor:
        """The nodes without an edge to another node: bool [N]; all False where no node has an edge."""
        if hasattr(self.graph, "into"):  # on disk: edges are not read
            return NeighbourLists.of(self.graph).pointers.diff() == 0
        edges = self.graph.edge_index
        linked = torch.zeros(self.nodes, dtype=torch.bool)
        linked[edges[:, edges[0] != edges[1]]] = True
        return ~linked if bool(linked.any()) else linked

    @cached_property
    def operator(self) -> Operator:
        """Personalised PageRank P of the graph."""
        return PPR()(self.graph)

    @cached_property
    def reached(self) -> Tensor:
        """The influence of known labels on every node, Σ_{i known} P[j, i]: float [N]."""
        return self.operator(self.known.float()[:, None])[:, 0]

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior of a linear model of the points, given the known labels."""
        return Posterior.of(self.points[self.known])

    @cached_property
    def variance(self) -> Tensor:
        """The posterior variance at every node, given the known labels: float [N]."""
        return self.posterior.variance(self.points)

    @cached_property
    def gram(self) -> Tensor:
        """Σ_j z_j z_jᵀ / N over nodes without a label: float [d, d]."""
        return weighted_gram(self.points, (~self.known).float())

    @cached_property
    def risk_gram(self) -> Tensor:
        """The same, each node weighted by the probability that its prediction is wrong: float [d, d]."""
        return weighted_gram(self.points, torch.where(self.known, 0.0, self.risk))

    def posterior_with(self, taken: Sequence[int]) -> Posterior:
        """The posterior given the known labels and those of the taken nodes."""
        return self.posterior.updated(self.points[list(taken)])

    def novelty(self, taken: Sequence[int]) -> Tensor:
        """The share of the variance at every node that remains after the taken nodes: float [N] in [0, 1]."""
        if not taken:
            return torch.ones(self.nodes)
        return (self.posterior_with(taken).variance(self.points) / self.variance.clamp_min(EPSILON)).clamp(0, 1)
