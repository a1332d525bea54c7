"""Mini-batch training with sampled neighbourhoods, against the whole graph."""

from dataclasses import replace

import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from bangs.core import metrics
from bangs.core.rng import Streams
from bangs.core.types import Split, Task
from bangs.errors import InvalidInput
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.sparse import adjacency, to_torch
from bangs.nn.models import APPNP, GCN, SGC, GraphSAGE
from bangs.training.layerwise_inference import Layerwise
from bangs.training.minibatch import prefetch
from bangs.training.neighbour_sampling import Sampler, Sampling, subsets
from bangs.training.trainer import Trainer
from tests.conftest import two_rings

CPU = torch.device("cpu")
ALL = Sampling(size=10**6, fanout=(-1,))
MODELS = [GCN(hidden=8, layers=3), GraphSAGE(hidden=8), SGC(hops=2, dropout=0.2), GCN(hidden=8, layers=1)]


def star(leaves: int) -> Data:
    """Node 0 has an edge to and from every other node."""
    others = torch.arange(1, leaves + 1)
    edges = torch.stack([others, torch.zeros_like(others)])
    return Data(x=torch.randn(leaves + 1, 3), edge_index=torch.cat([edges, edges.flip(0)], 1), num_nodes=leaves + 1)


def graph(weighted: bool = False) -> Data:
    data = citation(nodes=120, classes=3, features=20, isolated=0.05)
    data.x = data.x.to_dense()
    if weighted:
        data.edge_weight = torch.rand(data.num_edges, generator=torch.Generator().manual_seed(1))
    return data


def task_of_runs(runs: int = 2) -> Task:
    data = graph()
    node = torch.arange(120)
    return Task.of(data, Split.repeated(node < 30, (node >= 30) & (node < 60), node >= 60, runs))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_subset_of_all_but_one_leaves_each_number_out_equally_often():
    drawn = subsets(torch.full((6000,), 4), 3, generator())
    assert drawn.shape == (3, 6000)
    left = 6 - drawn.sum(0)
    assert torch.bincount(left, minlength=4).tolist() == pytest.approx([1500] * 4, rel=0.1)


def test_subsets_hold_different_numbers_below_their_count():
    counts = torch.tensor([7, 100, 8])
    drawn = subsets(counts, 6, generator())
    assert all(len(column.unique()) == 6 for column in drawn.T)
    assert bool((drawn >= 0).all() and (drawn < counts).all())


