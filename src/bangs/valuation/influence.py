"""The influence of players on the predictions of other nodes, and the utilities and marginals that follow from it.

Tensors lead with the class axis, [C, g, n, b] for n nodes of each of g runs and b coalitions, since sums over a leading
axis are fast. Runs with fewer nodes are padded with nodes of weight zero.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from bangs.graphs.sparse import Pattern, Sparse

if TYPE_CHECKING:
    from bangs.valuation.dense_influence import DenseColumns
    from bangs.valuation.sparse_influence import SparseColumns

Normalisation = Literal["none", "mass"]  # propagated logits as they are, or divided by the mass that reached the node

CPU_TILE = 2**17  # numbers that fit a CPU's cache
NUMBER_BYTES = 32  # per number of a node while marginals are computed
MIN_MASS = 1e-12  # a node with less mass counts as not reached
MIN_PROBABILITY = 1e-30  # lower bound on a class's mean probability, for its logarithm


@dataclass(frozen=True, eq=False)
class Influence:
    """The n open nodes that some player of a run reaches, and the sums over the run's other open nodes."""

    columns: "DenseColumns | SparseColumns"  # [g, n, K], P[reached, players]
    base: Tensor  # [D, g, n], P X̂(∅) there
    player_signals: Tensor  # [g, K, D], the players' signals xᵢ
    total: Tensor  # float64 [C, g], Σ p_j over the other open nodes
    neg_entropy: Tensor  # float64 [g], −Σ H(p_j) over the other open nodes
    count: Tensor  # long [g], open nodes, reached or not
    normalise: Normalisation
    weight: Tensor | None = None  # float [g, n], sampling weight of every node; None = 1

    def worth(self, members: Tensor, budget: int) -> Tensor:
        """U of coalitions [g, b, K]: float64 [g, b]."""
        member_signals, coalitions = self._member_signals(members), members.shape[1]
        total = self.total[..., None].repeat(1, 1, coalitions)
        neg_entropy = self.neg_entropy[:, None].repeat(1, coalitions)
        tile = min(CPU_TILE, budget // 24) if members.device.type == "cpu" else budget // 24
        for rows in slices(len(self.columns), tile // member_signals[:, 0].numel()):
            p, log_p = _softmax(to_logits(self._propagate(member_signals, rows), self.normalise))
            if self.weight is not None:
                p *= self.weight[:, rows, None]
            total += p.sum(2)
            neg_entropy += (p * log_p).sum((0, 2))
        count = self.count[:, None]
        mean = total / count
        return neg_entropy / count - torch.xlogy(mean, mean).sum(0)

    def coalitions_at_once(self, budget: int) -> int:
        """The number of coalitions whose marginals are computed at once."""
        size = max(1, self.base.numel())
        limit = budget // (NUMBER_BYTES * size)
        return min(limit, max(8, 4 * CPU_TILE // size)) if self.base.device.type == "cpu" else limit

    def marginals(self, members: Tensor, strong_pairs: "StrongPairs", budget: int) -> Tensor:
        """U(S ∪ i) − U(S∖i) of coalitions bool [g, b, K]: [g, b, K]."""
        forecast = self._forecast(members)
        back = self.columns.matmul_transposed(forecast.slope.permute(1, 2, 0, 3).flatten(2)).view(
            *self.player_signals.shape, -1
        )
        change = (back * self.player_signals[..., None]).sum(2)
        if len(strong_pairs.node):
            change += self._nonlinear_change(forecast, members, strong_pairs, budget)
        return change.transpose(1, 2) / self.count[:, None, None]

    def strong_pairs(self, tolerance: float) -> "StrongPairs":
        """The pairs of a node and a player that changes its logits by more than the tolerance."""
        logits = self.player_signals if self.normalise == "none" else self.player_signals[..., :-1]
        span = logits.amax(2) - logits.amin(2)  # the largest change of a logit difference
        if self.normalise == "none":
            bound = (tolerance / span)[:, None]
        else:  # a player also adds mass, by which all logits are divided
            mass = self.base[-1] + self.columns.sums() / 2
            bound = (tolerance / span.amax(1, keepdim=True) * mass)[..., None]
        return StrongPairs(*self.columns.pairs_above(bound), (span.numel(), len(span) * len(self.columns)))

    def _forecast(self, members: Tensor) -> "Forecast":
        """The student's predictions at coalitions [g, b, K]."""
        h = self._propagate(self._member_signals(members), slice(None))
        counted = None if self.weight is None else self.weight[..., None]
        return Forecast.of(h, self.normalise, self.count[:, None, None], self.total.float()[..., None, None], counted)

    def _member_signals(self, members: Tensor) -> Tensor:
        """The signals of the members, zero for other players: [g, K, D, b]."""
        return self.player_signals[..., None] * members.transpose(1, 2)[:, :, None]

    def _propagate(self, member_signals: Tensor, rows: slice) -> Tensor:
        """P X̂(S) at some of the nodes: [D, g, n, b]."""
        propagated = self.columns.matmul(member_signals.flatten(2), rows).view(
            len(member_signals), -1, *member_signals.shape[2:]
        )
        return propagated.permute(2, 0, 1, 3).contiguous().add_(self.base[:, :, rows, None])

    def _nonlinear_change(
        self, forecast: "Forecast", members: Tensor, strong_pairs: "StrongPairs", budget: int
    ) -> Tensor:
        """The change in |open| · U at the strong pairs, less its linear part: [g, K, b]."""
        runs, players, _ = self.player_signals.shape
        sign, player_signals = torch.where(members.transpose(1, 2), -1.0, 1.0), self.player_signals.flatten(0, 1)
        h, p, slopes = (x.flatten(1, 2) for x in (forecast.h, forecast.p, forecast.slope))
        log_mean, signs = forecast.mean.log()[:, :, 0], sign.flatten(0, 1)
        sums = -torch.stack([strong_pairs.node_sums.matmul(x) for x in (*p, forecast.divergence.flatten(0, 1))])
        for pairs in strong_pairs.split(budget // (24 * log_mean[:, 0].numel())):
            step = (pairs.weight[:, None] * player_signals[pairs.player]).T[..., None]  # [D, M, 1]
            h_pairs = h.index_select(1, pairs.node).addcmul_(step, signs[pairs.player])
            q, log_q = _softmax(to_logits(h_pairs, self.normalise))
            # with a single run all pairs share one mean
            log_p = log_mean if runs == 1 else log_mean.index_select(1, pairs.player // players)
            divergence = log_q.sub_(log_p).mul_(q).sum(0)
            sums += torch.stack([pairs.pair_sums.matmul(x) for x in (*q, divergence)])
        sums, count = sums.view(len(sums), *sign.shape), self.count[:, None, None]  # [C + 1, g, K, b]
        moved = sums[:-1] / count
        drift = ((forecast.mean + moved) * torch.log1p(moved / forecast.mean)).sum(0)  # KL(q̄ ‖ p̄)
        back = torch.stack([strong_pairs.weighted.matmul(slope) for slope in slopes], dim=1)
        linear = (back * player_signals[..., None]).sum(1).view(sign.shape)
        return sign * (sums[-1] - count * drift) - linear


@dataclass(frozen=True, eq=False)
class StrongPairs:
    """M pairs of a node and a player with a strong influence on it, sorted by player; all runs in one list."""

    node: Tensor  # long [M], of g n
    player: Tensor  # long [M], of g K
    weight: Tensor  # float [M], P[node, player]
    size: tuple[int, int]  # g K, g n

    @cached_property
    def node_sums(self) -> Sparse:
        """A matrix [g K, g n] that sums over the nodes of each player; its products have a fixed order of sums."""
        return self._sparse(self.node, self.size[1])

    @cached_property
    def weighted(self) -> Sparse:
        """The entries P[node, player] of the pairs, transposed: [g K, g n]."""
        return self.node_sums.with_values(self.weight)

    @cached_property
    def pair_sums(self) -> Sparse:
        """A matrix [g K, M] that sums over the pairs of each player."""
        pairs = torch.arange(len(self.node), device=self.node.device)
        return self._sparse(pairs, len(pairs))

    def split(self, size: int) -> "Iterator[StrongPairs]":
        """The pairs in chunks, in order."""
        for part in slices(len(self.node), size):
            yield StrongPairs(self.node[part], self.player[part], self.weight[part], self.size)

    def _sparse(self, columns: Tensor, width: int) -> Sparse:
        """Ones at the players of the pairs and these columns: [g K, width]."""
        players = torch.arange(self.size[0] + 1, device=columns.device)
        starts = torch.searchsorted(self.player, players).int()
        return Sparse(Pattern(starts, columns.int(), (self.size[0], width)), torch.ones_like(self.weight))


@dataclass(frozen=True, eq=False)
class Forecast:
    """The student's predictions at b memberships, and the derivative of U; … is R or g."""

    h: Tensor  # [D, …, n, b], the propagated signal
    p: Tensor  # [C, …, n, b]
    mean: Tensor  # [C, …, 1, b], p̄
    divergence: Tensor  # […, n, b], KL(p_j ‖ p̄)
    slope: Tensor  # [D, …, n, b], |open| · ∂U/∂h

    @classmethod
    def of(
        cls,
        h: Tensor,
        normalise: Normalisation,
        count: Tensor | int,
        unreached: Tensor | float = 0.0,
        open: Tensor | None = None,
    ) -> "Forecast":
        """Predictions from a propagated signal at n nodes, weighted by `open` […, n, 1].

        `count` is the number of all open nodes, `unreached` [C, …, 1, 1] the sum Σ p_j over those not among the n.
        """
        logits = to_logits(h, normalise)
        p, log_ratio = _softmax(logits.clone())
        counted = p if open is None else p * open
        mean = ((counted.sum(-2, keepdim=True) + unreached) / count).clamp_(min=MIN_PROBABILITY)
        log_ratio -= mean.log()
        divergence = (p * log_ratio).sum(0)
        slope = log_ratio.sub_(divergence).mul_(counted)
        if normalise == "mass":
            mass = h[-1:]
            slope = torch.cat([slope, -(slope * logits).sum(0, keepdim=True)])
            slope = torch.where(mass > MIN_MASS, slope / mass.clamp(min=MIN_MASS), 0.0)
        return cls(h, p, mean, divergence, slope)


def to_logits(h: Tensor, normalise: Normalisation) -> Tensor:
    """Logits [C, …] of a propagated signal [D, …]."""
    return h if normalise == "none" else h[:-1] / h[-1:].clamp(min=MIN_MASS)


def _softmax(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities and log-probabilities [C, …] of logits [C, …], which are overwritten."""
    logits -= logits.amax(0)
    p = logits.exp()
    total = p.sum(0)
    return p.div_(total), logits.sub_(total.log_())


def slices(total: int, size: int) -> Iterator[slice]:
    """0 … total in chunks of `size`, at least 1."""
    return (slice(start, start + max(1, size)) for start in range(0, total, max(1, size)))
