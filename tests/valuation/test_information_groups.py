"""Runs evaluated together equal runs evaluated one by one."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.data import Data

from bangs.graphs.pagerank import PPR
from bangs.valuation import banzhaf, coalitions, dense_influence, influence, information
from bangs.valuation.banzhaf import Marginals
from bangs.valuation.influence import Normalisation
from bangs.valuation.information import Information
from tests.conftest import generators
from tests.valuation.plain_information import PlainInformation

RING, ALONE, CLASSES = 60, 12, 4  # nodes on a ring with chords, nodes without a neighbour
ROUNDING = (
    1e-6  # float32 sums over nodes are grouped otherwise in a batch; entropies, of which all is made, are below 2
)


@pytest.fixture(autouse=True)
def _as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many runs together as fit the budget."""
    monkeypatch.setattr(information, "RUNS_AT_ONCE", {})


def ring_game(runs: int = 4, **settings: Any) -> Information:
    """Six players a run: on the ring; without a neighbour; one on the ring and five without; far from unlabelled nodes.

    Further runs are all on the ring.
    """
    random = torch.Generator().manual_seed(7)
    source = torch.arange(RING)
    edges = torch.cat([torch.stack([source, (source + step) % RING]) for step in (1, 5)], dim=1)
    graph = Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=RING + ALONE)
    logits = 3 * torch.randn(runs, RING + ALONE, CLASSES, generator=random)
    players = torch.stack([torch.randperm(RING, generator=random)[:6] for _ in range(runs)])
    players[1], players[2, 1:] = torch.arange(RING, RING + 6), torch.arange(RING + 2, RING + 7)
    known = torch.zeros(runs, RING + ALONE, dtype=torch.bool)
    known[:, ::9] = True
    known.scatter_(1, players, False)
    open = ~known
    if runs > 3:
        players[3] = torch.arange(RING, RING + 6)
        known[3, RING : RING + 6] = open[3, RING : RING + 6] = False
    return Information.of(PPR(steps=3)(graph), logits, known, players, open=open, **settings)


def of_runs(game: Information, *runs: int) -> Information:
    """The game of some of the runs, one of them perhaps twice."""
    return replace(game, **{name: getattr(game, name)[list(runs)] for name in ("logits", "known", "nodes", "open")})


def plain(game: Information) -> PlainInformation:
    return PlainInformation(game.operator, game.logits, game.known, game.nodes, game.open, game.normalise)


def some(game: Information, count: int = 5) -> Tensor:
    return coalitions.draw(game.players, 4, count, generators(*range(game.runs)))


@pytest.mark.parametrize("tolerance", [0.0, 0.3])
@pytest.mark.parametrize("normalise", ["none", "mass"])
def test_a_run_among_others_is_what_it_is_alone(normalise: Normalisation, tolerance: float) -> None:
    game = ring_game(normalise=normalise, tolerance=tolerance)
    members = some(game)
    assert game.runs_at_once == game.runs
    alone = [(of_runs(game, run), members[run : run + 1]) for run in range(game.runs)]
    torch.testing.assert_close(
        game(members), torch.cat([one(run_members) for one, run_members in alone]), atol=ROUNDING, rtol=0
    )
    changes = torch.cat([one.marginals(run_members) for one, run_members in alone])
    torch.testing.assert_close(game.marginals(members), changes, atol=ROUNDING, rtol=0)


@pytest.mark.parametrize("normalise", ["none", "mass"])
def test_runs_together_are_exact_without_tolerance(normalise: Normalisation) -> None:
    game = ring_game(normalise=normalise, tolerance=0)
    members = some(game)
    torch.testing.assert_close(game(members), plain(game)(members), atol=ROUNDING, rtol=0)
    flips = banzhaf.marginals(plain(game), members)
    torch.testing.assert_close(game.marginals(members).double(), flips, atol=ROUNDING, rtol=0)


def test_runs_are_filled_up_by_nodes_that_weigh_nothing() -> None:
    game = ring_game()
    together = game._influence(slice(0, 4))
    sizes = [len(of_runs(game, run)._influence(slice(0, 1)).columns) for run in range(4)]
    assert sizes[0] > sizes[2] > sizes[1] == 6 > sizes[3] == 0
    assert len(together.columns) == sizes[0]
    assert together.weight is not None
    assert together.weight.sum(1).tolist() == sizes
    assert isinstance(together.columns, dense_influence.DenseColumns)
    assert not together.columns.matrix[together.weight == 0].any()
    node, player = (getattr(together.strong_pairs(0.0), name) for name in ("node", "player"))
    assert bool((together.weight.flatten()[node] == 1).all())
    assert torch.equal(node // sizes[0], player // 6)  # a player is near to nodes of its own run


def test_players_that_reach_no_node_make_a_valid_group() -> None:
    twice = of_runs(ring_game(), 3, 3)
    members = some(twice)
    assert torch.equal(twice.marginals(members), torch.zeros(2, 5, 6))
    torch.testing.assert_close(twice(members), plain(twice)(members), atol=ROUNDING, rtol=0)


def test_the_budget_bounds_the_runs_that_are_valued_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs' columns and a coalition of each are so many bytes: the fifth run is alone."""
    numbers = (RING + ALONE) * (dense_influence.COLUMN_BYTES * 6 + influence.NUMBER_BYTES * CLASSES)
    game, groups, real = ring_game(5), [], information.dense_influence

    def watched(operator: Any, nodes: Tensor, *rest: Any) -> influence.Influence:
        groups.append(len(nodes))
        return real(operator, nodes, *rest)

    monkeypatch.setattr(information, "dense_influence", watched)
    members = some(game)
    for budget, sizes in ((5 * numbers, [5]), (3 * numbers - 1, [2, 2, 1]), (1, [1] * 5)):
        groups.clear()
        torch.testing.assert_close(replace(game, budget=budget)(members), game(members), atol=ROUNDING, rtol=0)
        assert groups[:-1] == sizes  # the last one is the whole game's
    monkeypatch.setattr(information, "RUNS_AT_ONCE", {"cpu": 1})
    assert game.runs_at_once == 1


@pytest.mark.parametrize("ask", ["__call__", "marginals"])
def test_a_group_that_runs_out_of_memory_is_halved(ask: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were room for the columns of three runs."""
    game, groups, real = ring_game(5), [], information.dense_influence
    members = some(game)
    answer = getattr(game, ask)(members)

    def out_of_memory(operator: Any, nodes: Tensor, *rest: Any) -> influence.Influence:
        groups.append(len(nodes))
        if len(nodes) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return real(operator, nodes, *rest)

    monkeypatch.setattr(information, "dense_influence", out_of_memory)
    torch.testing.assert_close(getattr(game, ask)(members), answer, atol=ROUNDING, rtol=0)
    tried = groups.index(next(size for size in groups if size <= 3))
    assert set(groups[:tried]) <= {5, 4}
    assert sum(groups[tried:]) == 5


class Operations(TorchDispatchMode):
    """How often every operation of torch is called."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[str(func)] += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("normalise", ["none", "mass"])
def test_more_runs_are_no_more_operations(normalise: Normalisation) -> None:
    """What a GPU waits for is its launches; the numbers drawn for a run, two each, are all that grows."""
    results = []
    for runs in (9, 12):  # products of fewer columns take another way on a processor
        game, random = ring_game(runs, normalise=normalise), generators(*range(runs))
        with Operations() as operations:
            Marginals(8)(game, 4, random)
            game(some(game, 3))
        results.append(operations.counts)
    assert results[1] - results[0] == Counter({"aten.rand.generator": 3 * 4})
