"""The labelled nodes that are held for validation if no split is given."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bangs.core.types import Split
from bangs.errors import InvalidInput
from bangs.graphs.splits import validation_split


def test_a_quarter_of_each_class_is_held() -> None:
    y = torch.tensor([0] * 8 + [1] * 4 + [-1] * 5)
    split = validation_split(y, None, seeds=[0, 1, 2])
    assert split.train.shape == (3, 17)
    for run in range(3):
        assert torch.bincount(y[split.val[run]]).tolist() == [2, 1]
        assert torch.bincount(y[split.train[run]]).tolist() == [6, 3]
    assert not split.test.any()


def test_two_nodes_of_a_class_are_shared() -> None:
    y = torch.tensor([0, 0, 1, 1])
    split = validation_split(y, None, seeds=range(5), share=0.9)
    assert split.train.sum(dim=1).tolist() == [2] * 5
    assert split.val.sum(dim=1).tolist() == [2] * 5


def test_a_class_seen_once_is_refused_with_a_remedy() -> None:
    with pytest.raises(InvalidInput, match=r"class 1 has one labelled node.*label a second one"):
        validation_split(torch.tensor([0, 0, 1, -1]), None, seeds=[0])


def test_given_validation_nodes_are_kept() -> None:
    y = torch.tensor([0, 1, 0, 1, 0, -1])
    node = torch.arange(6)
    given_split = Split((node < 2)[None], ((node == 2) | (node == 3))[None], (node == 4)[None])
    split = validation_split(y, given_split, seeds=[3, 4])
    for actual, expected in (
        (split.train, given_split.train),
        (split.val, given_split.val),
        (split.test, given_split.test),
    ):
        assert torch.equal(actual, expected.expand(2, -1))


def test_validation_nodes_are_training_nodes_and_no_test_nodes() -> None:
    y = torch.tensor([0, 0, 1, 1, 0, 1])
    node = torch.arange(6)
    given_split = Split((node < 4)[None], torch.zeros(1, 6, dtype=torch.bool), (node >= 4)[None])
    split = validation_split(y, given_split, seeds=[0])
    assert torch.equal(split.test, given_split.test)
    assert torch.equal(split.train | split.val, given_split.train)
    assert split.val.any()


def test_of_several_given_splits_runs_take_their_turn() -> None:
    y = torch.tensor([0, 1, 0, 1])
    train = torch.tensor([[True, True, False, False], [False, False, True, True]])
    split = validation_split(y, Split(train, ~train, torch.zeros_like(train)), seeds=[9, 9, 9])
    assert torch.equal(split.train, train[[0, 1, 0]])


@pytest.mark.parametrize("share", [0.0, 1.0, -1, 2])
def test_a_share_outside_the_unit_interval_is_refused(share: float) -> None:
    with pytest.raises(InvalidInput, match="share must lie between 0 and 1"):
        validation_split(torch.tensor([0, 0, 1, 1]), None, seeds=[0], share=share)


def test_no_seeds_and_a_split_of_another_graph_are_refused() -> None:
    y = torch.tensor([0, 0, 1, 1])
    with pytest.raises(InvalidInput, match="at least one seed"):
        validation_split(y, None, seeds=[])
    none = torch.zeros(1, 3, dtype=torch.bool)
    with pytest.raises(InvalidInput, match="given split has 3 nodes, y has 4"):
        validation_split(y, Split(none, none, none), seeds=[0])


@settings(max_examples=50, deadline=None)
@given(
    counts=st.lists(st.integers(2, 9), min_size=2, max_size=4),
    seeds=st.lists(st.integers(0, 2**40), min_size=1, max_size=4),
    share=st.floats(0.05, 0.95),
)
def test_every_class_is_learned_and_validated_and_a_run_depends_on_its_seed_alone(
    counts: list[int], seeds: list[int], share: float
) -> None:
    y = torch.cat([torch.full((count,), label) for label, count in enumerate(counts)] + [torch.full((3,), -1)])
    split = validation_split(y, None, seeds, share)
    assert torch.equal(split.train | split.val, (y >= 0).expand(len(seeds), -1))
    for run, seed in enumerate(seeds):
        assert (torch.bincount(y[split.train[run]], minlength=len(counts)) > 0).all()
        assert (torch.bincount(y[split.val[run]], minlength=len(counts)) > 0).all()
        assert torch.equal(validation_split(y, None, [seed], share).val[0], split.val[run])
