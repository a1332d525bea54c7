"""Crossfit: which epoch is kept, and when a run has lost its chance."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bangs.calibration.crossfit import Crossfit, Parameters, _Folds
from bangs.calibration.logit_scaling import ValidationSample

NODES = 8


def right(runs: int = 1) -> ValidationSample:
    """Nodes of class 0, which every run's logits say they are."""
    logits = torch.tensor([1.0, 0.0], dtype=torch.float64)[None, :, None].repeat(runs, 1, NODES)
    nodes = torch.arange(NODES).expand(runs, -1)
    return ValidationSample(
        nodes, torch.ones_like(nodes, dtype=torch.bool), torch.zeros_like(nodes), logits, logits / NODES
    )


def kept_epoch(factors: list[float], patience: int) -> int:
    """The epoch kept where logits are multiplied so in each: labels are class 0, which more sharpness makes likelier.

    The only parameter walks about one step of Adam an epoch, and changes nothing.
    """
    script = iter(factors)

    def multiplier(parameters: Parameters) -> Tensor:
        (walking,) = parameters
        return (next(script) + walking - walking.detach()).expand(-1, NODES)

    fit = Crossfit(lr=1.0, weight_decay=0.0, epochs=len(factors) - 1, patience=patience, folds=2)
    start = [torch.zeros(1, 1, dtype=torch.float64)]
    (walked,) = fit(multiplier, start, right(), torch.rand(1, NODES))
    return round(float(walked))


@pytest.mark.parametrize(
    ("factors", "patience", "epoch"),
    [
        ([1.0, 2.0, 3.0, 2.0], 9, 2),
        ([3.0, 2.0, 1.0], 9, 0),
        ([1.0, 1.0, 1.0], 9, 0),
        ([2.0, 1.0, 3.0], 2, 2),
        ([2.0, 1.0, 3.0], 1, 0),
        ([2.0, 3.0, 1.0, 1.0, 4.0], 2, 1),
    ],
    ids=["the best", "the start", "of equals the first", "in time", "too late", "too late after a gain"],
)
def test_the_likeliest_epoch_within_patience_is_kept(factors: list[float], patience: int, epoch: int) -> None:
    assert kept_epoch(factors, patience) == epoch


def test_a_run_out_of_patience_leaves_the_others_theirs() -> None:
    """Run 0 is best at the start; run 1 gets better until epoch 12, beyond the first look at who still hopes."""
    script = iter([[1.0 if epoch else 1.1, 1 + min(epoch, 12) / 100] for epoch in range(15)])

    def multiplier(parameters: Parameters) -> Tensor:
        (walking,) = parameters
        return (torch.tensor(next(script)).repeat(3)[:, None] + walking - walking.detach()).expand(-1, NODES)

    fit = Crossfit(lr=1.0, weight_decay=0.0, epochs=14, patience=2, folds=2)
    (walked,) = fit(multiplier, [torch.zeros(2, 1, dtype=torch.float64)], right(2), torch.rand(2, NODES))
    assert walked.flatten().round().tolist() == [0, 12]


def test_the_model_that_has_seen_all_nodes_is_kept() -> None:
    """Each node has a weight of its own beside a common one; a model without a node never moves that node's."""

    def multiplier(parameters: Parameters) -> Tensor:
        common, per_node = parameters
        return 1 + common + per_node

    start = [torch.zeros(1, 1, dtype=torch.float64), torch.zeros(1, NODES, dtype=torch.float64)]
    fit = Crossfit(weight_decay=0.0, epochs=3, folds=2)
    common, per_node = fit(multiplier, start, right(), torch.rand(1, NODES))
    assert common.item() > 0
    assert (per_node > 0).all()


@pytest.mark.parametrize(("decay", "left"), [(0.0, 1.0), (5e-3, 0.9)])
def test_weights_decay_by_a_step_where_nothing_else_pulls(decay: float, left: float) -> None:
    script = iter([1.0, 2.0])

    def multiplier(parameters: Parameters) -> Tensor:
        (idle,) = parameters
        return (next(script) + 0 * idle).expand(-1, NODES)

    start = [torch.ones(1, 1, dtype=torch.float64)]
    (idle,) = Crossfit(lr=0.1, weight_decay=decay, epochs=1)(multiplier, start, right(), torch.rand(1, NODES))
    assert idle.item() == pytest.approx(left, abs=1e-6)


@pytest.mark.parametrize(("label", "term"), [(0, 1 - math.tanh(0.5)), (1, math.tanh(0.5))], ids=["right", "wrong"])
def test_the_margin_parts_the_leaders_of_nodes_that_are_right_and_joins_those_of_others(
    label: int, term: float
) -> None:
    """Logits (1, 0) have probabilities tanh(½) apart."""
    sample = replace(right(), label=torch.full((1, NODES), label))
    folds = _Folds.of(sample, torch.rand(1, NODES), folds=2)
    log_probs = folds.log_probs(torch.ones(3, NODES, dtype=torch.float64))
    added = folds.loss(log_probs, margin=0.5) - folds.loss(log_probs, margin=0.0)
    assert added.item() == pytest.approx(3 * 0.5 * term)  # of the three models


def test_a_run_has_the_same_folds_alone_and_beside_a_longer_one() -> None:
    sample, shuffle = right(2), torch.rand(2, NODES, generator=torch.Generator().manual_seed(0))
    sample.held[0, 5:] = False
    together = _Folds.of(sample, shuffle, folds=2)
    cut = ValidationSample(*(part[:1, ..., :5] for part in vars(sample).values()))
    alone = _Folds.of(cut, shuffle[:1, :5], folds=2)
    torch.testing.assert_close(together.test_weight[:, :1, :5], alone.test_weight)
    torch.testing.assert_close(together.train_weight[:, :1, :5], alone.train_weight)
    assert (together.train_weight[:, 0, 5:] == 0).all()
