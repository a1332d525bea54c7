"""The Banzhaf score: its candidates, its values and its random numbers."""

from dataclasses import replace

import pytest
import torch

from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Round, Task
from bangs.errors import InvalidInput
from bangs.graphs.pagerank import PPR, Propagator
from bangs.graphs.pagerank_push import Push
from bangs.selection.scores import Alone, Banzhaf
from bangs.valuation.banzhaf import MSR, Estimator, Exact, Marginals, MeanField, Values
from bangs.valuation.influence import Normalisation
from tests.valuation.plain_information import PlainInformation

SEEDS = (1, 2, 3)


@pytest.fixture
def round(task: Task) -> Round:
    """Three runs with 14, 4 and no nodes in their pools; the second has adopted two of the others."""
    prediction = Prediction(3 * torch.randn(3, 24, 2, generator=torch.Generator().manual_seed(0)))
    pool = ~task.given.known & ~task.held
    pool[1, 14:] = False
    pool[2] = False
    adopted = torch.zeros_like(pool)
    adopted[1, [17, 20]] = True
    labels = task.given.adopt(adopted, prediction.label, 1.0, 1)
    return Round(2, task, labels, prediction, prediction, pool, None, Streams(SEEDS))


def only(round: Round, run: int) -> Round:
    """The round of one run."""
    prediction = Prediction(round.prediction.logits[[run]])
    task, pool = round.task.only([run]), round.pool[[run]]
    labels = Labels(round.labels.target[[run]], round.labels.weight[[run]], round.labels.adopted_round[[run]])
    rng = Streams(SEEDS[run : run + 1])
    return replace(round, task=task, labels=labels, raw=prediction, prediction=prediction, pool=pool, rng=rng)


def most_confident(round: Round, run: int, count: int) -> list[int]:
    nodes = round.pool[run].nonzero().squeeze(1).tolist()
    return sorted(nodes, key=lambda node: -float(round.prediction.confidence[run, node]))[:count]


@pytest.mark.parametrize("normalise", ["none", "mass"])
def test_the_most_confident_nodes_of_a_pool_play_the_game_of_its_definition(
    round: Round, normalise: Normalisation
) -> None:
    score = Banzhaf(k=2, candidates=6, estimate=Exact(), normalise=normalise)(round).score
    for run, count in ((0, 6), (1, 4), (2, 0)):
        players = most_confident(round, run, 6)
        assert sorted((score[run] > -torch.inf).nonzero().squeeze(1).tolist()) == sorted(players)
        assert len(players) == count
        if players:
            known, nodes = round.labels.known[[run]], torch.tensor([players])
            logits = round.prediction.logits[[run]]
            game = PlainInformation(PPR()(round.graph), logits, known, nodes, ~known, normalise)
            torch.testing.assert_close(score[run, players].double(), Exact()(game, 2).mean[0], atol=1e-6, rtol=1e-4)


SAMPLED = (Push(error=1e-3), 5600)  # bytes for seven nodes, of more that are reached


@pytest.mark.parametrize(("propagate", "budget"), [(PPR(), 2**29), SAMPLED], ids=["whole", "sampled"])
def test_a_run_alone_equals_the_run_in_a_batch(round: Round, propagate: Propagator, budget: int) -> None:
    score = Banzhaf(k=2, candidates=6, estimate=Marginals(3), propagate=propagate, budget=budget)
    together = score(round)
    for run in range(3):
        alone = score(only(round, run))
        torch.testing.assert_close(alone.score[0], together.score[run])
        if run < 2:
            torch.testing.assert_close(alone.stderr[0], together.stderr[run], equal_nan=True)


def test_nodes_that_stand_for_others_are_drawn_by_the_runs_own_seed(round: Round) -> None:
    score = Banzhaf(k=2, candidates=6, estimate=Exact(), propagate=SAMPLED[0], budget=SAMPLED[1])
    first, again, other = (score(replace(only(round, 0), rng=Streams((seed,)))).score for seed in (1, 1, 3))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_only_the_candidates_are_valued(round: Round) -> None:
    """A larger K lets more nodes play, whose values then differ."""
    few, many = (Banzhaf(k=2, candidates=count, estimate=Exact())(round).score[0] for count in (4, 8))
    assert [int((score > -torch.inf).sum()) for score in (few, many)] == [4, 8]
    assert (few[few > -torch.inf] != many[few > -torch.inf]).all()


def test_all_candidates_may_be_chosen(round: Round) -> None:
    score = Banzhaf(k=4, candidates=4, estimate=Exact())(round).score
    assert [int((run_score > -torch.inf).sum()) for run_score in score] == [4, 4, 0]


def test_standard_errors_are_returned_if_the_estimator_has_them(round: Round) -> None:
    assert Banzhaf(k=2, candidates=6, estimate=MeanField())(round).stderr is None
    actual = Banzhaf(k=2, candidates=6, estimate=MSR(400))(round)
    assert torch.equal(actual.stderr.isfinite(), actual.score > -torch.inf)
    assert actual.evaluations == 400


def test_without_banzhaf_a_candidate_has_its_utility_by_itself(round: Round) -> None:
    actual = Banzhaf(k=2, candidates=6, estimate=Alone())(only(round, 0))
    players = most_confident(round, 0, 6)
    known, nodes = round.labels.known[[0]], torch.tensor([players])
    game = PlainInformation(PPR()(round.graph), round.prediction.logits[[0]], known, nodes, ~known)
    torch.testing.assert_close(actual.score[0, players].double(), game(torch.eye(6, dtype=torch.bool)[None])[0])
    assert actual.stderr is None
    assert actual.evaluations == 6


@pytest.mark.parametrize(
    ("estimate", "sentence"),
    [
        (lambda game, k, rng: torch.zeros(game.runs, game.players), "an estimator must return Values, got Tensor"),
        # which would be every run's
        (lambda game, k, rng: Values(torch.zeros(game.players), None, 1), r"mean .* \[R, K\] = \[1, 4\], got \[4\]"),
        (lambda game, k, rng: Values(torch.zeros(1, 4), torch.zeros(1, 3), 1), r"stderr .* = \[1, 4\], got \[1, 3\]"),
    ],
)
def test_an_estimator_of_the_user_must_give_values_for_every_player(
    round: Round, estimate: Estimator, sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Banzhaf(k=2, candidates=6, estimate=estimate)(round)
