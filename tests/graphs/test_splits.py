"""Splits are disjoint, seeded, and refuse what cannot be drawn."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.types import Split
from bangs.errors import InvalidInput
from bangs.graphs import splits

Y = torch.arange(200) % 4


def sizes(split: Split) -> list[tuple[int, int, int]]:
    return [
        (int(a.sum()), int(b.sum()), int(c.sum())) for a, b, c in zip(split.train, split.val, split.test, strict=True)
    ]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(1, 20), st.lists(st.integers(0, 99), min_size=1, max_size=4), st.integers(0, 9))
def test_every_class_gets_its_number(n: int, val: int, seeds: list[int], unknown: int) -> None:
    y = torch.cat([torch.full((unknown,), -1), Y])
    split = splits.per_class(y, n, val, 30, seeds)
    for run in range(len(seeds)):
        assert torch.bincount(y[split.train[run]]).tolist() == [n] * 4
    assert sizes(split) == [(4 * n, val, 30)] * len(seeds)
    assert not (split.train | split.val | split.test)[:, :unknown].any()


def test_the_exam_may_take_all_that_is_left() -> None:
    assert sizes(splits.per_class(Y, 5, 20, None, [0])) == [(20, 20, 160)]


def test_all_nodes_of_a_class_and_all_that_are_left_may_be_taken() -> None:
    assert sizes(splits.per_class(Y, 5, 100, 80, [0])) == [(20, 100, 80)]
    small = torch.cat([Y, torch.tensor([4, 4])])
    assert splits.per_class(small, 2, 10, 10, [0]).train[0, -2:].all()


def test_a_class_too_small_is_named() -> None:
    y = torch.cat([Y, torch.tensor([4, 4])])
    with pytest.raises(InvalidInput, match="class 4 has 2 nodes, but the split needs 3 per class"):
        splits.per_class(y, 3, 10, 10, [0])


def test_an_unused_class_number_is_a_class_too_small() -> None:
    with pytest.raises(InvalidInput, match="class 1 has 0 nodes"):
        splits.per_class(torch.tensor([0, 0, 2, 2]), 1, 1, None, [0])


def test_more_validation_than_nodes_is_refused() -> None:
    with pytest.raises(InvalidInput, match="leave 180 labelled nodes, but val \\+ test need 200"):
        splits.per_class(Y, 5, 100, 100, [0])


@pytest.mark.parametrize(("n", "val", "test"), [(0, 1, 1), (1, 0, 1), (1, 1, -1)])
def test_numbers_below_their_bounds_are_refused(n: int, val: int, test: int) -> None:
    with pytest.raises(InvalidInput, match="at least 1"):
        splits.per_class(Y, n, val, test, [0])


def test_shares_are_the_papers_counts_on_lastfm_and_flickr() -> None:
    assert sizes(splits.by_share(torch.arange(7624) % 18, 0.05, 0.15, [1])) == [(381, 1143, 6100)]
    assert sizes(splits.by_share(torch.arange(89250) % 7, 0.05, 0.15, [1])) == [(4462, 13387, 71401)]


def test_a_share_that_is_a_whole_number_is_taken_as_one() -> None:
    assert sizes(splits.by_share(Y[:100], 0.29, 0.57, [0])) == [(29, 57, 14)]


def test_nodes_without_a_label_are_never_drawn() -> None:
    y = torch.where(torch.arange(200) < 50, -1, Y)
    split = splits.by_share(y, 0.2, 0.2, [0, 1])
    assert not (split.train | split.val | split.test)[:, :50].any()
    assert sizes(split) == [(30, 30, 90)] * 2


@pytest.mark.parametrize("shares", [(0.0, 0.5), (0.5, 0.0), (0.5, 0.5), (-0.1, 0.5), (float("nan"), 0.5)])
def test_shares_outside_their_range_are_refused(shares: tuple[float, float]) -> None:
    with pytest.raises(InvalidInput, match="must be positive and sum to less than 1"):
        splits.by_share(Y, *shares, [0])


def test_an_empty_share_is_refused() -> None:
    with pytest.raises(InvalidInput, match="0 training and 30 validation"):
        splits.by_share(Y, 0.001, 0.15, [0])


def test_training_nodes_of_one_class_are_refused_with_the_run_named() -> None:
    y = torch.zeros(100, dtype=torch.long)
    y[0] = 1
    with pytest.raises(InvalidInput, match=r"run 0 \(seed 3\) are all of one class"):
        splits.by_share(y, 0.02, 0.1, [3])


def test_a_graph_without_labels_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no labels to split"):
        splits.default(Data(num_nodes=3), [0])
    with pytest.raises(InvalidInput, match="no node has a label"):
        splits.by_share(torch.full((5,), -1), 0.2, 0.2, [0])


@pytest.mark.parametrize(
    "draw", [lambda s: splits.per_class(Y, 5, 20, 30, s), lambda s: splits.by_share(Y, 0.1, 0.2, s)]
)
def test_a_run_depends_on_its_seed_alone(draw: object) -> None:
    assert callable(draw)
    alone, in_batch = draw([7]), draw([3, 7])
    for name in ("train", "val", "test"):
        assert torch.equal(getattr(alone, name)[0], getattr(in_batch, name)[1])
    assert not torch.equal(in_batch.train[0], in_batch.train[1])


def masked(columns: int | None) -> Data:
    node = torch.arange(12)
    masks = [node % 3 == part for part in range(3)]
    if columns is not None:
        masks = [torch.stack([mask.roll(shift) for shift in range(columns)], dim=1) for mask in masks]
    data = Data(y=node % 2, num_nodes=12)
    data.train_mask, data.val_mask, data.test_mask = masks
    return data


def test_a_graph_may_be_marked_with_a_split() -> None:
    split = splits.per_class(Y, 5, 20, 30, [0, 1])
    marked = splits.public(splits.mark(Data(y=Y, num_nodes=200), split), 1)
    for name in ("train", "val", "test"):
        assert torch.equal(getattr(marked, name)[0], getattr(split, name)[0])


def test_public_masks_serve_every_run() -> None:
    split = splits.public(masked(None), 3)
    assert split.train.shape == (3, 12)
    assert torch.equal(split.train[2], masked(None).train_mask)


def test_of_several_public_splits_each_run_takes_its_own() -> None:
    data = masked(10)
    by_run, by_seed = splits.public(data, 12), splits.default(data, [23, 4])
    assert torch.equal(by_run.val[11], data.val_mask[:, 1])
    assert torch.equal(by_seed.test[0], data.test_mask[:, 3])
    assert torch.equal(by_seed.test[1], data.test_mask[:, 4])


def test_the_default_is_public_where_there_is_one_and_by_share_elsewhere() -> None:
    assert torch.equal(splits.default(masked(None), [5]).train, splits.public(masked(None), 1).train)
    assert sizes(splits.default(Data(y=Y, num_nodes=200), [5])) == [(10, 30, 160)]


def test_a_graph_without_masks_has_no_public_split() -> None:
    assert not splits.has_public(Data(y=Y, num_nodes=200))
    with pytest.raises(InvalidInput, match="no public split"):
        splits.public(Data(y=Y, num_nodes=200), 1)


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 1), st.integers(2, 6), st.integers(0, 99))
def test_exactly_the_share_of_training_and_validation_labels_is_wrong(share: float, classes: int, seed: int) -> None:
    y = torch.arange(300) % classes
    split = splits.per_class(y, 10, 40, None, [seed, seed + 1])
    wrong = splits.noisy(y, split, share, [seed, seed + 1], classes)
    trained_or_validated = split.train | split.val
    changed = wrong != y
    expected = int(share * (10 * classes + 40) + 0.5)
    assert changed.sum(1).tolist() == [expected, expected]
    assert not changed[~trained_or_validated].any()
    assert int(wrong.min()) >= 0
    assert int(wrong.max()) < classes


def test_wrong_labels_are_spread_evenly_over_the_other_classes() -> None:
    y = torch.zeros(30_000, dtype=torch.long)
    split = Split.repeated(torch.ones(30_000, dtype=torch.bool), ~y.bool() & False, ~y.bool() & False, 1)
    counts = torch.bincount(splits.noisy(y, split, 1.0, [0], 4)[0], minlength=4)
    assert counts[0] == 0
    assert (counts[1:] - 10_000).abs().max() < 500


def test_noise_depends_on_a_runs_seed_alone() -> None:
    split = splits.per_class(Y, 5, 20, None, [2, 9])

    def noise(runs: list[int], seeds: list[int]) -> Tensor:
        return splits.noisy(Y, split.only(runs), 0.5, seeds)

    assert torch.equal(noise([1], [9])[0], noise([0, 1], [2, 9])[1])


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_of_noise_outside_its_range_is_refused(share: float) -> None:
    with pytest.raises(InvalidInput, match=r"must lie in \[0, 1\]"):
        splits.noisy(Y, splits.per_class(Y, 5, 20, None, [0]), share, [0])


def test_noise_among_one_class_is_refused() -> None:
    empty = torch.zeros(1, 5, dtype=torch.bool)
    with pytest.raises(InvalidInput, match="at least two classes, got 1"):
        splits.noisy(torch.zeros(5, dtype=torch.long), Split(~empty, empty, empty), 0.1, [0])
