"""The weights of an average of models, its temperatures, and the intervals of its scores."""

import pytest
import torch

from bangs.core.types import one_hot
from bangs.estimator.folds import label_log_probs
from bangs.estimator.stacking import (
    common_factor,
    far_behind,
    mean_interval,
    member_temperatures,
    mixture,
    share_interval,
    stacking_weights,
)


def test_members_that_are_equally_good_share_the_weight_and_one_far_behind_has_none() -> None:
    alike = torch.full((2, 200), 0.9)
    weights = stacking_weights(torch.cat([alike, torch.full((1, 200), 0.05)]))
    assert weights[0] == pytest.approx(float(weights[1]))
    assert weights[2] == 0
    assert float(weights.sum()) == pytest.approx(1)


def test_an_overconfident_member_becomes_less_confident_and_few_labels_change_little() -> None:
    draw = torch.Generator().manual_seed(0)
    honest = torch.randn(2000, 3, generator=draw)
    label = torch.multinomial(honest.softmax(-1), 1, generator=draw).squeeze(1)
    temperatures = member_temperatures([honest, 4 * honest], label)
    assert temperatures.tolist() == pytest.approx([1, 4], rel=0.15)
    few = member_temperatures([honest[:3]], honest[:3].argmax(1))  # all are right, so labels alone would say 0
    assert 0.2 < float(few) < 1


def test_a_mean_of_models_that_disagree_becomes_more_confident() -> None:
    label = torch.zeros(200, dtype=torch.long)
    one, other = torch.zeros(200, 3), torch.zeros(200, 3)
    one[:, 0] = other[:, 0] = 2.0
    one[:, 1], other[:, 2] = 1.5, 1.5
    assert common_factor([one, other], torch.tensor([0.5, 0.5]), label) < 0.7
    wrong = torch.randint(3, (200,), generator=torch.Generator().manual_seed(0))
    assert common_factor([one, other], torch.tensor([0.5, 0.5]), wrong) > 1.5


def test_a_mixture_is_the_mean_of_probabilities() -> None:
    logs = [torch.tensor([[0.9, 0.1]]).log(), torch.tensor([[0.5, 0.5]]).log()]
    assert mixture(logs, torch.tensor([0.25, 0.75])).exp()[0].tolist() == pytest.approx([0.6, 0.4])


def test_wilsons_interval_has_the_published_numbers() -> None:
    interval = share_interval(torch.tensor([True] * 8 + [False] * 2))
    assert (interval["low"], interval["high"]) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))


def noisy_logits(signal: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits [200, 3] that are higher by the signal for the true class, and the labels."""
    labels = torch.arange(200) % 3
    return torch.randn(200, 3, generator=torch.Generator().manual_seed(seed)) + signal * one_hot(labels, 3), labels


def test_a_difference_within_its_error_is_not_clear() -> None:
    (best, labels), (close, _), (far, _) = noisy_logits(1.8, 0), noisy_logits(1.7, 1), noisy_logits(1.0, 2)
    assert not far_behind(close, best, labels)
    assert far_behind(far, best, labels)
    assert not far_behind(far[:1], best[:1], labels[:1])  # one label says nothing


@pytest.mark.parametrize("factor", [0.02, 50.0])
def test_a_candidate_that_is_best_after_its_temperature_is_not_behind(factor: float) -> None:
    (best, labels), (leader, _) = noisy_logits(1.8, 0), noisy_logits(1.2, 1)
    unsuited = factor * best  # far too unsure, or far too sure
    gap = label_log_probs(unsuited, labels) - label_log_probs(leader, labels)
    assert gap.mean() < -2 * gap.std() / 200**0.5
    assert not far_behind(unsuited, leader, labels)
    assert far_behind(leader, unsuited, labels)


def test_the_interval_of_a_log_likelihood_ends_at_zero() -> None:
    """A normal interval of few nodes reached above 0, where no log-probability is."""
    interval = mean_interval(torch.tensor([-2.0, -0.01, -0.01, -0.01]))
    assert interval["value"] == pytest.approx(-0.5075)
    assert interval["low"] < -1
    assert interval["high"] == 0
