"""On a CPU the runs of a fit are trained one after the other, each with what is its own."""

import pytest
import torch

from bangs.core.rng import Streams
from bangs.core.types import Labels, Split, Task
from bangs.nn.models import GCN
from bangs.training.teacher import Teacher
from bangs.training.trainer import Learner, Trainer
from tests.conftest import two_rings


def test_a_run_takes_along_all_that_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    node, runs = torch.arange(24), torch.arange(3)
    task = Task.of(two_rings(), Split.repeated(node < 4, (node >= 4) & (node < 8), node >= 8, 3))
    asked = []

    def train(self: Learner, *arguments: object) -> Teacher:
        asked.append(arguments)
        one = torch.zeros(1)
        return Teacher(self, {"w": one}, one, one, one)

    monkeypatch.setattr(Learner, "_train", train)
    each = runs[:, None].repeat(1, 24)
    labels, rng = Labels(each, each / 10, 10 * each), Streams((7, 8, 9))
    transition = runs[:, None, None].float().repeat(1, 2, 2)
    Trainer(GCN(hidden=4)).prepare(task).fit(
        labels, rng, start={"w": runs[:, None].float()}, transition=transition, early=5
    )
    assert len(asked) == 3
    run_labels, run_rng, start, run_transition, early = asked[2]
    assert run_labels.target.tolist() == [[2] * 24]
    assert torch.equal(run_labels.weight, labels.weight[2:])
    assert run_labels.adopted_round.tolist() == [[20] * 24]
    assert run_rng.numbers() == rng.numbers()[2:]
    assert start["w"].tolist() == [[2.0]]
    assert run_transition.tolist() == [[[2.0, 2.0], [2.0, 2.0]]]
    assert early == 5
