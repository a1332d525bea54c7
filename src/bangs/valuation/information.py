"""The information game: the utility of adopting a set of candidate nodes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps

import torch
from torch import Tensor

from bangs.distributed import ranks
from bangs.errors import InvalidInput, OutOfMemory, ran_out_of_memory
from bangs.graphs.pagerank import Operator
from bangs.graphs.pagerank_push import Pairs
from bangs.valuation.dense_influence import COLUMN_BYTES, dense_influence
from bangs.valuation.influence import NUMBER_BYTES, Forecast, Influence, Normalisation, slices
from bangs.valuation.sparse_influence import PAIR_BYTES, ROW_BYTES, sparse_influence

RUNS_AT_ONCE = {"cpu": 1}  # runs evaluated together, by device; a GPU takes as many as fit
COALITIONS_AT_ONCE = 128  # coalitions whose utility is computed together
MIN_BUDGET = 2**16  # bytes; with less the game raises `OutOfMemory`

GameFunction = Callable[["Information", Tensor], Tensor]


def _within_memory(compute: GameFunction) -> GameFunction:
    """The same function, called again with half the budget while memory runs out."""

    @wraps(compute)
    def call(game: "Information", members: Tensor) -> Tensor:
        try:
            return compute(game, members)
        except Exception as error:
            if not ran_out_of_memory(error):
                raise
            if game.budget < MIN_BUDGET:
                raise OutOfMemory(
                    f"memory ran out over the game of {game.players} candidates on {game.known.shape[1]} nodes, even "
                    f"in pieces of {game.budget:,} bytes, down to which Banzhaf.budget was halved; "
                    "lower candidates, run fewer seeds at once, or use a device with more memory"
                ) from error
        # outside the except block, where the error no longer holds tensors
        return call(replace(game, budget=game.budget // 2), members)

    return call


def _shared_by_ranks(compute: GameFunction) -> GameFunction:
    """The same function; of a shared game each rank computes its shard of the coalitions, and all get their sum."""

    @wraps(compute)
    def call(game: "Information", members: Tensor) -> Tensor:
        if not game.shared:
            return compute(game, members)
        shard = torch.tensor(ranks.shard(members.shape[1]), dtype=torch.long, device=members.device)
        # a rank without a coalition computes one too, for its shape
        own = compute(game, members[:, shard] if len(shard) else members[:, :1])
        result = own.new_zeros(len(own), members.shape[1], *own.shape[2:])
        result[:, shard] = own[:, : len(shard)]
        return ranks.all_reduce(result)

    return call


@dataclass(frozen=True, eq=False)
class Information:
    """How confident and how diverse the student's predictions would be if a coalition of players were adopted.

    Ĥ(S) = P X̂(S), row j of X̂(S) being the teacher's calibrated logits if j is known or in S, else 0; with
    p_j = softmax(Ĥ_j(S)) over the open nodes j and p̄ = mean_j p_j, U(S) = H(p̄) − mean_j H(p_j) = mean_j KL(p_j ‖ p̄).
    `normalise="mass"` divides row j of Ĥ(S) by the share of P's row that falls on nodes with logits.

    P is linear, Ĥ(S) = Ĥ(∅) + Σ_{i∈S} P[:, i] xᵢᵀ. So utilities need Ĥ(∅) and the players' columns only once, and only
    the nodes that some player reaches. Gradients need one product with P and one with Pᵀ. Marginals are gradients,
    corrected at the few nodes where a player changes the logits by more than `tolerance`; with 0 at all nodes it
    reaches, which is exact. A GPU evaluates as many runs together as the budget allows. If memory runs out, chunks of
    half the size are tried.
    """

    operator: Operator
    logits: Tensor  # float32 [R, N, C], the teacher's, calibrated
    known: Tensor  # bool [R, N], labelled or adopted
    nodes: Tensor  # long [R, K], the players
    open: Tensor  # bool [R, N], nodes whose predictions count
    normalise: Normalisation
    tolerance: float
    budget: int  # bytes; for the columns [N, K] of one run it may be exceeded
    seeds: tuple[int, ...] = ()  # for the sampled nodes on a large graph, one per run
    shared: bool = False  # whether all ranks compute the coalitions together, see `distributed_information`
    shared_base: Tensor | None = None  # P X̂(∅) [D, R, N], where several ranks have computed it together
    shared_pairs: tuple[Pairs, ...] = ()  # the players' columns of every run, computed in the same way

    @classmethod
    def of(
        cls,
        operator: Operator,
        logits: Tensor,
        known: Tensor,
        players: Tensor,
        *,
        open: Tensor | None = None,
        normalise: Normalisation = "none",
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
        if bool((taken := known.gather(1, players)).any()):
            run = int(taken.any(1).nonzero()[0])
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
    def max_pairs(self) -> int:
        """The number of pairs of a player and a node that fit the budget."""
        return self.budget // PAIR_BYTES

    @property
    def runs_at_once(self) -> int:
        """The number of runs evaluated at once: as many as fit the budget with their columns and one coalition."""
        if hasattr(self.operator, "pairs"):
            return 1
        run_bytes = self.logits.shape[1] * (COLUMN_BYTES * self.players + NUMBER_BYTES * self.width)
        return max(1, min(RUNS_AT_ONCE.get(self.device.type, self.runs), self.budget // run_bytes))

    @_shared_by_ranks
    @_within_memory
    def __call__(self, members: Tensor) -> Tensor:
        """U of coalitions [R, B, K], members to any degree in [0, 1]: float64 [R, B]."""
        worths = []
        for runs in slices(self.runs, self.runs_at_once):
            influence = self._influence(runs)
            size = min(COALITIONS_AT_ONCE, self.budget // (16 * influence.player_signals.numel()))
            parts = members[runs].split(max(1, size), dim=1)
            worths.append(torch.cat([influence.worth(part, self.budget) for part in parts], dim=1))
        return torch.cat(worths)

    @_shared_by_ranks
    @_within_memory
    def marginals(self, members: Tensor) -> Tensor:
        """U(S ∪ i) − U(S∖i) of coalitions bool [R, B, K]: float32 [R, B, K].

        When a player moves p_j to q_j and thereby p̄ to q̄, U becomes mean_j KL(q_j ‖ p̄) − KL(q̄ ‖ p̄): a sum over the
        nodes that the player reaches, exact at strong pairs and by the gradient elsewhere.
        """
        changes = []
        for runs in slices(self.runs, self.runs_at_once):
            influence = self._influence(runs)
            strong_pairs = influence.strong_pairs(self.tolerance)
            parts = members[runs].split(max(1, influence.coalitions_at_once(self.budget)), dim=1)
            changes.append(torch.cat([influence.marginals(part, strong_pairs, self.budget) for part in parts], dim=1))
        return torch.cat(changes)

    @_shared_by_ranks
    @_within_memory
    def gradient(self, members: Tensor) -> Tensor:
        """∂U/∂mᵢ at memberships [R, B, K]: float32 [R, B, K], without the players' columns.

        = xᵢ · (Pᵀ G)ᵢ with G = ∂U/∂Ĥ, G_jc = p_jc (log p_jc/p̄_c − KL(p_j ‖ p̄)) / |open|.
        """
        open, count = self.open[..., None].float(), self.open.sum(1)[:, None, None]
        runs = torch.arange(self.runs, device=self.device)[:, None]
        player_signals = self._signal[runs, self.nodes][..., None]
        slopes = []
        for part in members.split(max(1, self.budget // (40 * self._signal.numel())), dim=1):
            slope = Forecast.of(self._propagate(part), self.normalise, count, open=open).slope
            D, R, N, b = slope.shape
            back = _padded(self.operator.adjoint, slope.permute(2, 1, 0, 3).reshape(N, R * D * b))
            back = back.reshape(N, R, D, b)
            slopes.append((back[self.nodes, runs] * player_signals).sum(2).transpose(1, 2) / count)
        return torch.cat(slopes, dim=1)

    @cached_property
    def _signal(self) -> Tensor:
        """The signal that is propagated [R, N, D]: the logits, followed by a 1 if mass is counted."""
        if self.normalise == "none":
            return self.logits
        return torch.cat([self.logits, torch.ones_like(self.logits[..., :1])], dim=2)

    @cached_property
    def _base(self) -> Tensor:
        """P X̂(∅): [D, R, N]."""
        if self.shared_base is not None:
            return self.shared_base
        if hasattr(self.operator, "pairs"):
            return self.propagate_known(range(self.width * self.runs)).view(self.width, self.runs, -1)
        return self._propagate(torch.zeros(self.runs, 1, self.players, device=self.device))[..., 0]

    @property
    def width(self) -> int:
        """D, the width of the signal: the logits, and a 1 if mass is counted."""
        return self.logits.shape[2] + (self.normalise == "mass")

    def propagate_known(self, columns: Sequence[int]) -> Tensor:
        """Some columns of P X̂(∅), d R + r for column d of run r: [columns, N]; as many at once as fit the budget."""
        nodes = self.logits.shape[1]
        base = torch.empty(len(columns), nodes, device=self.device)
        for part in slices(len(columns), self.budget // (16 * nodes)):
            base[part] = self.operator(torch.stack([self._known_column(column) for column in columns[part]], dim=1)).T
        return base

    def _known_column(self, column: int) -> Tensor:
        number, run = divmod(column, self.runs)
        known = self.known[run].float()
        return known if number == self.logits.shape[2] else known * self.logits[run, :, number]

    def _player_signals(self, runs: slice) -> Tensor:
        """The signals of the players of some runs: [g, K, D]."""
        nodes = self.nodes[runs]
        logits = self.logits[runs].gather(1, nodes[..., None].expand(-1, -1, self.logits.shape[2]))
        return logits if self.normalise == "none" else torch.cat([logits, torch.ones_like(logits[..., :1])], dim=2)

    def _propagate(self, members: Tensor) -> Tensor:
        """P X̂(S) at memberships [R, b, K]: [D, R, N, b], with classes first for a fast softmax."""
        (R, b, K), (N, D) = members.shape, self._signal.shape[1:]
        degree = self.known.float()[..., None].repeat(1, 1, b)
        degree.scatter_(1, self.nodes[..., None].expand(R, K, b), members.float().transpose(1, 2))
        signal = (self._signal[..., None] * degree[:, :, None]).movedim(0, 1)
        propagated = _padded(self.operator, signal.reshape(N, R * D * b)).reshape(N, R, D, b)
        return propagated.permute(2, 1, 0, 3).contiguous()

    def _influence(self, runs: slice) -> Influence:
        """The influence of the players of some runs."""
        base, player_signals, open = self._base[:, runs], self._player_signals(runs), self.open[runs]
        find_pairs = getattr(self.operator, "pairs", None)
        if find_pairs is None:
            return dense_influence(self.operator, self.nodes[runs], base, player_signals, open, self.normalise)
        run = runs.start  # a single run
        pairs: Pairs = self.shared_pairs[run] if self.shared_pairs else find_pairs(self.nodes[run], self.max_pairs)
        return sparse_influence(
            pairs.to(self.device),
            base[:, 0],
            player_signals[0],
            open[0],
            self.normalise,
            self.tolerance,
            self.budget // (ROW_BYTES * self.width),
            torch.Generator().manual_seed(self.seeds[run] if self.seeds else 0),
        )


def _padded(operate: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The product [N, M]; on a CPU few columns are padded to a multiple of 8, which is faster."""
    columns = x.shape[1]
    if columns % 8 == 0 or columns > 32 or x.device.type != "cpu":
        return operate(x)
    return operate(torch.nn.functional.pad(x, (0, -columns % 8)))[:, :columns]
