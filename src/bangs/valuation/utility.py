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
from bangs.valuation.columns import Whole
from bangs.valuation.reach import TILE, TINY, Look, Normalise, Reach, read, slices, split
from bangs.valuation.scattering import PAIR, ROW, scattered

COLUMNS = 64  # players whose columns a processor propagates together; a GPU takes all
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
    nodes it reaches, which is exact. Where memory runs out, pieces of half the size are tried.
    """

    operator: Operator
    logits: Tensor  # float32 [R, N, C], the teacher's, calibrated
    known: Tensor  # bool [R, N], labelled or adopted
    nodes: Tensor  # long [R, K], the players
    open: Tensor  # bool [R, N], nodes whose predictions count
    normalise: Normalise
    tolerance: float
    budget: int  # bytes in use at once, beside one run's columns [N, K]
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
        normalise: Normalise = "none",
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

    @_within_memory
    def __call__(self, members: Tensor) -> Tensor:
        """U of coalitions [R, B, K], members to any degree in [0, 1]: float64 [R, B]."""
        worths = []
        for run in range(self.runs):
            reach = self._reach(run)
            size = min(WIDTH, self.budget // (16 * reach.brought.numel()))
            worths.append(torch.cat([reach.worth(part, self.budget) for part in split(members[run], size)]))
        return torch.stack(worths)

    @_within_memory
    def marginals(self, members: Tensor) -> Tensor:
        """U(S ∪ i) − U(S∖i) of coalitions bool [R, B, K]: float32 [R, B, K].

        When a player moves p_j to q_j and thereby p̄ to q̄, U becomes mean_j KL(q_j ‖ p̄) − KL(q̄ ‖ p̄): a sum over the
        nodes the player moves, taken as it is where the player is near and by the gradient elsewhere.
        """
        changes = []
        for run in range(self.runs):
            reach = self._reach(run)
            near = reach.near(self.tolerance)
            field = max(1, reach.base.numel())
            size = min(max(8, 4 * TILE // field), self.budget // (32 * field))
            changes.append(torch.cat([reach.marginals(part, near, self.budget) for part in split(members[run], size)]))
        return torch.stack(changes)

    def stderr(self, members: Tensor) -> Tensor:
        """The standard error of U where a sample of nodes stands for all, of coalitions [R, B, K]: float64 [R, B]."""
        return torch.stack([self._reach(run).stderr(own) for run, own in enumerate(members)])

    @_within_memory
    def gradient(self, members: Tensor) -> Tensor:
        """∂U/∂mᵢ at memberships [R, B, K]: float32 [R, B, K], without any player's column.

        = xᵢ · (Pᵀ G)ᵢ with G = ∂U/∂Ĥ, G_jc = p_jc (log p_jc/p̄_c − KL(p_j ‖ p̄)) / |open|.
        """
        open, count = self.open[..., None].float(), self.open.sum(1)[:, None, None]
        runs = torch.arange(self.runs, device=self.device)[:, None]
        brought = self._signal[runs, self.nodes][..., None]
        slopes = []
        for part in split(members.transpose(0, 1), self.budget // (40 * self._signal.numel())):
            slope = Look.of(self._spread(part.transpose(0, 1)), self.normalise, count, open=open).slope
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

    def _brought(self, run: int) -> Tensor:
        """What the players of a run bring: [K, D]."""
        own = self.logits[run, self.nodes[run]]
        return own if self.normalise == "none" else torch.cat([own, torch.ones_like(own[:, :1])], dim=1)

    def _spread(self, members: Tensor) -> Tensor:
        """P X̂(S) at memberships [R, b, K]: [D, R, N, b], classes before nodes for a fast softmax."""
        (R, b, K), (N, D) = members.shape, self._signal.shape[1:]
        degree = self.known.float()[..., None].repeat(1, 1, b)
        degree.scatter_(1, self.nodes[..., None].expand(R, K, b), members.float().transpose(1, 2))
        signal = (self._signal[..., None] * degree[:, :, None]).movedim(0, 1)
        arrived = _widely(self.operator, signal.reshape(N, R * D * b)).reshape(N, R, D, b)
        return arrived.permute(2, 1, 0, 3).contiguous()

    def _reach(self, run: int) -> "Reach":
        """The nodes that the players of a run can change."""
        pairs = getattr(self.operator, "pairs", None)
        if pairs is not None:
            found: Pairs = self.made.get(run) or pairs(self.nodes[run], self.room)
            number = self.seeds[run] if self.seeds else 0
            return scattered(
                found.to(self.device),
                self._base[:, run],
                self._brought(run),
                self.open[run],
                self.normalise,
                self.tolerance,
                self.budget // (ROW * self.width),
                torch.Generator().manual_seed(number),
            )
        width = COLUMNS if self.device.type == "cpu" else self.players
        chunks = [self.operator.columns(nodes) for nodes in self.nodes[run].split(width)]
        reached = torch.stack([chunk.amax(1) for chunk in chunks]).amax(0) > 0
        rows = (reached & self.open[run]).nonzero().squeeze(1)
        p = read(self._base[:, run, ~reached & self.open[run]], self.normalise).softmax(0)
        return Reach(
            columns=Whole(torch.cat([chunk.index_select(0, rows) for chunk in chunks], dim=1)),
            base=self._base[:, run, rows],
            brought=self._brought(run),
            total=p.double().sum(1),
            certainty=torch.xlogy(p, p).double().sum(),
            count=int(self.open[run].sum()),
            normalise=self.normalise,
        )


@dataclass(frozen=True, eq=False)
class PlainInformation:
    """The slow twin of `Information`: one propagation per coalition, in float64 from there on."""

    operator: Operator
    logits: Tensor  # float [R, N, C]
    known: Tensor  # bool [R, N]
    nodes: Tensor  # long [R, K]
    open: Tensor  # bool [R, N]
    normalise: Normalise = "none"

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
