"""The trainer: what it learns, what it starts from, and what it does if training diverges."""

from collections.abc import Iterator
from typing import Any

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from bangs.core.rng import Streams
from bangs.core.types import Labels, Split, Task
from bangs.errors import InvalidInput
from bangs.graphs.sparse import adjacency, to_torch
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Network
from bangs.nn.models import GCN, GRAND, MODELS, SGC
from bangs.nn.subgraphs import Subgraph
from bangs.training.teacher import Teacher
from bangs.training.trainer import Trainer
from tests.conftest import two_rings

SEEDS = Streams((1, 2, 3))
QUIET = GCN(hidden=8, dropout=0.0)


def test_it_learns_the_small_graph(task, data_and_split):
    data, _ = data_and_split
    teacher = Trainer(GCN(hidden=16), lr=0.03, epochs=40).fit(task, task.given, SEEDS)
    assert teacher.validation.tolist() == [1, 1, 1]
    assert (teacher.predict(task.graph).label == data.y).all()
    assert teacher.sound.all()


def test_starting_from_trained_weights_goes_on_where_they_are(task):
    first = Trainer(QUIET, epochs=60).fit(task, task.given, SEEDS)
    before = {name: value.clone() for name, value in first.weights.items()}
    learner = Trainer(QUIET, epochs=1).prepare(task)
    second = learner.fit(task.given, SEEDS, start=first.weights)
    far = learner.fit(task.given, SEEDS)
    for name, value in second.weights.items():
        assert (value - before[name]).abs().max() <= 0.0101, "one step of Adam is no longer than lr"
        assert torch.equal(first.weights[name], before[name]), "and the teacher it came from is left as it is"
    assert any((far.weights[name] - before[name]).abs().max() > 0.1 for name in before)


@pytest.mark.parametrize("subgraph", ["needed", "whole"])
@pytest.mark.parametrize("model", [GCN(hidden=8), SGC()])
def test_equal_streams_give_equal_teachers(task, model, subgraph):
    trainer = Trainer(model, epochs=8, subgraph=subgraph)
    one, other = trainer.fit(task, task.given, SEEDS), trainer.fit(task, task.given, SEEDS)
    assert all(torch.equal(one.weights[name], other.weights[name]) for name in one.weights)
    assert torch.equal(one.validation, other.validation)


def test_a_prepared_learner_forgets_what_it_learned_before(task):
    trainer = Trainer(GCN(hidden=8), epochs=8)
    learner = trainer.prepare(task)
    first = learner.fit(task.given, SEEDS)
    learner.fit(task.given, Streams((7, 8, 9)))
    again, fresh = learner.fit(task.given, SEEDS), trainer.fit(task, task.given, SEEDS)
    for name, value in first.weights.items():
        assert torch.equal(value, again.weights[name])
        assert torch.equal(value, fresh.weights[name])


def test_training_on_the_needed_part_of_the_graph_equals_training_on_the_whole(task):
    part = Trainer(QUIET, epochs=20).fit(task, task.given, SEEDS)
    whole = Trainer(QUIET, epochs=20, subgraph="whole").fit(task, task.given, SEEDS)
    torch.testing.assert_close(part.predict(task.graph).logits, whole.predict(task.graph).logits, rtol=1e-4, atol=1e-4)


@pytest.fixture
def products() -> Iterator[Any]:
    """How torch multiplies matrices on a GPU; put back as it was."""
    before = torch.backends.cuda.matmul.allow_tf32
    yield torch.backends.cuda.matmul
    torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_products_are_as_precise_as_asked_while_a_trainer_works(task, products, precision, monkeypatch):
    recorded, forward = set(), Network.forward

    def watched(network: Network, subgraph: Subgraph, masks: DropoutMasks | None = None) -> Tensor:
        recorded.add(products.allow_tf32)
        return forward(network, subgraph, masks)

    monkeypatch.setattr(Network, "forward", watched)
    products.allow_tf32 = precision == "float32"
    Trainer(QUIET, epochs=2, precision=precision).fit(task, task.given, SEEDS).predict(task.graph)
    assert recorded == {precision == "tf32"}
    assert products.allow_tf32 == (precision == "float32")


