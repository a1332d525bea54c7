"""Information: the game the candidate nodes play."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any

import torch
from torch import Tensor

from bangs.errors import InvalidInput, OutOfMemory, ran_out_of_memory
from bangs.graphs.propagation import Operator
from bangs.graphs.push import Pairs
from bangs.valuation.dense_reach import COLUMN, dense_reach
from bangs.valuation.reach import NUMBER, TINY, Forecast, Reach, Reading, slices, split
from bangs.valuation.sparse_reach import PAIR, ROW, sparse_reach

MOST = {"cpu": 1}  # runs valued together, by the device: a processor's cache holds one best, a GPU takes what fits
WIDTH = 128  # coalitions whose worth is found together
LEAST = 2**16  # bytes; what does not fit in pieces of this size does not fit at all

Answer = Callable[["Information", Tensor], Tensor]


def _within_memory(find: Answer) -> Answer:
    """The same answer, sought again with half the budget while memory runs out."""

    @wraps(find)
    def call(game: "Information", members: Tensor) -> Tensor:
        try:
            return find(game, members)
        except Exception as error:
            if not ran_out_of_memory(error):
                raise
            if game.budget < LEAST:
                raise OutOfMemory(
                    f"memory ran out over the game of {game.players} candidates on {game.known.shape[1]} nodes, even "
                    f"in pieces of {game.budget:,} bytes, down to which Banzhaf.budget was halved; "
                    "lower candidates, run fewer seeds at once, or use a device with more memory"
                ) from error
        return call(replace(game, budget=game.budget // 2), members)  # outside, where the error holds no tensors

    return call


@dataclass(frozen=True, eq=False)
class Information:
    """How decided and how diverse the student's predictions would be if a coalition of players were adopted.

    Ĥ(S) = P X̂(S), row j of X̂(S) being the teacher's calibrated logits if j is known or in S, else 0; with
    p_j = softmax(Ĥ_j(S)) over the open nodes j and p̄ = mean_j p_j, U(S) = H(p̄) − mean_j H(p_j) = mean_j KL(p_j ‖ p̄).
    `normalise="mass"` divides row j of Ĥ(S) by the share of P's row that falls on nodes with logits.

    P is linear, Ĥ(S) = Ĥ(∅) + Σ_{i∈S} P[:, i] xᵢᵀ. So worths need the base and the players' columns propagated once,
    and look only at nodes that some player reaches; gradients need one propagation there and one back. Marginals are
    gradients corrected at the few nodes where a player moves the logits by more than `tolerance`; with 0, at all
    nodes it reaches, which is exact. On a GPU as many runs are valued together as the budget holds, so that a kernel
    is launched once for all of them. Where memory runs out, pieces of half the size are tried.
    """

    operator: Operator
    logits: Tensor  # float32 [R, N, C], the teacher's, calibrated
    known: Tensor  # bool [R, N], labelled or adopted
    nodes: Tensor  # long [R, K], the players
    open: Tensor  # bool [R, N], nodes whose predictions count
    normalise: Reading
    tolerance: float
    budget: int  # bytes in use at once, and for the columns [N, K] of runs valued together; one's may take more
    seeds: tuple[int, ...] = ()  # of the nodes that stand for others on a large graph, one per run
    made: dict[Any, Any] = field(default_factory=dict, repr=False)  # what ranks have made together: base, pairs by run

    @classmethod
    def of(
        cls,
        operator: Operator,
        logits: Tensor,
        known: Tensor,
        players: Tensor,
        *,
        open: Tensor | None = None,
        normalise: Reading = "none",
        tolerance: float = 0.3,
        budget: int = 512 * 2**20,
        seeds: tuple[int, ...] = (),
    ) -> "Information":
        """The game of the nodes `players` long [R, K]; `open` bool [R, N] defaults to all that are not known."""
        open = ~known if open is None else open
        if players.numel() == 0:
            raise InvalidInput("the game has no players; it needs at least 1 candidate node in every run")
        if not bool((counts := open.any(1)).all()):
            run = int((~counts).nonzero()[0])
            raise InvalidInput(f"run {run} has no open node, so no prediction counts; leave 1 or more unlabelled")
        if bool((joined := known.gather(1, players)).any()):
            run = int(joined.any(1).nonzero()[0])
            raise InvalidInput(f"run {run} has a player that is already known; candidates must be unlabelled")
        if not tolerance >= 0:
            raise InvalidInput(f"Information.tolerance must be at least 0, which is exact, got {tolerance}")
        return cls(operator, logits.float(), known, players, open, normalise, tolerance, budget, seeds)

    @property
    def runs(self) -> int:
        return self.nodes.shape[0]

    @property
    def players(self) -> int:
        return self.nodes.shape[1]

    @property
    def device(self) -> torch.device:
        return self.logits.device

    @property
    def room(self) -> int:
        """For so many pairs of a player and a node."""
        return self.budget // PAIR

    @property
    def together(self) -> int:
        """How many runs are valued at once: as many as have room for their columns and a coalition."""
        if hasattr(self.operator, "pairs"):
            return 1
        each = self.logits.shape[1] * (COLUMN * self.players + NUMBER * self.width)
        return max(1, min(MOST.get(self.device.type, self.runs), self.budget // each))

    @_within_memory
    def __call__(self, members: Tensor) -> Tensor:
        """U of coalitions [R, B, K], members to any degree in [0, 1]: float64 [R, B]."""
        worths = []
        for runs in slices(self.runs, self.together):
            reach = self._reach(runs)
            size = min(WIDTH, self.budget // (16 * reach.brought.numel()))
            worths.append(torch.cat([reach.worth(part, self.budget) for part in split(members[runs], size)], dim=1))
        return torch.cat(worths)

    @_within_memory
    def marginals(self, members: Tensor) -> Tensor:
        """U(S ∪ i) − U(S∖i) of coalitions bool [R, B, K]: float32 [R, B, K].

        When a player moves p_j to q_j and thereby p̄ to q̄, U becomes mean_j KL(q_j ‖ p̄) − KL(q̄ ‖ p̄): a sum over the
        nodes the player moves, taken as it is where the player is near and by the gradient elsewhere.
        """
        changes = []
        for runs in slices(self.runs, self.together):
            reach = self._reach(runs)
            near = reach.near(self.tolerance)
            parts = split(members[runs], reach.breadth(self.budget))
            changes.append(torch.cat([reach.marginals(part, near, self.budget) for part in parts], dim=1))
        return torch.cat(changes)

    def stderr(self, members: Tensor) -> Tensor:
        """The standard error of U where a sample of nodes stands for all, of coalitions [R, B, K]: float64 [R, B]."""
        return torch.cat([self._reach(runs).stderr(members[runs]) for runs in slices(self.runs, self.together)])

    @_within_memory
    def gradient(self, members: Tensor) -> Tensor:
        """∂U/∂mᵢ at memberships [R, B, K]: float32 [R, B, K], without any player's column.

        = xᵢ · (Pᵀ G)ᵢ with G = ∂U/∂Ĥ, G_jc = p_jc (log p_jc/p̄_c − KL(p_j ‖ p̄)) / |open|.
        """
        open, count = self.open[..., None].float(), self.open.sum(1)[:, None, None]
        runs = torch.arange(self.runs, device=self.device)[:, None]
        brought = self._signal[runs, self.nodes][..., None]
        slopes = []
        for part in split(members, self.budget // (40 * self._signal.numel())):
            slope = Forecast.of(self._spread(part), self.normalise, count, open=open).slope
            D, R, N, b = slope.shape
            back = _widely(self.operator.adjoint, slope.permute(2, 1, 0, 3).reshape(N, R * D * b))
            back = back.reshape(N, R, D, b)
            slopes.append((back[self.nodes, runs] * brought).sum(2).transpose(1, 2) / count)
        return torch.cat(slopes, dim=1)

    @cached_property
    def _signal(self) -> Tensor:
        """What is propagated [R, N, D]: the logits, and a one behind them if mass is counted."""
        if self.normalise == "none":
            return self.logits
        return torch.cat([self.logits, torch.ones_like(self.logits[..., :1])], dim=2)

    @cached_property
    def _base(self) -> Tensor:
        """P X̂(∅): [D, R, N]."""
        if "base" in self.made:
            made: Tensor = self.made["base"]
            return made
        if hasattr(self.operator, "pairs"):
            return self.heard(range(self.width * self.runs)).view(self.width, self.runs, -1)
        return self._spread(torch.zeros(self.runs, 1, self.players, device=self.device))[..., 0]

    @property
    def width(self) -> int:
        """D, the numbers propagated for a node: its logits, and a one if mass is counted."""
        return self.logits.shape[2] + (self.normalise == "mass")

    def heard(self, columns: Sequence[int]) -> Tensor:
        """P X̂(∅) in some of its columns, d R + r for number d of run r: [columns, N]; as many at once as fit."""
        nodes = self.logits.shape[1]
        base = torch.empty(len(columns), nodes, device=self.device)
        for part in slices(len(columns), self.budget // (16 * nodes)):
            base[part] = self.operator(torch.stack([self._known_column(own) for own in columns[part]], dim=1)).T
        return base

    def _known_column(self, column: int) -> Tensor:
        number, run = divmod(column, self.runs)
        known = self.known[run].float()
        return known if number == self.logits.shape[2] else known * self.logits[run, :, number]

    def _brought(self, runs: slice) -> Tensor:
        """What the players of some runs bring: [g, K, D]."""
        nodes = self.nodes[runs]
        own = self.logits[runs].gather(1, nodes[..., None].expand(-1, -1, self.logits.shape[2]))
        return own if self.normalise == "none" else torch.cat([own, torch.ones_like(own[..., :1])], dim=2)

    def _spread(self, members: Tensor) -> Tensor:
        """P X̂(S) at memberships [R, b, K]: [D, R, N, b], classes before nodes for a fast softmax."""
        (R, b, K), (N, D) = members.shape, self._signal.shape[1:]
        degree = self.known.float()[..., None].repeat(1, 1, b)
        degree.scatter_(1, self.nodes[..., None].expand(R, K, b), members.float().transpose(1, 2))
        signal = (self._signal[..., None] * degree[:, :, None]).movedim(0, 1)
        arrived = _widely(self.operator, signal.reshape(N, R * D * b)).reshape(N, R, D, b)
        return arrived.permute(2, 1, 0, 3).contiguous()

    def _reach(self, runs: slice) -> Reach:
        """The nodes that the players of some runs can change."""
        base, brought, open = self._base[:, runs], self._brought(runs), self.open[runs]
        pairs = getattr(self.operator, "pairs", None)
        if pairs is None:
            return dense_reach(self.operator, self.nodes[runs], base, brought, open, self.normalise)
        run = runs.start  # alone
        found: Pairs = self.made.get(run) or pairs(self.nodes[run], self.room)
        return sparse_reach(
            found.to(self.device),
            base[:, 0],
            brought[0],
            open[0],
            self.normalise,
            self.tolerance,
            self.budget // (ROW * self.width),
            torch.Generator().manual_seed(self.seeds[run] if self.seeds else 0),
        )


@dataclass(frozen=True, eq=False)
class PlainInformation:
    """The slow twin of `Information`: one propagation per coalition, in float64 from there on."""

    operator: Operator
    logits: Tensor  # float [R, N, C]
    known: Tensor  # bool [R, N]
    nodes: Tensor  # long [R, K]
    open: Tensor  # bool [R, N]
    normalise: Reading = "none"

    @property
    def runs(self) -> int:
        return self.nodes.shape[0]

    @property
    def players(self) -> int:
        return self.nodes.shape[1]

    @property
    def device(self) -> torch.device:
        return self.logits.device

    def __call__(self, members: Tensor) -> Tensor:
        """U of coalitions bool [R, B, K]: float64 [R, B]."""
        rows = [[self._worth(run, coalition) for coalition in members[run]] for run in range(self.runs)]
        return torch.stack([torch.stack(row) for row in rows])

    def _worth(self, run: int, members: Tensor) -> Tensor:
        seen = self.known[run].clone()
        seen[self.nodes[run, members]] = True
        h = self.operator(self.logits[run] * seen[:, None]).double()
        if self.normalise == "mass":
            h = h / self.operator(seen[:, None].float()).double().clamp(min=TINY)
        p = h[self.open[run]].softmax(1)
        mean = p.mean(0)
        return torch.xlogy(p, p).sum(1).mean() - torch.xlogy(mean, mean).sum()


def _widely(operate: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The product [N, M]; a processor multiplies few columns faster if they are padded to a multiple of eight."""
    columns = x.shape[1]
    if columns % 8 == 0 or columns > 32 or x.device.type != "cpu":
        return operate(x)
    return operate(torch.nn.functional.pad(x, (0, -columns % 8)))[:, :columns]
