"""Reach: what the players of one run can change, node by node.

Tensors are laid out classes first, [C, n, b] for n nodes and b coalitions: sums over a leading axis are the fast ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from bangs.graphs.sparse import Pattern, Sparse
from bangs.valuation.columns import Columns

Normalise = Literal["none", "mass"]

TILE = 2**17  # numbers that a processor's cache holds
TINY = 1e-12  # mass below which nothing has reached a node
LEAST = 1e-30  # a class's mean probability is at least that, so that its logarithm exists


@dataclass(frozen=True, eq=False)
class Reach:
    """The n open nodes that some player of one run can change, and what the other open nodes contribute."""

    columns: Columns  # [n, K], P[reached, players]
    base: Tensor  # [D, n], P X̂(∅) there
    brought: Tensor  # [K, D], the players' signals xᵢ
    total: Tensor  # float64 [C], Σ p_j of the others
    certainty: Tensor  # float64, −Σ H(p_j) of the others
    count: int  # open nodes, reached or not
    normalise: Normalise
    weight: Tensor | None = None  # float [n], how many nodes like it a node stands for; None = itself alone

    def worth(self, members: Tensor, budget: int) -> Tensor:
        """U of coalitions [b, K]: float64 [b]."""
        coming = self._coming(members)
        total, certainty = self.total[:, None].repeat(1, len(members)), self.certainty.repeat(len(members))
        tile = min(TILE, budget // 24) if members.device.type == "cpu" else budget // 24
        for rows in slices(len(self.columns), tile // coming[0].numel()):
            p, log_p = _softmax(read(self._spread(coming, rows), self.normalise))
            if self.weight is not None:
                p *= self.weight[rows, None]
            total += p.sum(1)
            certainty += (p * log_p).sum((0, 1))
        mean = total / self.count
        return certainty / self.count - torch.xlogy(mean, mean).sum(0)

    def marginals(self, members: Tensor, near: "Near", budget: int) -> Tensor:
        """U(S ∪ i) − U(S∖i) of coalitions bool [b, K]: [b, K]."""
        look = self._look(members)
        back = self.columns.back(look.slope.transpose(0, 1).flatten(1)).view(*self.brought.shape, -1)
        change = (back * self.brought[..., None]).sum(1)
        if len(near.node):
            change += self._surplus(look, members, near, budget)
        return change.T / self.count

    def stderr(self, members: Tensor) -> Tensor:
        """The standard error of `worth` where some nodes stand for others, of coalitions [b, K]: float64 [b].

        To first order U is mean_j KL(p_j ‖ p̄), of which m of F nodes are drawn without replacement.
        """
        if self.weight is None or not bool((drawn := self.weight > 1).any()):
            return torch.zeros(len(members), dtype=torch.float64, device=members.device)
        told = self._look(members).divergence[drawn].double()
        m, F = len(told), float(self.weight[drawn].double().sum())
        return F / self.count * ((1 - m / F) / m * told.var(0)).sqrt()

    def near(self, tolerance: float) -> "Near":
        """The pairs of a node and a player who moves its logits by more than the tolerance."""
        logits = self.brought if self.normalise == "none" else self.brought[:, :-1]
        span = logits.amax(1) - logits.amin(1)  # how far apart a player can drive two classes
        if self.normalise == "none":
            least = (tolerance / span)[None]
        else:  # a player also dilutes what others say, and all are divided by the mass that is there
            mass = self.base[-1] + self.columns.sums() / 2
            least = (tolerance / span.amax() * mass)[:, None]
        return Near(*self.columns.above(least), (len(span), len(self.columns)))

    def _look(self, members: Tensor) -> "Look":
        """Predictions at coalitions [b, K]."""
        h = self._spread(self._coming(members), slice(None))
        counted = None if self.weight is None else self.weight[:, None]
        return Look.of(h, self.normalise, self.count, self.total.float()[:, None, None], counted)

    def _coming(self, members: Tensor) -> Tensor:
        """What the members bring: [K, D, b]."""
        return self.brought[..., None] * members.T[:, None]

    def _spread(self, coming: Tensor, rows: slice) -> Tensor:
        """P X̂(S) at some of the nodes: [D, n, b]."""
        arrived = self.columns.times(coming.flatten(1), rows).view(-1, *coming.shape[1:])
        return arrived.transpose(0, 1).contiguous().add_(self.base[:, rows, None])

    def _surplus(self, look: "Look", members: Tensor, near: "Near", budget: int) -> Tensor:
        """What gradients miss of the change in |open| · U, at the pairs that are near: [K, b]."""
        sign = torch.where(members.T, -1.0, 1.0)
        log_mean = look.mean.log()
        sums = -torch.stack([near.joined.times(field) for field in (*look.p, look.divergence)])  # [C + 1, K, b]
        for pairs in near.split(budget // (24 * look.mean.numel())):
            step = (pairs.weight[:, None] * self.brought[pairs.player]).T[..., None]  # [D, M, 1]
            h = look.h.index_select(1, pairs.node).addcmul_(step, sign[pairs.player])
            q, log_q = _softmax(read(h, self.normalise))
            divergence = log_q.sub_(log_mean).mul_(q).sum(0)
            sums += torch.stack([pairs.each.times(field) for field in (*q, divergence)])
        moved = sums[:-1] / self.count
        drift = ((look.mean + moved) * torch.log1p(moved / look.mean)).sum(0)  # KL(q̄ ‖ p̄)
        linear = torch.stack([near.weighted.times(slope) for slope in look.slope], dim=1) * self.brought[..., None]
        return sign * (sums[-1] - self.count * drift) - linear.sum(1)


@dataclass(frozen=True, eq=False)
class Near:
    """M pairs of a node and a player who moves it, sorted by player."""

    node: Tensor  # long [M], of n
    player: Tensor  # long [M], of K
    weight: Tensor  # float [M], P[node, player]
    size: tuple[int, int]  # K, n

    @cached_property
    def joined(self) -> Sparse:
        """Sums a field [n, b] over the nodes of each player: [K, n]; products have a fixed order of sums."""
        return self._sparse(self.node, torch.ones_like(self.weight), self.size[1])

    @cached_property
    def weighted(self) -> Sparse:
        """The players' columns at near nodes, turned: [K, n]."""
        return self._sparse(self.node, self.weight, self.size[1])

    @cached_property
    def each(self) -> Sparse:
        """Sums a field [M, b] of pairs over each player: [K, M]."""
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
class Look:
    """Predictions at b memberships and how U depends on them; … stands for R, or for nothing."""

    h: Tensor  # [D, …, n, b], the propagated signal
    p: Tensor  # [C, …, n, b]
    mean: Tensor  # [C, …, 1, b], p̄
    divergence: Tensor  # […, n, b], KL(p_j ‖ p̄)
    slope: Tensor  # [D, …, n, b], |open| · ∂U/∂h

    @classmethod
    def of(
        cls,
        h: Tensor,
        normalise: Normalise,
        count: Tensor | int,
        rest: Tensor | float = 0.0,
        open: Tensor | None = None,
    ) -> "Look":
        """Predictions of a propagated signal at n nodes, of which the `open` […, n, 1] count, or count several times.

        `count` is the number of open nodes here and elsewhere, `rest` [C, 1, 1] the sum Σ p_j over those elsewhere.
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


def read(h: Tensor, normalise: Normalise) -> Tensor:
    """Logits [C, …] of a propagated signal [D, …]."""
    return h if normalise == "none" else h[:-1] / h[-1:].clamp(min=TINY)


def _softmax(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities and log-probabilities [C, …] of logits [C, …], which are overwritten; classes first are fast."""
    logits -= logits.amax(0)
    p = logits.exp()
    total = p.sum(0)
    return p.div_(total), logits.sub_(total.log_())


def split(rows: Tensor, size: int) -> Iterator[Tensor]:
    """The rows [n, …] in pieces of so many, at least one."""
    return (rows[part] for part in slices(len(rows), size))


def slices(total: int, size: int) -> Iterator[slice]:
    """0 … total in pieces of so many, at least one."""
    return (slice(start, start + max(1, size)) for start in range(0, total, max(1, size)))