@pytest.mark.parametrize("model", [GCN(hidden=8), GCN(hidden=8, input_dropout=0.5)], ids=["once", "twice"])
@pytest.mark.parametrize(("subgraph", "sizes"), [("needed", [4, 6]), ("whole", [24, 24])])
def test_an_epoch_sees_the_nodes_that_matter_or_all(task, model, subgraph, sizes):
    """Whether the first layer is taken once for step and look, or twice; so dropout hangs on the labels or does not."""
    session = Trainer(model, subgraph=subgraph).prepare(task)._session(task.given, None)
    assert [part.targets.target.shape[1] for part in (session.train_nodes, session.val_nodes)] == sizes


def test_training_with_sparse_features_equals_training_with_dense_ones():
    data = two_rings()
    data.x = torch.cat([data.x, torch.zeros(24, 20)], 1)
    node = torch.arange(24)
    split = Split.repeated(node < 4, (node >= 4) & (node < 10), node >= 10, runs=3)
    dense = Task.of(data, split)
    sparse_data = data.clone()
    sparse_data.x = to_torch(sp.csr_array(data.x.numpy()))
    sparse = Task.of(sparse_data, split)
    logits = [Trainer(QUIET, epochs=20).fit(t, t.given, SEEDS).predict(t.graph).logits for t in (dense, sparse)]
    torch.testing.assert_close(*logits, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("subgraph", ["needed", "whole"])
def test_a_run_alone_equals_the_run_in_a_batch_without_dropout(subgraph):
    """Runs with different labels, so that the part of the graph a batch needs is not what a run needs."""
    data, node = two_rings(), torch.arange(24)
    train = torch.stack([node < 4, (node >= 10) & (node < 14), (node >= 14) & (node < 20)])
    held = ((node >= 4) & (node < 10)).expand(3, -1)
    task = Task.of(data, Split(train, held, ~train & ~held))
    trainer = Trainer(QUIET, epochs=20, subgraph=subgraph)
    together = trainer.fit(task, task.given, SEEDS).predict(task.graph).logits
    for run in range(3):
        one_run = task.only([run])
        alone = trainer.fit(one_run, one_run.given, SEEDS.only([run])).predict(task.graph).logits
        torch.testing.assert_close(alone[0], together[run], rtol=1e-3, atol=1e-4)


def test_nodes_of_weight_zero_do_not_matter(task):
    silent = torch.zeros(3, 24, dtype=torch.bool)
    silent[:, 12:16] = True

    def logits(label: int) -> Tensor:
        labels = task.given.adopt(silent, torch.full((3, 24), label), 0.0, 1)
        return Trainer(QUIET, epochs=10).fit(task, labels, SEEDS).predict(task.graph).logits

    assert torch.equal(logits(0), logits(1))


def test_heavier_nodes_pull_harder(task):
    labels = Labels.given(torch.where(torch.arange(24) < 2, torch.tensor([0, 1] * 12), -1).expand(3, -1).clone())
    # two nodes with the same features and opposite labels: the heavier one wins
    task.graph.x[1] = task.graph.x[0]
    weight = torch.zeros(3, 24)
    weight[:, 0], weight[:, 1] = 0.9, 0.1
    task.graph.edge_index = task.graph.edge_index[:, :0]
    learner = Trainer(QUIET, epochs=40, weight_decay=0.0).prepare(task)
    teacher = learner.fit(labels.weighted(weight), SEEDS, early=40)
    heavy = learner.predict(teacher.early, task.graph).label[:, 0]
    assert heavy.tolist() == [0, 0, 0]


def test_a_transition_that_changes_nothing_changes_nothing(task):
    learner = Trainer(QUIET, epochs=10).prepare(task)
    plain = learner.fit(task.given, SEEDS).predict(task.graph).logits
    corrected = learner.fit(task.given, SEEDS, transition=torch.eye(2).expand(3, 2, 2)).predict(task.graph).logits
    torch.testing.assert_close(corrected, plain, rtol=1e-3, atol=1e-4)


def test_with_a_transition_that_swaps_classes_the_swapped_classes_are_learned(task, data_and_split):
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).expand(3, 2, 2)
    learner = Trainer(QUIET, epochs=60).prepare(task)
    teacher = learner.fit(task.given, SEEDS, transition=swap, early=60)
    label = learner.predict(teacher.early, task.graph).label
    assert torch.equal(label[:, :4], 1 - task.given.target[:, :4])


def test_divergence_of_every_run_is_reported_and_survived(task):
    task.graph.x[0, 0] = float("inf")
    teacher = Trainer(QUIET, epochs=5).fit(task, task.given, SEEDS)
    assert teacher.sound.tolist() == [False, False, False]
    assert teacher.predict(task.graph).logits.shape == (3, 24, 2)