@pytest.mark.parametrize("normalise", ["symmetric", "row", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_neighbours_give_the_rows_of_the_adjacency(normalise, weighted):
    data = graph(weighted)
    nodes = torch.tensor([3, 50, 51, 119])
    subgraph = Sampler.of(data, 2.0, normalise).draw(nodes, [-1, -1], generator(), CPU)
    h = subgraph.features.dense()
    for hop in range(2):
        h = subgraph.propagate(hop, h)
    dense = adjacency(data, 2.0, normalise).toarray()
    expected = torch.as_tensor(dense @ dense)[nodes] @ data.x
    torch.testing.assert_close(h[0], expected)


def test_two_sampled_leaves_of_a_star_are_weighted_for_all():
    """Degree 10 and two loops make d = 12 for the hub and 3 for a leaf; 5 = 10 / 2."""
    subgraph = Sampler.of(star(10), 2.0, "symmetric").draw(torch.tensor([0]), [2], generator(), CPU)
    matrix = subgraph.hops[0]
    assert matrix.shape == (1, 3)
    assert matrix.values.tolist() == pytest.approx([2 / 12, *[5 / (12 * 3) ** 0.5] * 2])


@pytest.mark.parametrize("normalise", ["symmetric", "row"])
def test_the_mean_over_draws_is_the_sum_over_all_neighbours(normalise):
    data = star(9)
    sampler = Sampler.of(data, 1.0, normalise)
    exact = torch.as_tensor(adjacency(data, 1.0, normalise).toarray())[0] @ data.x
    drawn = []
    for seed in range(2000):
        subgraph = sampler.draw(torch.tensor([0]), [3], generator(seed), CPU)
        drawn.append(subgraph.propagate(0, subgraph.features.dense())[0, 0])
    drawn = torch.stack(drawn)
    error = drawn.std(0) / len(drawn) ** 0.5
    assert bool(((drawn.mean(0) - exact).abs() < 4 * error).all())


def test_no_more_neighbours_are_drawn_than_the_fan_out_allows():
    sampler = Sampler.of(graph(), 1.0, "row")
    subgraph = sampler.draw(torch.arange(120), [2, 3], generator(), CPU)
    assert [int(hop.pattern.rows.diff().max()) for hop in subgraph.hops] == [4, 3]


def test_sparse_features_are_read_row_by_row():
    data = graph()
    dense = Sampler.of(data, 1.0, "row").draw(torch.tensor([4, 9]), [2], generator(), CPU)
    data.x = to_torch(sp.csr_array(data.x.numpy()))
    sparse = Sampler.of(data, 1.0, "row").draw(torch.tensor([4, 9]), [2], generator(), CPU)
    torch.testing.assert_close(dense.features.dense(), sparse.features.dense())


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_all_neighbours_in_one_batch_are_training_on_the_whole_graph(model):
    task = task_of_runs(runs=1)
    plain = Trainer(model, epochs=12, patience=12)
    one = plain.fit(task, task.given, Streams((3,)))
    other = replace(plain, batches=ALL).fit(task, task.given, Streams((3,)))
    for name, weight in one.weights.items():
        torch.testing.assert_close(other.weights[name], weight, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(other.validation, one.validation)
    torch.testing.assert_close(other.predict(task.graph).logits, one.predict(task.graph).logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("memory", [1, 4000, 2**30])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_layer_by_layer_gives_the_logits_of_the_whole_graph(model, memory):
    task = task_of_runs(runs=3)
    teacher = Trainer(model, epochs=3).fit(task, task.given, Streams((0, 1, 2)))
    learner = teacher.learner
    learner.network.load(teacher.weights)
    with torch.no_grad():
        actual = Layerwise(memory)(learner.network, learner.sampler, 3)
    torch.testing.assert_close(actual, teacher.predict(task.graph).logits, atol=1e-5, rtol=1e-4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_gpu_takes_links_that_stay_elsewhere_layer_by_layer(model):
    task = task_of_runs(runs=2)
    teacher = Trainer(model, epochs=3).fit(task, task.given, Streams((0, 1)))
    network, sampler = teacher.learner.network, teacher.learner.sampler
    network.load(teacher.weights)
    with torch.no_grad():
        here = Layerwise(4000)(network, sampler, 2)
        on_gpu = Layerwise(4000)(network.to("cuda"), sampler, 2)
    assert on_gpu.is_cuda
    torch.testing.assert_close(on_gpu.cpu(), here, atol=1e-5, rtol=1e-4)


def test_a_run_alone_equals_the_run_in_a_batch():
    trainer = Trainer(GCN(hidden=8), epochs=4, batches=Sampling(size=8, fanout=(3, 2)))
    both = trainer.fit(task_of_runs(2), task_of_runs(2).given, Streams((5, 6)))
    alone = trainer.fit(task_of_runs(1), task_of_runs(1).given, Streams((6,)))
    for name, weight in alone.weights.items():
        assert torch.equal(both.weights[name][1:], weight)
    assert torch.equal(both.epochs[1:], alone.epochs)


def test_what_is_drawn_depends_neither_on_workers_nor_on_time():
    fits = []
    for workers in (0, 1, 3):
        sampling = Sampling(size=8, fanout=(3, 2), workers=workers)
        fits.append(
            Trainer(GCN(hidden=8), epochs=4, batches=sampling).fit(
                task_of_runs(1), task_of_runs(1).given, Streams((5,))
            )
        )
    for other in fits[1:]:
        assert all(torch.equal(other.weights[name], weight) for name, weight in fits[0].weights.items())


def test_other_seeds_draw_other_neighbourhoods():
    trainer = Trainer(GCN(hidden=8, dropout=0.0), epochs=4, batches=Sampling(size=8, fanout=(3, 2)))
    start = trainer.fit(task_of_runs(1), task_of_runs(1).given, Streams((5,))).weights
    learner = trainer.prepare(task_of_runs(1))
    one, other = (learner.fit(task_of_runs(1).given, Streams((seed,)), start=start) for seed in (5, 6))
    assert not torch.equal(one.weights["weight.0"], other.weights["weight.0"])


def test_sampling_learns_what_the_rings_teach():
    data = two_rings()
    node = torch.arange(24)
    task = Task.of(data, Split.repeated(node < 4, (node >= 4) & (node < 10), node >= 10, runs=1))
    trainer = Trainer(GCN(hidden=8), epochs=60, batches=Sampling(size=2, fanout=(1, 1)))
    predicted = trainer.fit(task, task.given, Streams((0,))).predict(task.graph).label[0]
    assert float((predicted == data.y).float().mean()) > 0.8


def test_an_error_in_a_worker_is_raised_where_its_batch_is_used():
    def fail() -> int:
        raise InvalidInput("no such node")

    with pytest.raises(InvalidInput, match="no such node"):
        list(prefetch([lambda: 1, fail, lambda: 3], workers=1))


def test_a_model_that_sees_the_whole_graph_cannot_be_sampled():
    with pytest.raises(InvalidInput, match="APPNP needs the whole graph"):
        Trainer(APPNP(), batches=Sampling()).prepare(task_of_runs(1))


def test_repr_builds_it_again():
    trainer = Trainer(GCN(), batches=Sampling(512, (5, -1)))
    names = {"Trainer": Trainer, "GCN": GCN, "Sampling": Sampling}
    assert eval(repr(trainer), names) == trainer


@pytest.mark.parametrize("wrong", [{"size": 0}, {"fanout": ()}, {"fanout": (0,)}, {"fanout": (-2,)}, {"memory": 0}])
def test_settings_are_checked_where_they_are_written(wrong):
    with pytest.raises(InvalidInput, match=f"Sampling.{next(iter(wrong))} must"):
        Sampling(**wrong)


def test_pointers_that_fall_are_refused_before_they_are_followed():
    data = graph()
    sampler = Sampler.of(data, 1.0, "row")
    sampler.neighbours.pointers[5] = 10**6
    with pytest.raises(InvalidInput, match="row pointers of a stored graph decrease"):
        sampler.draw(torch.arange(120), [2], generator(), CPU)


def test_the_score_that_chooses_rounds_is_that_of_the_whole_graph():
    """With these seeds the validation nodes' drawn neighbours tell another accuracy."""
    task = task_of_runs(2)
    trainer = Trainer(GCN(hidden=8), epochs=5, batches=Sampling(size=8, fanout=(1, 1)))
    teacher = trainer.fit(task, task.given, Streams((0, 3)))
    exact = metrics.accuracy(teacher.predict(task.graph), task.validation)
    assert torch.equal(teacher.validation, exact)


def test_the_cached_logits_are_returned_for_their_weights_only():
    task = task_of_runs(1)
    learner = Trainer(GCN(hidden=8), epochs=5, batches=Sampling(size=8, fanout=(1, 1))).prepare(task)
    first, second = (learner.fit(task.given, Streams((seed,))) for seed in (0, 3))
    of_second, of_first = second.predict(task.graph), first.predict(task.graph)
    assert not torch.equal(of_first.logits, of_second.logits)
    torch.testing.assert_close(second.predict(task.graph).logits, of_second.logits)
    assert learner._last_prediction is None  # whose room is for others now
