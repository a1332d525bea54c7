"""The best round: one rule, whoever asks."""

import pytest
import torch

from bangs.selftraining.best_round import Merit, beats, best_round, clearly_behind


@pytest.mark.parametrize(("accuracy", "best"), [([0.4, 0.8, 0.8], 1), ([0.5], 0), ([0.1, 0.2, 0.3], 2), ([0.3] * 4, 0)])
def test_it_has_the_highest_validation_accuracy_and_is_the_earliest_of_equals(accuracy: list[float], best: int) -> None:
    assert best_round(accuracy) == best


def test_where_losses_are_measured_the_lowest_decides_between_equals() -> None:
    assert Merit(0.8, 0.5).beats(Merit(0.8, 0.6))
    assert not Merit(0.8, 0.5).beats(Merit(0.8, 0.5))
    assert Merit(0.81, 9.0).beats(Merit(0.8, 0.1))
    assert not Merit(0.7, 0.1).beats(Merit(0.8, 9.0))


def test_runs_along_an_axis_are_compared_by_the_same_rule() -> None:
    generator = torch.Generator().manual_seed(0)
    now, before = torch.randint(0, 3, (2, 50), generator=generator).double()
    rule = [Merit(a).beats(Merit(b)) for a, b in zip(now.tolist(), before.tolist(), strict=True)]
    assert beats(now, before).tolist() == rule
    assert 0 < sum(rule) < 50


def test_a_round_is_clearly_behind_if_its_mean_is_by_a_standard_error() -> None:
    best = torch.zeros(4)
    spread = torch.tensor([1.0, -1.0, 1.0, -1.0])  # a standard error of 0.577
    assert clearly_behind(spread - 0.6, best)
    assert not clearly_behind(spread - 0.5, best)
    assert not clearly_behind(torch.tensor([-9.0]), torch.zeros(1))  # one label is no evidence
