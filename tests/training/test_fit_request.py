"""The arguments of one run of a fit."""

import torch

from bangs.core.rng import Streams
from bangs.core.types import Labels
from bangs.training.trainer import FitRequest


def test_a_run_takes_along_all_that_is_its_own() -> None:
    runs = torch.arange(3)
    labels = Labels(runs[:, None].repeat(1, 4), runs[:, None].repeat(1, 4) / 10, 10 * runs[:, None].repeat(1, 4))
    transition = runs[:, None, None].float().repeat(1, 2, 2)
    request = FitRequest(labels, Streams((7, 8, 9)), {"w": runs[:, None].float()}, transition, early=5)
    one_run = request.only(2)
    assert one_run.labels.target.tolist() == [[2] * 4]
    assert torch.equal(one_run.labels.weight, labels.weight[2:])
    assert one_run.labels.adopted_round.tolist() == [[20] * 4]
    assert one_run.rng.numbers() == request.rng.numbers()[2:]
    assert one_run.start is not None
    assert one_run.start["w"].tolist() == [[2.0]]
    assert one_run.transition is not None
    assert one_run.transition.tolist() == [[[2.0, 2.0], [2.0, 2.0]]]
    assert one_run.early == 5
