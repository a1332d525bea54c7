"""Features made from the edges alone, for nodes without features."""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from bangs.graphs import tables
from bangs.graphs.sparse import adjacency
from bangs.graphs.structural_features import DIRECTIONS, WIDTH, structural
from tests.graphs.tables.sample_tables import folder


def communities(sizes: list[int], inside: float, across: float, seed: int) -> tuple[Data, torch.Tensor]:
    """A graph of communities whose members know each other better than others; and who belongs where."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.cat([torch.full((size,), label) for label, size in enumerate(sizes)])
    chance = torch.where(y[:, None] == y[None, :], inside, across)
    drawn = torch.rand(chance.shape, generator=generator) < chance
    source, target = drawn.triu(1).nonzero().T
    return Data(edge_index=torch.stack([torch.cat([source, target]), torch.cat([target, source])]), num_nodes=len(y)), y


def names(nodes: int) -> np.ndarray:
    return np.array([f"node {i}" for i in range(nodes)], dtype=object)


def test_a_star_has_the_degrees_of_a_star() -> None:
    star = Data(edge_index=torch.tensor([[0, 0, 0], [1, 2, 3]]), num_nodes=5)
    features = structural(star, names(5), seed=0)
    assert features.shape == (5, 2 + WIDTH)
    assert features[:, 0].tolist() == [3, 1, 1, 1, 0]
    assert features[:, 1].tolist() == np.log1p([3, 1, 1, 1, 0]).tolist()
    assert np.isfinite(features).all()


def test_positions_span_the_leading_eigenvectors() -> None:
    small, _ = communities([60, 60, 60], inside=0.3, across=0.01, seed=1)
    matrix = adjacency(small, normalise="none").toarray()
    scale = 1 / np.sqrt(matrix.sum(axis=1) + 1)
    values, vectors = np.linalg.eigh(scale[:, None] * matrix * scale)
    leading = vectors[:, np.argsort(-values)[:3]]
    span = np.linalg.svd(structural(small, names(180), seed=0)[:, 2:])[0]
    assert np.linalg.svd(leading.T @ span[:, :3])[1].min() > 0.99


def test_positions_have_as_many_directions_as_are_kept() -> None:
    graph, _ = communities([20] * 40, inside=0.9, across=0.0005, seed=0)
    strengths = np.linalg.svd(structural(graph, names(800), seed=0)[:, 2:])[1]
    assert strengths[DIRECTIONS - 1] > 0.1 * strengths[0]
    assert strengths[DIRECTIONS] < 1e-3 * strengths[0]


def test_members_of_a_community_have_similar_positions() -> None:
    graph, y = communities([50, 50, 50], inside=0.25, across=0.01, seed=2)
    positions = structural(graph, names(150), seed=0)[:, 2:]
    unit = positions / np.linalg.norm(positions, axis=1, keepdims=True)
    nearness = unit @ unit.T
    same = (y[:, None] == y[None, :]).numpy() & ~np.eye(150, dtype=bool)
    other = (y[:, None] != y[None, :]).numpy()
    assert nearness[same].mean() > nearness[other].mean() + 0.1


def test_two_sides_that_connect_only_to_each_other_have_different_positions() -> None:
    graph, y = communities([60, 60], inside=0.01, across=0.3, seed=5)
    positions = structural(graph, names(120), seed=0)[:, 2:]
    unit = positions / np.linalg.norm(positions, axis=1, keepdims=True)
    similarity = unit @ unit.T
    same = (y[:, None] == y[None, :]).numpy() & ~np.eye(120, dtype=bool)
    assert similarity[same].mean() > similarity[(y[:, None] != y[None, :]).numpy()].mean() + 0.1


def test_old_nodes_keep_their_positions_when_a_graph_grows() -> None:
    grown, y = communities([90, 90], inside=0.15, across=0.01, seed=3)
    old = np.flatnonzero(np.arange(180) % 90 < 84)
    number = np.full(180, -1)
    number[old] = np.arange(len(old))
    edges = number[grown.edge_index.numpy()]
    before = Data(edge_index=torch.from_numpy(edges[:, (edges >= 0).all(axis=0)]), num_nodes=len(old))
    first = structural(before, names(180)[old], seed=0)[:, 2:]
    then = structural(grown, names(180), seed=0)[:, 2:]
    centre = np.stack([first[y[old] == label].mean(axis=0) for label in range(2)])
    nearest = ((then[:, None] - centre) ** 2).sum(axis=2).argmin(axis=1)
    new = np.setdiff1d(np.arange(180), old)
    assert (nearest[new] == y.numpy()[new]).mean() > 0.9
    likeness = (first * then[old]).sum() / np.linalg.norm(first) / np.linalg.norm(then[old])
    assert likeness > 0.6


def test_the_order_of_nodes_does_not_matter() -> None:
    graph, _ = communities([40, 40], inside=0.3, across=0.02, seed=4)
    order = np.random.default_rng(0).permutation(80)
    back = np.argsort(order)
    moved = Data(edge_index=torch.from_numpy(back[graph.edge_index.numpy()]), num_nodes=80)
    assert np.allclose(structural(moved, names(80)[order], 0), structural(graph, names(80), 0)[order], atol=1e-2)


def test_the_seed_decides_the_codes() -> None:
    graph, _ = communities([30, 30], inside=0.3, across=0.05, seed=5)
    assert np.array_equal(structural(graph, names(60), 1), structural(graph, names(60), 1))
    assert not np.allclose(structural(graph, names(60), 1), structural(graph, names(60), 2), atol=1e-2)


def test_tables_without_features_get_structural_ones_with_a_note(tmp_path: Path) -> None:
    bare = "id,label\na,u\nb,u\nc,v\nd,v\ne,\nf,\n"
    graph = tables.read(folder(tmp_path, nodes=bare), seed=5)
    assert graph.data.x.shape == (6, 66)
    assert graph.columns.features[:3] == ["degree", "log degree", "place 0"]
    assert any("no features, so 66 features were made from the edges" in note for note in graph.notes)
    assert graph.columns.structural is not None
    assert graph.columns.structural.seed == 5
    assert torch.isfinite(graph.data.x).all()
    second = tables.read(tmp_path, encoding=graph.columns)
    assert torch.allclose(second.data.x, graph.data.x, atol=1e-4)
    assert any("positions can be compared only if" in note for note in second.notes)


def test_edges_of_weight_zero_do_not_count() -> None:
    star = Data(edge_index=torch.tensor([[0, 0, 0], [1, 2, 3]]), num_nodes=5)
    more = torch.cat([star.edge_index, torch.tensor([[4, 1], [0, 2]])], 1)
    weighted = Data(edge_index=more, edge_weight=torch.tensor([0.5, 2.0, 1.0, 0.0, 0.0]), num_nodes=5)
    assert np.array_equal(structural(weighted, names(5), seed=0), structural(star, names(5), seed=0))
