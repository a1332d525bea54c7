"""The embedded graph is what its arguments say, for any seed and size."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from bangs.core.graph_checks import check_graph
from bangs.errors import InvalidInput
from bangs.graphs import splits
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.sparse import Sparse, adjacency, to_scipy


def homophily(data: Data) -> float:
    source, target = data.y[data.edge_index]
    return (source == target).float().mean().item()


def degrees(data: Data) -> torch.Tensor:
    return torch.bincount(data.edge_index[0], minlength=data.num_nodes)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(2, 300), st.integers(2, 6), st.integers(1, 80), st.integers(0, 10**6), st.floats(0, 3), st.floats(0, 1)
)
def test_any_graph_is_simple_and_valid(
    nodes: int, classes: int, features: int, seed: int, degree: float, homophily: float
) -> None:
    nodes = max(nodes, classes)
    degree = min(degree, (nodes - 1) / 2)
    data = citation(nodes, classes, features, seed, mean_degree=degree, homophily=homophily)
    assert check_graph(data) == nodes
    source, target = data.edge_index
    assert (source != target).all()
    pairs = source * nodes + target
    assert len(pairs.unique()) == len(pairs)
    assert torch.equal(pairs.sort().values, (target * nodes + source).sort().values)
    assert len(pairs) <= 2 * round(nodes * degree / 2)
    assert data.y.unique().tolist() == list(range(classes))
    assert data.num_classes == classes
    assert data.x.layout == torch.sparse_csr
    assert data.x.shape == (nodes, features)
    torch.testing.assert_close(data.x.to_dense().sum(1), torch.ones(nodes))


def test_the_default_has_the_size_of_cora() -> None:
    data = citation()
    assert data.x.shape == (2708, 1433)
    assert data.num_edges == 2 * round(2708 * 3.9 / 2)
    assert data.num_classes == 7
    assert 15 < data.x.values().numel() / 2708 < 20


@pytest.mark.parametrize("wanted", [0.0, 0.2, 0.5, 0.81, 1.0])
def test_homophily_is_as_given(wanted: float) -> None:
    data = citation(20_000, 5, 100, homophily=wanted, mean_degree=6)
    assert homophily(data) == pytest.approx(wanted, abs=0.03)


def test_degrees_have_a_heavy_tail_and_the_given_mean() -> None:
    degree = degrees(citation(20_000, 5, 100, mean_degree=6)).float()
    assert degree.mean().item() == pytest.approx(6, abs=0.01)
    assert degree.max() > 20 * degree.mean()
    assert degree.median() < degree.mean()


def test_classes_are_as_unbalanced_as_given() -> None:
    equal = torch.bincount(citation(30_000, 5, 50, balance=1.0).y)
    uneven = torch.bincount(citation(30_000, 5, 50, balance=0.2).y)
    assert (equal.min() / equal.max()).item() > 0.9
    assert (uneven.min() / uneven.max()).item() == pytest.approx(0.2, abs=0.02)


def test_some_nodes_are_isolated() -> None:
    alone = degrees(citation(10_000, 5, 50, isolated=0.1, mean_degree=20)) == 0
    assert 1000 <= int(alone.sum()) < 1100
    assert citation(50, 2, 10, isolated=1.0).num_edges == 0


def test_a_seed_is_a_graph() -> None:
    first, same, other = citation(seed=3), citation(seed=3), citation(seed=4)
    assert torch.equal(first.edge_index, same.edge_index)
    assert torch.equal(first.x.values(), same.x.values())
    assert torch.equal(first.y, same.y)
    assert not torch.equal(first.y, other.y)


def nearest_class(data: Data, seed: int) -> float:
    """Exam accuracy of the class mean nearest to a node's words, averaged over two steps of neighbours."""
    split = splits.per_class(data.y, 20, 500, 1000, [seed])
    step = Sparse.of(adjacency(data))
    words = step @ (step @ (Sparse.of(to_scipy(data.x)) @ torch.eye(data.x.shape[1])))
    words = torch.nn.functional.normalize(words - words.mean(0))
    known = split.train[0]
    member = torch.nn.functional.one_hot(data.y, data.num_classes).float() * known[:, None]
    guess = (words @ torch.nn.functional.normalize(member.T @ words).T).argmax(1)
    return (guess == data.y)[split.test[0]].float().mean().item()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_few_labels_go_far_but_not_all_the_way(seed: int) -> None:
    assert 0.65 < nearest_class(citation(seed=seed), seed) < 0.88


def test_signal_makes_it_easier() -> None:
    weak, medium, strong = (nearest_class(citation(seed=1, signal=signal), 1) for signal in (0.0, 0.35, 0.8))
    assert weak < medium - 0.05
    assert medium < strong - 0.02


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"classes": 1}, "at least two classes"),
        ({"nodes": 6}, "a node for each"),
        ({"features": 0}, "one feature"),
        ({"mean_degree": -1.0}, "mean_degree must lie between 0 and"),
        ({"nodes": 11, "mean_degree": 6.0}, "mean_degree must lie between 0 and half of nodes − 1, got 6.0 for 11"),
        ({"homophily": 1.1}, r"homophily must lie in \[0, 1\], got 1.1"),
        ({"signal": -0.1}, r"signal must lie in \[0, 1\]"),
        ({"isolated": 2.0}, r"isolated must lie in \[0, 1\]"),
        ({"balance": 0.0}, r"balance must lie in \(0, 1\]"),
        ({"balance": float("nan")}, r"balance must lie in \(0, 1\]"),
    ],
)
def test_arguments_outside_their_range_are_refused(arguments: dict[str, float], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        citation(**arguments)  # type: ignore[arg-type]