def test_an_absurd_learning_rate_does_not_crash(task):
    teacher = Trainer(GCN(hidden=8), lr=1e38, epochs=5).fit(task, task.given, SEEDS)
    assert not teacher.sound.any()


def test_a_run_that_diverges_leaves_the_others_alone(task):
    learner = Trainer(QUIET, epochs=10).prepare(task)
    calm = learner.fit(task.given, SEEDS)
    weight = task.given.weight.clone()
    weight[1] *= float("inf")
    teacher = learner.fit(task.given.weighted(weight), SEEDS)
    assert teacher.sound.tolist() == [True, False, True]
    assert teacher.validation[1] < 0
    for run in (0, 2):
        for name, value in teacher.weights.items():
            assert torch.equal(value[run], calm.weights[name][run])


def test_the_validation_score_is_that_of_the_kept_weights(task):
    teacher = Trainer(GCN(hidden=8), epochs=15).fit(task, task.given, SEEDS)
    right = (teacher.predict(task.graph).label == task.validation) & task.held
    torch.testing.assert_close(teacher.validation, right.sum(1).double() / task.held.sum(1))


def test_validation_may_differ_between_runs():
    data, node = two_rings(), torch.arange(24)
    held = torch.stack([(node >= 4) & (node < 10), node == 20])
    train = (node < 4).expand(2, -1)
    task = Task.of(data, Split(train, held, ~train & ~held))
    teacher = Trainer(QUIET, epochs=5).fit(task, task.given, Streams((1, 2)))
    right = (teacher.predict(task.graph).label == task.validation) & task.held
    torch.testing.assert_close(teacher.validation, right.sum(1).double() / task.held.sum(1))


def test_other_graphs_can_be_predicted(task):
    teacher = Trainer(GCN(hidden=8), epochs=5).fit(task, task.given, SEEDS)
    other = two_rings(30, seed=9)
    assert teacher.predict(other).logits.shape == (3, 30, 2)
    copy = task.graph.clone()
    torch.testing.assert_close(teacher.predict(copy).logits, teacher.predict(task.graph).logits)
    torch.testing.assert_close(
        teacher.predict([copy, task.graph, copy]).logits, teacher.predict(task.graph).logits, rtol=1e-4, atol=1e-5
    )


def test_samples_spread_around_the_prediction(task):
    teacher = Trainer(GCN(hidden=8, dropout=0.5), epochs=5).fit(task, task.given, SEEDS)
    samples = torch.stack([teacher.sample(task.graph, SEEDS.at("look", i)).logits for i in range(200)])
    mean = teacher.predict(task.graph).logits
    assert samples.std(0).max() > 0
    # the last layer is linear in what is dropped, so samples are unbiased
    assert ((samples.mean(0) - mean).abs() <= 5 * samples.std(0) / 200**0.5 + 1e-4).all()


def test_samples_may_be_drawn_at_another_rate(task):
    teacher = Trainer(GCN(hidden=8, dropout=0.5), epochs=5).fit(task, task.given, SEEDS)
    sampled, mean = teacher.sample(task.graph, SEEDS).logits, teacher.predict(task.graph).logits
    assert torch.equal(teacher.sample(task.graph, SEEDS, 0.5).logits, sampled)
    assert torch.equal(teacher.sample(task.graph, SEEDS, 0.0).logits, mean)
    apart = [(teacher.sample(task.graph, SEEDS, rate).logits - mean).square().mean() for rate in (0.05, 0.5, 0.9)]
    assert 0 < apart[0] < apart[1] < apart[2]
    assert torch.equal(teacher.sample(task.graph, SEEDS).logits, sampled), "the model's own rate is as it was"


def test_another_rate_holds_for_hidden_layers_and_dropped_features_only(task):
    """One layer has nothing hidden to drop from; its features are dropped where they were in training."""
    plain = Trainer(GCN(hidden=8, dropout=0.0, layers=1), epochs=2).fit(task, task.given, SEEDS)
    assert torch.equal(plain.sample(task.graph, SEEDS, 0.5).logits, plain.predict(task.graph).logits)
    noisy = Trainer(GCN(hidden=8, dropout=0.0, input_dropout=0.1, layers=1), epochs=2).fit(task, task.given, SEEDS)
    assert not torch.equal(noisy.sample(task.graph, SEEDS, 0.5).logits, noisy.predict(task.graph).logits)


