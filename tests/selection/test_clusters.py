"""k-means clusters and their class labels."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from bangs.core.rng import Streams
from bangs.core.types import Labels
from bangs.selection.clusters import centroids, cluster_labels, kmeans, nearest


def blobs(each: int = 20, seed: int = 0) -> torch.Tensor:
    """Two clouds of points, around (0, 0) and (10, 10)."""
    noise = torch.randn(2 * each, 2, generator=torch.Generator().manual_seed(seed))
    return noise + 10.0 * (torch.arange(2 * each) >= each)[:, None]


def test_two_clouds_are_separated():
    points = blobs()
    centres, member = kmeans(points, points[:2], steps=50)
    assert member[:20].unique().numel() == member[20:].unique().numel() == 1
    assert member[0] != member[20]
    torch.testing.assert_close(centres[member[0]], points[:20].mean(0))


@pytest.mark.parametrize("seed", range(5))
def test_the_steps_are_scikit_learns(seed):
    points = torch.randn(60, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    start = points[:7]
    centres, member = kmeans(points, start, steps=300)
    twin = KMeans(7, init=start.numpy(), n_init=1, max_iter=300, tol=0.0, algorithm="lloyd").fit(points.numpy())
    assert np.array_equal(member.numpy(), twin.labels_)
    np.testing.assert_allclose(centres.numpy(), twin.cluster_centers_)


def test_every_point_belongs_to_the_nearest_centre_however_few_the_steps():
    points = blobs()
    centres, member = kmeans(points, points[[0, 1, 25]], steps=1)
    assert torch.equal(member, torch.cdist(points, centres).argmin(1))


def test_an_empty_cluster_stays_where_it_is():
    points = torch.tensor([[0.0], [1.0]])
    centres, member = kmeans(points, torch.tensor([[0.0], [1.0], [50.0]]), steps=5)
    assert centres.tolist() == [[0.0], [1.0], [50.0]]
    assert member.tolist() == [0, 1]


def test_equal_points_make_one_cluster():
    centres, member = kmeans(torch.ones(6, 2), torch.ones(3, 2), steps=5)
    assert centres.tolist() == [[1.0, 1.0]] * 3
    assert member.unique().numel() == 1


def test_a_cluster_takes_the_name_of_the_nearest_class():
    points = torch.tensor([[0.0], [2.0], [10.0], [12.0]])
    classes, means = centroids(points, torch.tensor([0, 0, 2, -1]))
    assert classes.tolist() == [0, 2]
    assert means.tolist() == [[1.0], [10.0]]
    assert nearest(torch.tensor([[3.0], [40.0]]), classes, means).tolist() == [0, 2]


def task_of_two_clouds() -> tuple[torch.Tensor, torch.Tensor, Labels]:
    points = blobs()[None].expand(2, -1, -1)
    target = torch.full((2, 40), -1)
    target[:, 0], target[:, 20] = 3, 1  # class 0 and 2 have no labelled node
    labels = Labels.given(target)
    return points, ~labels.known, labels


def test_nodes_inherit_the_name_of_their_cluster():
    points, pool, labels = task_of_two_clouds()
    name = cluster_labels(points, pool, labels, 8, 20, Streams((0, 1)).generators())
    assert (name[:, 1:20] == 3).all()
    assert (name[:, 21:] == 1).all()
    assert (name[:, [0, 20]] == -1).all()


def test_nodes_of_a_single_cluster_have_one_name():
    points, pool, labels = task_of_two_clouds()
    name = cluster_labels(points, pool, labels, 1, 20, Streams((0, 1)).generators())
    assert [len(run_labels[free].unique()) for run_labels, free in zip(name, pool, strict=True)] == [1, 1]


def test_there_may_be_more_clusters_than_nodes_and_no_nodes_at_all():
    points, pool, labels = task_of_two_clouds()
    pool = pool & (torch.arange(40) < 3) & torch.tensor([[True], [False]])
    name = cluster_labels(points, pool, labels, 200, 20, Streams((0, 1)).generators())
    assert name[0, :4].tolist() == [-1, 3, 3, -1]
    assert (name[1] == -1).all()


def test_a_run_is_clustered_from_its_own_stream():
    points = torch.randn(1, 50, 2, generator=torch.Generator().manual_seed(0)).expand(2, -1, -1)
    target = torch.full((2, 50), -1)
    target[:, :4] = torch.arange(4)
    labels = Labels.given(target)
    together = cluster_labels(points, ~labels.known, labels, 5, 3, Streams((4, 5)).generators())
    alone = cluster_labels(points[1:], ~labels.known[1:], Labels.given(target[1:]), 5, 3, Streams((5,)).generators())
    assert torch.equal(together[1], alone[0])
    assert not torch.equal(together[0], together[1])
