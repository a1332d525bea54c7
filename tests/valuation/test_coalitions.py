"""Random coalitions: sizes have their exact distribution, members are uniform, runs are independent."""

import math

import pytest
import torch
from scipy.stats import chi2
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.valuation import coalitions
from tests.conftest import generators


def p_value(sizes: Tensor, law: Tensor) -> float:
    """The chance of a worse fit by Pearson's χ², cells with fewer than five expected left out."""
    counts = torch.bincount(sizes, minlength=len(law)).double()
    expected = law * len(sizes)
    cells = expected >= 5
    statistic = ((counts - expected)[cells] ** 2 / expected[cells]).sum()
    return float(chi2.sf(float(statistic), max(int(cells.sum()) - 1, 1)))


@pytest.mark.parametrize(("players", "k"), [(10, 3), (14, 14), (200, 100), (500, 5), (500, 100), (500, 400), (3, 9)])
@pytest.mark.parametrize("law", ["uniform", "regression"])
def test_sizes_follow_the_exact_law(players: int, k: int, law: coalitions.Law) -> None:
    members = coalitions.draw(players, k, 4000, generators(1), law)[0]
    assert members.sum(1).max() <= min(k, players)
    assert p_value(members.sum(1), coalitions.size_law(players, k, law)) > 1e-3


def test_the_law_is_that_of_a_uniform_coalition() -> None:
    weights = [math.comb(10, m) for m in range(4)]
    expected = torch.tensor([w / sum(weights) for w in weights], dtype=torch.float64)
    assert torch.allclose(coalitions.size_law(10, 3), expected, atol=1e-12)
    weights = [w * eta for w, eta in zip(weights, [1, 2, 2, 1], strict=True)]
    expected = torch.tensor([w / sum(weights) for w in weights], dtype=torch.float64)
    assert torch.allclose(coalitions.size_law(10, 3, "regression"), expected, atol=1e-12)


def test_the_law_survives_numbers_that_no_float_holds() -> None:
    law = coalitions.size_law(5000, 2500)
    assert torch.isfinite(law).all()
    assert law.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("draw", [coalitions.draw, coalitions.blocks])
def test_every_player_joins_equally_often(draw: type) -> None:
    members = draw(12, 4, 6000, generators(3))[0].double()
    share = members.mean(0)
    assert (share - share.mean()).abs().max() < 5 * math.sqrt(share.mean() / 6000)


@pytest.mark.parametrize("draw", [coalitions.draw, coalitions.blocks])
def test_every_small_coalition_is_equally_likely(draw: type) -> None:
    members = draw(5, 2, 16000, generators(4))[0]
    number = (members.long() * 2 ** torch.arange(5)).sum(1)
    counts = torch.bincount(number, minlength=32).double()
    listed = (coalitions.every(5, 2).long() * 2 ** torch.arange(5)).sum(1)
    assert counts[listed].sum() == 16000
    assert (counts[listed] - 1000).abs().max() < 5 * math.sqrt(1000)


@pytest.mark.parametrize(("players", "limit"), [(200, 99), (500, 99), (500, 399), (7, 0), (1, 0), (1, 1)])
def test_blocks_follow_the_size_law_too(players: int, limit: int) -> None:
    members = coalitions.blocks(players, limit, 3000, generators(5))[0]
    assert members.shape == (3000, players)
    assert p_value(members.sum(1), coalitions.size_law(players, limit)) > 1e-3


def test_blocks_of_one_order_do_not_overlap_while_they_fit() -> None:
    members = coalitions.blocks(500, 90, 5, generators(6))[0]
    assert members.sum(0).max() == 1


@pytest.mark.parametrize(("players", "limit", "lap"), [(30, 3, 10), (12, 12, 2), (9, 5, 2)])
def test_coalitions_of_one_order_follow_each_other_so_that_players_join_equally_often_but_for_one(
    players: int, limit: int, lap: int
) -> None:
    joined = coalitions.blocks(players, limit, lap, generators(*range(20))).sum(1)
    assert (joined.amax(1) - joined.amin(1)).max() == 1


def test_a_run_draws_the_same_alone_and_in_a_batch() -> None:
    for draw in (coalitions.draw, coalitions.blocks):
        together = draw(20, 6, 9, generators(1, 2, 3))
        alone = draw(20, 6, 9, generators(2))
        assert torch.equal(together[1], alone[0])


def test_every_lists_all_coalitions_once() -> None:
    members = coalitions.every(6, 2)
    assert len(members) == 1 + 6 + 15
    assert len(members.unique(dim=0)) == len(members)
    assert members.sum(1).max() == 2


@pytest.mark.parametrize(("players", "k", "word"), [(0, 1, "at least 1 player"), (5, 0, "at least 1, got 0")])
def test_bad_numbers_are_named(players: int, k: int, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        coalitions.draw(players, k, 10, generators(0))


def test_listing_too_many_coalitions_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too many to list"):
        coalitions.every(21, 3)
    assert len(coalitions.every(20, 1)) == 21