def test_embeddings_decide_the_prediction(task):
    """The last hidden layer, one linear map and one hop away from the logits; of any graph."""
    teacher = Trainer(GCN(hidden=8), epochs=5).fit(task, task.given, SEEDS)
    for graph in (task.graph, two_rings(30, seed=9)):
        hidden = teacher.embed(graph)
        assert hidden.shape == (3, graph.num_nodes, 8)
        matrix = torch.as_tensor(adjacency(graph, 2.0, "symmetric").toarray())
        logits = matrix @ hidden @ teacher.weights["weight.1"] + teacher.weights["bias.1"]
        torch.testing.assert_close(logits, teacher.predict(graph).logits)


@pytest.mark.parametrize("seeds", [(1,), (1, 2, 3, 4)])
def test_there_must_be_a_stream_for_every_run(task, seeds):
    with pytest.raises(InvalidInput, match=f"{len(seeds)} random streams for 3 runs; there must be one per run"):
        Trainer(QUIET).prepare(task).fit(task.given, Streams(seeds))


def test_where_picks_whole_teachers(task):
    learner = Trainer(GCN(hidden=8), epochs=3).prepare(task)
    one, other = learner.fit(task.given, SEEDS, early=1), learner.fit(task.given, Streams((7, 8, 9)))
    picked = Teacher.where(torch.tensor([True, False, True]), one, other)
    expected = torch.stack([t.predict(task.graph).logits[r] for r, t in enumerate((one, other, one))])
    assert torch.equal(picked.predict(task.graph).logits, expected)
    assert torch.equal(picked.validation, torch.stack([one.validation[0], other.validation[1], one.validation[2]]))
    assert picked.early is one.early
    assert Teacher.where(torch.tensor([True, False, True]), other, one).early is one.early


ARCHITECTURES = {name: make(dropout=0.5) for name, make in MODELS.items()} | {
    "grand with norms": GRAND(dropout=0.5, batch_norm=True)
}
gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


class TestOnGPU:
    pytestmark = gpu

    @pytest.mark.parametrize("name", ARCHITECTURES)
    def test_equal_streams_give_equal_teachers(self, task, name):
        on_gpu = task.to("cuda")
        trainer = Trainer(ARCHITECTURES[name], epochs=40)
        one, other = (trainer.fit(on_gpu, on_gpu.given, SEEDS) for _ in range(2))
        for key, value in one.weights.items():
            torch.testing.assert_close(other.weights[key], value, rtol=1e-3, atol=1e-4)

    @pytest.mark.parametrize("name", ARCHITECTURES)
    def test_a_second_fit_of_a_prepared_learner_equals_the_first(self, task, name):
        on_gpu = task.to("cuda")
        learner = Trainer(ARCHITECTURES[name], epochs=40).prepare(on_gpu)
        first = learner.fit(on_gpu.given, SEEDS)
        learner.fit(on_gpu.given, Streams((7, 8, 9)))
        again = learner.fit(on_gpu.given, SEEDS)
        for key, value in first.weights.items():
            torch.testing.assert_close(again.weights[key], value, rtol=1e-3, atol=1e-4)

    def test_the_gpu_learns_what_the_cpu_learns(self, task):
        on_gpu = task.to("cuda")
        here = Trainer(QUIET, epochs=30).fit(task, task.given, SEEDS).predict(task.graph).logits
        logits = Trainer(QUIET, epochs=30).fit(on_gpu, on_gpu.given, SEEDS).predict(on_gpu.graph).logits
        torch.testing.assert_close(logits.cpu(), here, rtol=1e-2, atol=1e-2)

    def test_a_transition_may_change_between_rounds(self, task):
        on_gpu = task.to("cuda")
        learner = Trainer(QUIET, epochs=30).prepare(on_gpu)
        plain = learner.fit(on_gpu.given, SEEDS).predict(on_gpu.graph).logits
        learner.fit(on_gpu.given, SEEDS, transition=torch.full((3, 2, 2), 0.5, device="cuda"))
        identity = torch.eye(2, device="cuda").expand(3, 2, 2)
        corrected = learner.fit(on_gpu.given, SEEDS, transition=identity).predict(on_gpu.graph).logits
        torch.testing.assert_close(corrected, plain, rtol=1e-2, atol=1e-2)
