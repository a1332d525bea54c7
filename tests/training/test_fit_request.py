"""The arguments of one run of a fit."""

import torch

from bangs.core.rng import Streams
from bangs.core.types import Labels
from bangs.training.trainer import FitRequest


def test_a_run_takes_along_all_that_is_its_own() -> None:
    runs = torch.arange(3)
    labels = Labels(runs[:, None].repeat(1, 4), runs[:, None].repeat(1, 4) / 10, 10 * runs[:, None].repeat(1, 4))
    transition = runs[:, None, None].float().repeat(1, 2, 2)
    whole = FitRequest(labels, Streams((7, 8, 9)), {"w": runs[:, None].float()}, transition, early=5)
    own = whole.only(2)
    assert own.labels.target.tolist() == [[2] * 4]
    assert torch.equal(own.labels.weight, labels.weight[2:])
    assert own.labels.adopted_round.tolist() == [[20] * 4]
    assert own.rng.numbers() == whole.rng.numbers()[2:]
    assert own.start is not None
    assert own.start["w"].tolist() == [[2.0]]
    assert own.transition is not None
    assert own.transition.tolist() == [[[2.0, 2.0], [2.0, 2.0]]]
    assert own.early == 5
