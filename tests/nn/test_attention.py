"""Attention weights over neighbours: by hand, with large scores, with their gradients and with dropout."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from bangs.graphs.sparse import Sparse
from bangs.nn.attention import Heads, aggregate, attention_weights, drop_weights
from tests.conftest import masks


def weights_of(heads: Heads, source: Tensor, target: Tensor) -> Tensor:
    """Attention weights as a dense matrix."""
    weights = attention_weights(heads, source, target)
    return Sparse(heads.pattern, weights).csr.to_dense()


def hop(*rows: list[float]) -> Sparse:
    return Sparse.of(sp.csr_array(np.array(rows, dtype=np.float32)))


def test_attention_by_hand():
    """Node 0 has a loop, which scores 0 − 2, below zero, and two edges from node 1, which score 3 − 2."""
    heads = Heads.of(hop([1, 2], [0, 1]), 1)
    source, target = torch.tensor([[[0.0], [3.0]]]), torch.tensor([[[-2.0], [5.0]]])
    first, second = math.exp(0.2 * -2), 2 * math.exp(1)
    expected = torch.tensor([[first, second], [0, first + second]]) / (first + second)
    torch.testing.assert_close(weights_of(heads, source, target), expected)


def test_heads_weigh_by_themselves():
    heads = Heads.of(hop([1, 1], [0, 1]), 2)
    source = torch.tensor([[[0.0, math.log(3.0)], [math.log(3.0), 0.0]]])
    actual = weights_of(heads, source, torch.zeros(1, 2, 2))
    expected = torch.tensor([[0.25, 0, 0.75, 0], [0, 0.75, 0, 0.25], [0, 0, 1, 0], [0, 0, 0, 1]])
    torch.testing.assert_close(actual, expected)
    z = torch.arange(8.0).view(1, 2, 2, 2)
    segments = aggregate(heads, attention_weights(heads, source, torch.zeros(1, 2, 2)), z)
    torch.testing.assert_close(
        segments[0, 0], torch.stack([0.25 * z[0, 0, 0] + 0.75 * z[0, 1, 0], 0.75 * z[0, 0, 1] + 0.25 * z[0, 1, 1]])
    )


@pytest.mark.parametrize("score", [-1e4, 1e4])
def test_large_scores_are_weighed_without_overflow(score):
    heads = Heads.of(hop([1, 1], [0, 1]), 1)
    torch.testing.assert_close(
        weights_of(heads, torch.full((1, 2, 1), score), torch.full((1, 2, 1), score)),
        torch.tensor([[0.5, 0.5], [0, 1]]),
    )


def test_attention_is_differentiable_in_scores_and_values():
    torch.manual_seed(0)
    heads = Heads.of(hop([1, 2, 0], [0, 1, 1], [1, 1, 1]), 2)
    heads = Heads(heads.pattern, heads.counts.double())
    parts = [torch.randn(1, 3, 2, *more, dtype=torch.float64, requires_grad=True) for more in ((), (), (4,))]
    assert torch.autograd.gradcheck(
        lambda source, target, z: aggregate(heads, attention_weights(heads, source, target), z),
        parts,
        check_undefined_grad=False,
    )


def test_dropped_weights_keep_their_mean():
    heads = Heads.of(hop(*np.ones((60, 60))).repeat(2), 2)
    dropped = drop_weights(heads, torch.ones(len(heads.pattern.cols)), 2, masks(1, 2), 0.6)
    assert dropped.unique().tolist() == pytest.approx([0, 2.5])
    assert dropped.view(2, -1).mean(1).tolist() == pytest.approx([1, 1], abs=0.1)
