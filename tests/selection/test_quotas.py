"""Quotas take the right nodes, given their scores."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bangs.selection.quotas import Above, Balanced, Nobody, Top, TopPerClass

NEVER = float("-inf")
numbers = st.one_of(st.just(NEVER), st.floats(-5, 5, width=32))
scores = st.integers(1, 9).flatmap(
    lambda nodes: st.lists(st.lists(numbers, min_size=nodes, max_size=nodes), min_size=1, max_size=3)
)
SCORE = torch.tensor([[0.9, NEVER, 0.5, 0.7, 0.1], [NEVER, NEVER, 0.2, NEVER, NEVER]])
LABEL = torch.tensor([[0, 0, 1, 0, 1], [1, 1, 1, 1, 1]])


def taken(quota) -> list[list[int]]:
    return [row.nonzero().flatten().tolist() for row in quota(SCORE, LABEL)]


def drawn_labels(data: st.DataObject, score: torch.Tensor) -> torch.Tensor:
    """Labels of three classes in the shape of the scores."""
    row = st.lists(st.integers(0, 2), min_size=score.shape[1], max_size=score.shape[1])
    return torch.tensor([data.draw(row) for _ in score])


def test_top_by_hand():
    assert taken(Top(2)) == [[0, 3], [2]]
    assert taken(Top(2, floor=0.8)) == [[0], []]
    assert taken(Top(99)) == [[0, 2, 3, 4], [2]]


def test_top_per_class_by_hand():
    assert taken(TopPerClass(1)) == [[0, 2], [2]]
    assert taken(TopPerClass(2)) == [[0, 2, 3, 4], [2]]


def test_balanced_by_hand():
    """Classes 0: nodes 0, 3; class 1: nodes 2, 4. First the best of each, then the second best."""
    assert taken(Balanced(1)) == [[0], [2]]
    assert taken(Balanced(2)) == [[0, 2], [2]]
    assert taken(Balanced(3)) == [[0, 2, 3], [2]]
    assert taken(Balanced(9)) == [[0, 2, 3, 4], [2]]


def test_above_by_hand():
    assert taken(Above(0.5)) == [[0, 3], []]
    assert taken(Above(NEVER)) == [[0, 2, 3, 4], [2]]


def test_the_quota_nobody_takes_no_node():
    assert taken(Nobody()) == [[], []]


@given(rows=scores, k=st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_top_takes_k_of_those_allowed_and_none_better_is_left(rows, k):
    score = torch.tensor(rows)
    chosen = Top(k)(score, torch.zeros_like(score, dtype=torch.long))
    allowed = score > NEVER
    assert chosen.dtype == torch.bool
    assert not (chosen & ~allowed).any()
    assert torch.equal(chosen.sum(1), allowed.sum(1).clamp_max(k))
    for row, run_chosen in zip(score, chosen, strict=True):
        if run_chosen.any() and (~run_chosen).any():
            assert row[run_chosen].min() >= row[~run_chosen].max()


@given(rows=scores, k=st.integers(1, 4), data=st.data())
@settings(max_examples=30, deadline=None)
def test_top_per_class_is_top_of_every_class(rows, k, data):
    score = torch.tensor(rows)
    label = drawn_labels(data, score)
    chosen = TopPerClass(k)(score, label)
    assert not (chosen & (score == NEVER)).any()
    for index in range(3):
        of_class = label == index
        assert torch.equal((chosen & of_class).sum(1), (of_class & (score > NEVER)).sum(1).clamp_max(k))


@given(rows=scores, k=st.integers(1, 12), data=st.data())
@settings(max_examples=30, deadline=None)
def test_balanced_takes_k_in_turns(rows, k, data):
    score = torch.tensor(rows)
    label = drawn_labels(data, score)
    chosen = Balanced(k)(score, label)
    assert torch.equal(chosen.sum(1), (score > NEVER).sum(1).clamp_max(k))
    for own_score, own_label, run_chosen in zip(score, label, chosen, strict=True):
        counts = [int((run_chosen & (own_label == index)).sum()) for index in range(3)]
        for index in range(3):
            allowed = (own_label == index) & (own_score > NEVER)
            left = allowed & ~run_chosen
            if left.any():
                assert counts[index] >= max(counts) - 1, "a class with nodes to give is at most one turn behind"
                assert not run_chosen[allowed].any() or own_score[allowed & run_chosen].min() >= own_score[left].max()


@given(rows=scores)
@settings(max_examples=30, deadline=None)
def test_a_run_alone_equals_the_run_in_a_batch(rows):
    score = torch.tensor(rows)
    label = (torch.arange(score.shape[1]) % 2).expand_as(score)
    for quota in (Top(2), TopPerClass(1), Balanced(2), Above(0.0), Nobody()):
        alone = torch.cat([quota(score[run : run + 1], label[run : run + 1]) for run in range(len(score))])
        assert torch.equal(quota(score, label), alone)


def test_equal_scores_still_give_k():
    assert Top(3)(torch.zeros(2, 8), torch.zeros(2, 8, dtype=torch.long)).sum(1).tolist() == [3, 3]


def test_a_quota_is_a_value():
    assert Top(3) == Top(3) != Top(4)
    for quota in (Top(3), TopPerClass(2), Balanced(2), Above(0.5), Nobody()):
        assert eval(repr(quota), {**globals(), "inf": float("inf")}) == quota


@pytest.mark.parametrize("quota", [Top, TopPerClass, Balanced])
def test_no_node_a_round_is_refused(quota):
    with pytest.raises(ValueError, match=f"{quota.__name__}.k must be at least 1, got 0"):
        quota(0)


def test_classes_take_turns_by_hand():
    score = torch.tensor([[0.9, 0.8, 0.7, 0.2, 0.1, NEVER]])
    label = torch.tensor([[0, 0, 0, 1, 2, 1]])
    taken = [Balanced(k)(score, label)[0].nonzero().flatten().tolist() for k in (1, 2, 3, 4, 9)]
    assert taken == [[0], [0, 3], [0, 3, 4], [0, 1, 3, 4], [0, 1, 2, 3, 4]]


@given(
    rows=st.integers(1, 9).flatmap(
        lambda nodes: st.lists(
            st.lists(
                st.tuples(st.one_of(st.just(NEVER), st.floats(0, 1, width=32)), st.integers(0, 2)),
                min_size=nodes,
                max_size=nodes,
            ),
            min_size=1,
            max_size=3,
        )
    ),
    k=st.integers(1, 10),
)
@settings(max_examples=60, deadline=None)
def test_classes_in_turn_hold_equally_many_while_they_last(rows, k):
    score = torch.tensor([[value for value, _ in row] for row in rows])
    label = torch.tensor([[index for _, index in row] for row in rows])
    chosen = Balanced(k)(score, label)
    allowed = score > NEVER
    assert not (chosen & ~allowed).any()
    assert torch.equal(chosen.sum(1), allowed.sum(1).clamp_max(k))
    for run_chosen, may, run_label, value in zip(chosen, allowed, label, score, strict=True):
        counts = [int((run_chosen & (run_label == c)).sum()) for c in range(3)]
        for c in range(3):
            left = may & ~run_chosen & (run_label == c)
            if left.any():  # a class passed over while it had nodes is at most one behind
                assert max(counts) - counts[c] <= 1
                of_class = run_chosen & (run_label == c)
                assert not of_class.any() or value[of_class].min() >= value[left].max()
    alone = torch.cat([Balanced(k)(score[[run]], label[[run]]) for run in range(len(rows))])
    assert torch.equal(chosen, alone)


def test_a_balanced_quota_of_zero_is_refused():
    with pytest.raises(ValueError, match=r"Balanced.k must be at least 1, got 0"):
        Balanced(0)
