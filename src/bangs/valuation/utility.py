"""Information: the game the candidate nodes play."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.graphs.propagation import Operator

Normalise = Literal["none", "mass"]


@dataclass(frozen=True, eq=False)
class Information:
    """How decided and how diverse the student's predictions would be if a coalition of players were adopted.

    Ĥ(S) = P X̂(S), row j of X̂(S) being the teacher's calibrated logits if j is known or in S, else 0; with
    p_j = softmax(Ĥ_j(S)) over the open nodes j, U(S) = H(mean_j p_j) − mean_j H(p_j) = mean_j KL(p_j ‖ mean p) ≥ 0.
    `normalise="mass"` divides row j of Ĥ(S) by the share of P's row that fell on nodes with logits.

    P is linear: Ĥ(S) = Ĥ(∅) + Σ_{i∈S} P[:, i] xᵢᵀ, so the base and the players' columns are propagated once, only
    nodes that some player reaches are looked at again, and coalitions and nodes are worked through in tiles that
    respect `budget`. Worths are sums of float32 terms in float64.
    """

    operator: Operator
    logits: Tensor  # float [R, N, C], the teacher's, calibrated
    known: Tensor  # bool [R, N], labelled or adopted
    members: Tensor  # long [R, K], the players' nodes
    open: Tensor  # bool [R, N], nodes whose predictions count
    normalise: Normalise
    budget: int  # bytes

    @classmethod
    def of(
        cls,
        operator: Operator,
        logits: Tensor,
        known: Tensor,
        players: Tensor,
        *,
        open: Tensor | None = None,
        normalise: Normalise = "none",
        budget: int = 512 * 2**20,
    ) -> "Information":
        """The game of `players` long [R, K]; `open` defaults to all nodes that are not known."""
        open = ~known if open is None else open
        if players.numel() == 0:
            raise InvalidInput("the game has no players; it needs at least 1 candidate node in every run")
        if not open.any(1).all():
            run = int((~open.any(1)).nonzero()[0])
            raise InvalidInput(f"run {run} has no open node, so no prediction counts; leave at least 1 node unlabelled")
        if known.gather(1, players).any():
            run = int(known.gather(1, players).any(1).nonzero()[0])
            raise InvalidInput(f"run {run} has a player that is already known; candidates must be unlabelled nodes")
        return cls(operator, logits.float(), known, players, open, normalise, budget)

    @property
    def runs(self) -> int:
        return self.members.shape[0]

    @property
    def players(self) -> int:
        return self.members.shape[1]

    @property
    def device(self) -> torch.device:
        return self.logits.device

    def __call__(self, members: Tensor) -> Tensor:
        """U of coalitions [R, B, K]: float64 [R, B]."""
        return torch.stack([self._worth(run, members[run].float()) for run in range(self.runs)])

    def gradient(self, members: Tensor) -> Tensor:
        """∂U/∂mᵢ at memberships [R, B, K]: float32 [R, B, K].

        = xᵢ · (Pᵀ G)ᵢ with G = ∂U/∂Ĥ, G_jc = p_jc [log(p_jc / p̄_c) − KL(p_j ‖ p̄)] / |open|: one propagation with
        C columns there and one back, without any player's column.
        """
        step = max(1, self.budget // (8 * 4 * self._signal.numel()))
        return torch.cat([self._slopes(part.float()) for part in members.split(step, dim=1)], dim=1)

    def marginals(self, members: Tensor) -> Tensor:
        """U(S ∪ i) − U(S∖i) of coalitions bool [R, B, K]: float64 [R, B, K]."""
        return torch.stack([torch.stack([self._flips(run, row) for row in members[run]]) for run in range(self.runs)])

    @cached_property
    def _signal(self) -> Tensor:
        """The teacher's logits [R, N, D]; a column of ones follows them if mass is counted, and D = C + 1."""
        if self.normalise == "none":
            return self.logits
        return torch.cat([self.logits, torch.ones_like(self.logits[..., :1])], dim=2)

    @cached_property
    def _base(self) -> Tensor:
        """P X̂(∅): [R, N, D]."""
        return self._propagate((self._signal * self.known[..., None])[:, None])[:, 0]

    @cached_property
    def _brought(self) -> Tensor:
        """What each player brings, xᵢ: [R, K, D]."""
        return self._signal.gather(1, self.members[..., None].expand(-1, -1, self._signal.shape[2]))

    @cached_property
    def _reaches(self) -> "list[_Reach]":
        """Where the players' influence goes, per run."""
        return [self._reach(run) for run in range(self.runs)]

    def _propagate(self, x: Tensor, adjoint: bool = False) -> Tensor:
        """P x, or Pᵀ x, for [R, B, N, D]."""
        R, B, N, D = x.shape
        flat = x.permute(2, 0, 1, 3).reshape(N, R * B * D)
        out = self.operator.adjoint(flat) if adjoint else self.operator(flat)
        return out.view(N, R, B, D).permute(1, 2, 0, 3)

    def _reach(self, run: int) -> "_Reach":
        columns = self.operator.columns(self.members[run])
        reached = (columns != 0).any(1) & self.open[run]
        constant = self._read(self._base[run, self.open[run] & ~reached].T)
        p, certain = _shares(constant)
        return _Reach(
            columns=columns[reached],
            base=self._base[run, reached].T.contiguous(),
            shares=p.sum(1, dtype=torch.float64),
            certainty=certain.sum(dtype=torch.float64),
            count=int(self.open[run].sum()),
        )

    def _read(self, h: Tensor) -> Tensor:
        """Logits [C, …] from propagated signal [D, …]."""
        return h if self.normalise == "none" else h[:-1] / h[-1:].clamp(min=1e-12)

    def _worth(self, run: int, members: Tensor) -> Tensor:
        reach, brought = self._reaches[run], self._brought[run]
        D, n = reach.base.shape
        out = []
        for part in members.split(max(1, min(64, self.budget // (4 * 4 * D * 256)))):
            shares = reach.shares[:, None].repeat(1, len(part))
            certainty = reach.certainty.repeat(len(part))
            coming = brought.T[:, :, None] * part.T[None]  # [D, K, b]
            for rows in _tiles(n, self.budget // (4 * 4 * D * len(part))):
                h = torch.matmul(reach.columns[rows], coming) + reach.base[:, rows, None]  # [D, n, b]
                p, certain = _shares(self._read(h))
                shares += p.sum(1, dtype=torch.float64)
                certainty += certain.sum(0, dtype=torch.float64)
            out.append(_information(shares / reach.count, certainty / reach.count))
        return torch.cat(out)

    def _flips(self, run: int, members: Tensor) -> Tensor:
        """U(S ∪ i) − U(S∖i) of one coalition bool [K] for every player: float64 [K]."""
        reach, brought = self._reaches[run], self._brought[run]
        D, n = reach.base.shape
        K = self.players
        sign = torch.where(members, -1.0, 1.0)
        here = torch.einsum("nk,kd->dn", reach.columns[:, members], brought[members]) + reach.base
        p, certain = _shares(self._read(here))
        shares = (reach.shares + p.sum(1, dtype=torch.float64)) / reach.count
        certainty = (reach.certainty + certain.sum(dtype=torch.float64)) / reach.count
        moved = torch.zeros(D if self.normalise == "none" else D - 1, K, dtype=torch.float64, device=self.device)
        surer = torch.zeros(K, dtype=torch.float64, device=self.device)
        change = (brought * sign[:, None]).T  # [D, K]
        for rows in _tiles(n, self.budget // (4 * 4 * D * K)):
            h = here[:, rows, None] + reach.columns[None, rows] * change[:, None]  # [D, n, K]
            q, more = _shares(self._read(h))
            moved += (q - p[:, rows, None]).sum(1, dtype=torch.float64)
            surer += (more - certain[rows, None]).sum(0, dtype=torch.float64)
        flipped = _information(shares[:, None] + moved / reach.count, certainty + surer / reach.count)
        return sign * (flipped - _information(shares, certainty))

    def _slopes(self, members: Tensor) -> Tensor:
        """The gradient at memberships [R, b, K] that fit into the budget together."""
        R, b, K = members.shape
        D = self._signal.shape[2]
        index = self.members[:, None].expand(R, b, K)
        degree = self.known.float()[:, None].repeat(1, b, 1).scatter(2, index, members)
        h = self._propagate(self._signal[:, None] * degree[..., None]).movedim(3, 0)  # [D, R, b, N]
        logits = self._read(h)
        p, certain = _shares(logits)
        weight = self.open.float()[:, None] / self.open.sum(1)[:, None, None]
        mean = (p.double() * weight).sum(3, keepdim=True)
        log_p = logits.log_softmax(0)
        divergence = certain - (p * mean.log()).sum(0)
        slope = weight * p * (log_p - mean.log() - divergence)
        slope = slope.float()
        if self.normalise == "mass":
            mass = h[-1:].clamp(min=1e-12)
            slope = torch.cat([slope, -(slope * logits).sum(0, keepdim=True)]) / mass
        back = self._propagate(slope.movedim(0, 3), adjoint=True)
        at_players = back.gather(2, index[..., None].expand(R, b, K, D))
        return (at_players * self._brought[:, None]).sum(3)


@dataclass(frozen=True, eq=False)
class _Reach:
    """The part of the graph that some player can change, and what the rest contributes."""

    columns: Tensor  # float [n, K], P[reached, players]
    base: Tensor  # float [D, n], Ĥ(∅) there
    shares: Tensor  # float64 [C], Σ p_j over open nodes that nobody reaches
    certainty: Tensor  # float64, −Σ H(p_j) over the same
    count: int  # open nodes


def _shares(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities [C, …] and certainty −H [...] of logits [C, …]."""
    log_p = logits.log_softmax(0)
    p = log_p.exp()
    return p, (p * log_p).sum(0)


def _information(shares: Tensor, certainty: Tensor) -> Tensor:
    """H(p̄) + mean certainty, from p̄ [C, …] and −mean H [...]."""
    return certainty - torch.xlogy(shares, shares).sum(0)


def _tiles(total: int, size: int) -> Iterator[slice]:
    size = max(1, size)
    return (slice(start, min(start + size, total)) for start in range(0, total, size))
