"""Reach: what the players of some runs can change, node by node.

Tensors are laid out classes first, [C, g, n, b] for n nodes of each of g runs and b coalitions: sums over a leading
axis are the fast ones. A run with fewer nodes than another is filled up by nodes that weigh nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from bangs.graphs.sparse import Pattern, Sparse
from bangs.valuation.ppr_columns import Columns

Reading = Literal["none", "mass"]  # logits as they were propagated, or per mass that has reached a node

TILE = 2**17  # numbers that a processor's cache holds
NUMBER = 32  # bytes of a number of a node while the marginals of a coalition are found
TINY = 1e-12  # mass below which nothing has reached a node
LEAST = 1e-30  # a class's mean probability is at least that, so that its logarithm exists


@dataclass(frozen=True, eq=False)
class Reach:
    """The n open nodes that some player of a run can change, and what the run's other open nodes contribute."""

    columns: Columns  # [g, n, K], P[reached, players]
    base: Tensor  # [D, g, n], P X̂(∅) there
    brought: Tensor  # [g, K, D], the players' signals xᵢ
    total: Tensor  # float64 [C, g], Σ p_j of the others
    certainty: Tensor  # float64 [g], −Σ H(p_j) of the others
    count: Tensor  # long [g], open nodes, reached or not
    normalise: Reading
    weight: Tensor | None = None  # float [g, n], how many nodes like it a node stands for; None = itself alone

    def worth(self, members: Tensor, budget: int) -> Tensor:
        """U of coalitions [g, b, K]: float64 [g, b]."""
        coming, coalitions = self._coming(members), members.shape[1]
        total, certainty = self.total[..., None].repeat(1, 1, coalitions), self.certainty[:, None].repeat(1, coalitions)
        tile = min(TILE, budget // 24) if members.device.type == "cpu" else budget // 24
        for rows in slices(len(self.columns), tile // coming[:, 0].numel()):
            p, log_p = _softmax(read(self._spread(coming, rows), self.normalise))
            if self.weight is not None:
                p *= self.weight[:, rows, None]
            total += p.sum(2)
            certainty += (p * log_p).sum((0, 2))
        count = self.count[:, None]
        mean = total / count
        return certainty / count - torch.xlogy(mean, mean).sum(0)

    def breadth(self, budget: int) -> int:
        """How many coalitions' marginals are found together."""
        field = max(1, self.base.numel())
        most = budget // (NUMBER * field)
        return min(most, max(8, 4 * TILE // field)) if self.base.device.type == "cpu" else most

    def marginals(self, members: Tensor, near: "Near", budget: int) -> Tensor:
        """U(S ∪ i) − U(S∖i) of coalitions bool [g, b, K]: [g, b, K]."""
        forecast = self._forecast(members)
        back = self.columns.matmul_transposed(forecast.slope.permute(1, 2, 0, 3).flatten(2)).view(
            *self.brought.shape, -1
        )
        change = (back * self.brought[..., None]).sum(2)
        if len(near.node):
            change += self._surplus(forecast, members, near, budget)
        return change.transpose(1, 2) / self.count[:, None, None]

    def stderr(self, members: Tensor) -> Tensor:
        """The standard error of `worth` where some nodes stand for others, of coalitions [g, b, K]: float64 [g, b].

        To first order U is mean_j KL(p_j ‖ p̄), of which m of F nodes are drawn without replacement.
        """
        if self.weight is None:
            return torch.zeros(members.shape[:2], dtype=torch.float64, device=members.device)
        drawn = (self.weight > 1)[..., None]
        told = self._forecast(members).divergence.double()
        m, F = drawn.sum(1), (self.weight.double()[..., None] * drawn).sum(1)
        gap = (told - (told * drawn).sum(1, keepdim=True) / m[:, None]) * drawn
        variance = gap.square().sum(1) / (m - 1)
        return torch.where(m > 0, F / self.count[:, None] * ((1 - m / F) / m * variance).sqrt(), 0.0)

    def near(self, tolerance: float) -> "Near":
        """The pairs of a node and a player who moves its logits by more than the tolerance."""
        logits = self.brought if self.normalise == "none" else self.brought[..., :-1]
        span = logits.amax(2) - logits.amin(2)  # how far apart a player can drive two classes
        if self.normalise == "none":
            least = (tolerance / span)[:, None]
        else:  # a player also dilutes what others say, and all are divided by the mass that is there
            mass = self.base[-1] + self.columns.sums() / 2
            least = (tolerance / span.amax(1, keepdim=True) * mass)[..., None]
        return Near(*self.columns.above(least), (span.numel(), len(span) * len(self.columns)))

    def _forecast(self, members: Tensor) -> "Forecast":
        """What a student would predict at coalitions [g, b, K]."""
        h = self._spread(self._coming(members), slice(None))
        counted = None if self.weight is None else self.weight[..., None]
        return Forecast.of(h, self.normalise, self.count[:, None, None], self.total.float()[..., None, None], counted)

    def _coming(self, members: Tensor) -> Tensor:
        """What the members bring: [g, K, D, b]."""
        return self.brought[..., None] * members.transpose(1, 2)[:, :, None]

    def _spread(self, coming: Tensor, rows: slice) -> Tensor:
        """P X̂(S) at some of the nodes: [D, g, n, b]."""
        arrived = self.columns.matmul(coming.flatten(2), rows).view(len(coming), -1, *coming.shape[2:])
        return arrived.permute(2, 0, 1, 3).contiguous().add_(self.base[:, :, rows, None])

    def _surplus(self, forecast: "Forecast", members: Tensor, near: "Near", budget: int) -> Tensor:
        """What gradients miss of the change in |open| · U, at the pairs that are near: [g, K, b]."""
        runs, players, _ = self.brought.shape
        sign, brought = torch.where(members.transpose(1, 2), -1.0, 1.0), self.brought.flatten(0, 1)
        h, p, slopes = (field.flatten(1, 2) for field in (forecast.h, forecast.p, forecast.slope))
        log_mean, signs = forecast.mean.log()[:, :, 0], sign.flatten(0, 1)
        sums = -torch.stack([near.joined.matmul(field) for field in (*p, forecast.divergence.flatten(0, 1))])
        for pairs in near.split(budget // (24 * log_mean[:, 0].numel())):
            step = (pairs.weight[:, None] * brought[pairs.player]).T[..., None]  # [D, M, 1]
            h_near = h.index_select(1, pairs.node).addcmul_(step, signs[pairs.player])
            q, log_q = _softmax(read(h_near, self.normalise))
            # all pairs of one run have the same mean, which need not be laid out pair by pair
            own = log_mean if runs == 1 else log_mean.index_select(1, pairs.player // players)
            divergence = log_q.sub_(own).mul_(q).sum(0)
            sums += torch.stack([pairs.each.matmul(field) for field in (*q, divergence)])
        sums, count = sums.view(len(sums), *sign.shape), self.count[:, None, None]  # [C + 1, g, K, b]
        moved = sums[:-1] / count
        drift = ((forecast.mean + moved) * torch.log1p(moved / forecast.mean)).sum(0)  # KL(q̄ ‖ p̄)
        linear = torch.stack([near.weighted.matmul(slope) for slope in slopes], dim=1) * brought[..., None]
        return sign * (sums[-1] - count * drift) - linear.sum(1).view(sign.shape)


@dataclass(frozen=True, eq=False)
class Near:
    """M pairs of a node and a player who moves it, sorted by player; those of all runs in one list."""

    node: Tensor  # long [M], of g n
    player: Tensor  # long [M], of g K
    weight: Tensor  # float [M], P[node, player]
    size: tuple[int, int]  # g K, g n

    @cached_property
    def joined(self) -> Sparse:
        """Sums a field [g n, b] over the nodes of each player: [g K, g n]; products have a fixed order of sums."""
        return self._sparse(self.node, torch.ones_like(self.weight), self.size[1])

    @cached_property
    def weighted(self) -> Sparse:
        """The players' columns at near nodes, turned: [g K, g n]."""
        return self.joined.with_values(self.weight)

    @cached_property
    def each(self) -> Sparse:
        """Sums a field [M, b] of pairs over each player: [g K, M]."""
        pairs = torch.arange(len(self.node), device=self.node.device)
        return self._sparse(pairs, torch.ones_like(self.weight), len(pairs))

    def split(self, size: int) -> "Iterator[Near]":
        """The pairs in pieces, each sorted as the whole."""
        for part in slices(len(self.node), size):
            yield Near(self.node[part], self.player[part], self.weight[part], self.size)

    def _sparse(self, columns: Tensor, values: Tensor, width: int) -> Sparse:
        players = torch.arange(self.size[0] + 1, device=columns.device)
        starts = torch.searchsorted(self.player, players).int()
        return Sparse(Pattern(starts, columns.int(), (self.size[0], width)), values)


@dataclass(frozen=True, eq=False)
class Forecast:
    """What a student would predict at b memberships, and how U depends on it; … stands for R, or for g."""

    h: Tensor  # [D, …, n, b], the propagated signal
    p: Tensor  # [C, …, n, b]
    mean: Tensor  # [C, …, 1, b], p̄
    divergence: Tensor  # […, n, b], KL(p_j ‖ p̄)
    slope: Tensor  # [D, …, n, b], |open| · ∂U/∂h

    @classmethod
    def of(
        cls,
        h: Tensor,
        normalise: Reading,
        count: Tensor | int,
        rest: Tensor | float = 0.0,
        open: Tensor | None = None,
    ) -> "Forecast":
        """Predictions of a propagated signal at n nodes, of which the `open` […, n, 1] count, or count several times.

        `count` is the number of open nodes here and elsewhere, `rest` [C, …, 1, 1] the sum Σ p_j over those elsewhere.
        """
        logits = read(h, normalise)
        p, surprise = _softmax(logits.clone())
        counted = p if open is None else p * open
        mean = ((counted.sum(-2, keepdim=True) + rest) / count).clamp_(min=LEAST)
        surprise -= mean.log()
        divergence = (p * surprise).sum(0)
        slope = surprise.sub_(divergence).mul_(counted)
        if normalise == "mass":
            mass = h[-1:]
            slope = torch.cat([slope, -(slope * logits).sum(0, keepdim=True)])
            slope = torch.where(mass > TINY, slope / mass.clamp(min=TINY), 0.0)
        return cls(h, p, mean, divergence, slope)


def read(h: Tensor, normalise: Reading) -> Tensor:
    """Logits [C, …] of a propagated signal [D, …]."""
    return h if normalise == "none" else h[:-1] / h[-1:].clamp(min=TINY)


def _softmax(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities and log-probabilities [C, …] of logits [C, …], which are overwritten; classes first are fast."""
    logits -= logits.amax(0)
    p = logits.exp()
    total = p.sum(0)
    return p.div_(total), logits.sub_(total.log_())


def split(members: Tensor, size: int) -> Iterator[Tensor]:
    """Coalitions [R, B, K] in pieces of so many, at least one."""
    return (members[:, part] for part in slices(members.shape[1], size))


def slices(total: int, size: int) -> Iterator[slice]:
    """0 … total in pieces of so many, at least one."""
    return (slice(start, start + max(1, size)) for start in range(0, total, max(1, size)))
