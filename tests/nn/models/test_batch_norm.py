"""Batch normalisation of R runs equals torch's for every run."""

import pytest
import torch
from torch import Tensor, nn

from bangs.core.rng import Streams
from bangs.nn.models import GRAND
from bangs.nn.models.batch_norm import BatchNorm
from bangs.training.trainer import Trainer
from tests.conftest import masks


def stock(norm: BatchNorm, run: int) -> nn.BatchNorm1d:
    twin = nn.BatchNorm1d(norm.scale.shape[2])
    twin.load_state_dict(
        {
            "weight": norm.scale[run, 0],
            "bias": norm.shift[run, 0],
            "running_mean": norm.mean[run, 0],
            "running_var": norm.variance[run, 0],
            "num_batches_tracked": torch.tensor(0),
        }
    )
    return twin


@pytest.fixture
def norm() -> BatchNorm:
    made = BatchNorm(2, 5)
    with torch.no_grad():
        made.scale.uniform_(0.5, 2.0, generator=torch.Generator().manual_seed(0))
        made.shift.uniform_(-1.0, 1.0, generator=torch.Generator().manual_seed(1))
    return made


def training_batches() -> list[Tensor]:
    source = torch.Generator().manual_seed(2)
    return [torch.randn(2, 12, 5, generator=source) * 3 + 1 for _ in range(4)]


def test_a_training_pass_equals_torchs_for_every_run(norm):
    twins = [stock(norm, run) for run in range(2)]
    for x in training_batches():
        out = norm.normalise_batch(x)
        for run, twin in enumerate(twins):
            torch.testing.assert_close(out[run], twin(x[run]))
            torch.testing.assert_close(norm.mean[run, 0], twin.running_mean)
            torch.testing.assert_close(norm.variance[run, 0], twin.running_var)


def test_gradients_of_a_training_pass_equal_torchs_for_every_run(norm):
    x = training_batches()[0].requires_grad_()
    (norm.normalise_batch(x) ** 3).sum().backward()
    for run in range(2):
        twin, run_x = stock(norm, run), x[run].detach().clone().requires_grad_()
        (twin(run_x) ** 3).sum().backward()
        torch.testing.assert_close(x.grad[run], run_x.grad, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(norm.scale.grad[run, 0], twin.weight.grad, rtol=1e-4, atol=1e-4)


def test_evaluation_uses_the_running_statistics(norm):
    for x in training_batches():
        norm.normalise_batch(x)
    x = training_batches()[0]
    for run in range(2):
        torch.testing.assert_close(norm(x)[run], stock(norm, run).eval()(x[run]))


def test_one_node_is_its_own_mean(norm):
    torch.testing.assert_close(norm.normalise_batch(torch.full((2, 1, 5), 7.0)), norm.shift.detach())
    assert norm.variance.isfinite().all()


def test_grand_normalises_what_has_been_spread_and_the_hidden_layer(task):
    """On its way to logits a narrow product goes where the normalised features would."""
    learner = Trainer(GRAND(hidden=6, order=3, batch_norm=True, spread="features"), epochs=5).prepare(task)
    weights = learner.fit(task.given, Streams((0, 1, 2))).weights
    predicted = learner.predict(weights, task.graph).logits
    network, subgraph = learner.network, learner.prepared.whole
    spread = network._propagate(subgraph, subgraph.features.dense())
    for run in range(3):
        h = stock(network.outer, run).eval()(spread[run]) @ weights["predict.first"][run]
        h = stock(network.inner, run).eval()((h + weights["predict.first_bias"][run]).relu())
        expected = h @ weights["predict.second"][run] + weights["predict.second_bias"][run]
        torch.testing.assert_close(predicted[run], expected, rtol=1e-4, atol=1e-5)


def test_only_training_updates_the_running_statistics(task):
    learner = Trainer(GRAND(hidden=6, order=3, batch_norm=True, spread="features"), epochs=5).prepare(task)
    teacher = learner.fit(task.given, Streams((0, 1, 2)))
    assert not torch.equal(teacher.weights["outer.mean"], torch.zeros_like(teacher.weights["outer.mean"]))
    learner.predict(teacher.weights, task.graph, masks(3, 4, 5))
    assert torch.equal(learner.network.outer.mean, teacher.weights["outer.mean"])


def test_the_running_statistics_kept_are_those_of_the_best_epoch(task):
    learner = Trainer(GRAND(hidden=6, order=3, batch_norm=True, spread="features"), epochs=30).prepare(task)
    teacher = learner.fit(task.given, Streams((0, 1, 2)))
    right = learner.predict(teacher.weights, task.graph).label == task.validation
    assert torch.equal(right.sum(1).double() / task.held.sum(1), teacher.validation)
