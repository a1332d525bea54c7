"""Batches of soft labels: a sample of the free nodes stands for all of them."""

import torch

from bangs.core.rng import Streams
from bangs.core.types import Labels, Task
from bangs.graphs import splits
from bangs.graphs.datasets import synthetic
from bangs.nn.models import GCN
from bangs.selftraining.budget import Budget
from bangs.selftraining.loop import SelfTrainer
from bangs.selftraining.methods import method
from bangs.training.neighbour_sampling import ALL, Sampling
from bangs.training.trainer import Learner, Trainer


def soft_task(size: int, per_class: int = 5) -> tuple[Learner, Labels]:
    """A learner in batches on a small graph, and soft labels with unequal weights for all nodes but the held ones."""
    data = synthetic.citation(400, 3, 30, seed=0)
    task = Task.of(data, splits.per_class(data.y, per_class, 60, None, (0,), scarce="half"), 3)
    given = task.given
    belief = torch.rand(1, 400, 3, generator=torch.Generator().manual_seed(1)).softmax(-1)
    belief = torch.where(given.known[..., None], torch.nn.functional.one_hot(given.target.clamp_min(0), 3), belief)
    target = torch.where(task.held, -1, torch.where(given.known, given.target, belief.argmax(-1)))
    weight = torch.where(given.known, 20.0, torch.rand(1, 400, generator=torch.Generator().manual_seed(2)))
    adopted_round = torch.where(target < 0, -1, torch.where(given.known, 0, 1))
    belief = torch.where((target < 0)[..., None], 0.0, belief)
    trainer = Trainer(GCN(hidden=8, dropout=0.0, input_dropout=0.0), batches=Sampling(size, (ALL,)))
    return Learner(trainer, task), Labels(target, weight, adopted_round, belief)


def loss_of_epoch(learner: Learner, labels: Labels, epoch: int) -> float:
    """The mean loss over the batches of an epoch, each counted by its nodes."""
    session = learner._session(labels, None)
    session.begin([0], None)
    total = nodes = 0.0
    for part in session.train_loader.shuffled(Streams((0,)).at("epoch", epoch)):
        count = part.targets.target.shape[1]
        total += count * float(learner.network.loss(part.subgraph, part.targets, session.masks, None).sum())
        nodes += count
    return total / nodes


def loss_of_all(learner: Learner, labels: Labels) -> float:
    """The plain form: one sum over all nodes with a target."""
    log_p = learner.predict(learner.network.weights(), learner.task.graph).log_probs
    cross = -(labels.belief * log_p).sum(-1) * labels.weight
    return float(cross.sum() / (labels.target >= 0).sum())


def test_one_batch_of_all_nodes_has_the_loss_of_all_nodes() -> None:
    learner, labels = soft_task(size=1000)
    assert abs(loss_of_epoch(learner, labels, 0) - loss_of_all(learner, labels)) < 1e-4


def test_a_sample_of_the_free_nodes_has_that_loss_in_the_mean() -> None:
    learner, labels = soft_task(size=32)
    actual = torch.tensor([loss_of_epoch(learner, labels, epoch) for epoch in range(200)])
    error = float(actual.std()) / 200**0.5
    assert error < 0.02 * float(actual.mean())
    assert abs(float(actual.mean()) - loss_of_all(learner, labels)) < 4 * error


def test_an_epoch_has_every_given_node_once_and_as_many_others() -> None:
    learner, labels = soft_task(size=16, per_class=10)
    loader = learner._session(labels, None).train_loader
    order = loader.order(Streams((0,)).at("epoch", 0))
    assert len(order.unique()) == len(order)
    assert int(loader.given[order].sum()) == 30 == int(loader.given.sum())
    assert len(order) == 64  # four full batches
    other = loader.order(Streams((0,)).at("epoch", 1))
    assert set(order.tolist()) != set(other.tolist())


def test_hard_labels_in_batches_are_all_seen() -> None:
    learner, labels = soft_task(size=16)
    loader = learner._session(Labels(labels.target, labels.weight, labels.adopted_round), None).train_loader
    assert loader.given is None
    assert sorted(loader.order(Streams((0,)).at("epoch", 0)).tolist()) == list(range(len(loader.nodes)))


def test_soft_labels_in_batches_are_as_good_as_on_the_whole_graph() -> None:
    data = synthetic.citation(600, 3, 30, seed=0)
    task = Task.of(data, splits.per_class(data.y, 10, 100, None, (0, 1), scarce="half"), 3)
    free = ~(task.held | task.given.known)
    results = {}
    for batches in (None, Sampling(128, (10, 10))):
        trainer = Trainer(GCN(hidden=16), epochs=100, patience=50, batches=batches)
        ended = SelfTrainer(trainer, method("soft", Budget(rounds=2))).fit(task, (0, 1))
        results[batches] = float((ended.prediction.label == data.y)[free].float().mean())
    whole, sampled = results.values()
    assert whole > 0.6
    assert sampled > whole - 0.05
