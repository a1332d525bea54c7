"""Crossfit: which epoch is kept, and when a run has lost its chance."""

import pytest
import torch
from torch import Tensor

from bangs.learners.crossfit import Crossfit, Parameters
from bangs.learners.scaling import Sample

NODES = 8


def kept_epoch(factors: list[float], patience: int) -> int:
    """The epoch kept where logits are multiplied so in each: labels are class 0, which more sharpness makes likelier.

    The only parameter walks about one step of Adam an epoch, and changes nothing.
    """
    logits = torch.tensor([1.0, 0.0], dtype=torch.float64)[None, :, None].repeat(1, 1, NODES)
    target = logits / NODES
    nodes = torch.arange(NODES)[None]
    sample = Sample(nodes, torch.ones(1, NODES, dtype=torch.bool), torch.zeros_like(nodes), logits, target)
    script = iter(factors)

    def multiplier(parameters: Parameters) -> Tensor:
        (walking,) = parameters
        return (next(script) + walking - walking.detach()).expand(-1, NODES)

    fit = Crossfit(lr=1.0, weight_decay=0.0, epochs=len(factors) - 1, patience=patience, folds=2)
    start = [torch.zeros(1, 1, dtype=torch.float64)]
    (walked,) = fit(multiplier, start, sample, torch.rand(1, NODES))
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
