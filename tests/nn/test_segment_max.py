"""Maxima over neighbours and their gradients, of dense and of sparse features."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from bangs.graphs.sparse import Sparse
from bangs.nn import segment_max as segment_max_module
from bangs.nn.segment_max import SparseNeighbourMax, segment_max


def hop(*rows: list[float]) -> Sparse:
    return Sparse.of(sp.csr_array(np.array(rows, dtype=np.float32)))


def test_the_largest_by_hand_with_its_gradient_shared_by_ties():
    segments = hop([1, 1, 1], [0, 1, 1]).pattern
    x = torch.tensor([[3.0, -1.0], [3.0, -5.0], [2.0, -2.0]], requires_grad=True)
    maxima = segment_max(segments, x)
    assert maxima.tolist() == [[3, -1], [3, -2]]
    (maxima * torch.tensor([[4.0, 1.0], [10.0, 7.0]])).sum().backward()
    assert x.grad.tolist() == [[2, 1], [12, 0], [0, 7]]


@pytest.mark.parametrize("chunk", [1, 700, 2**20])
def test_gradients_of_maxima_summed_in_order_are_those_that_are_scattered(chunk, monkeypatch):
    monkeypatch.setattr(segment_max_module, "GPU_CHUNK", chunk)
    matrix = sp.csr_array(sp.random_array((30, 40), density=0.2, dtype=np.float32, rng=2) + sp.eye_array(30, 40))
    segments = Sparse.of(matrix).repeat(2).pattern
    x = torch.randint(0, 5, (80, 7), generator=torch.Generator().manual_seed(0)).float()  # so that many tie
    maxima = segment_max(segments, x)
    grad_output = torch.randn(maxima.shape, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        segment_max_module._segment_max_back_ordered(segments, x, maxima, grad_output),
        segment_max_module._segment_max_back(segments, x, maxima, grad_output),
    )


def test_features_laid_over_one_another_by_hand():
    """A feature that a neighbour lacks counts as zero: max(−3, 0) = 0, but max(−3, −1) = −1."""
    pair = hop([1, 1], [0, 1])
    x = Sparse.of(sp.csr_array(np.array([[0, -3, 2, 0], [5, -1, 0, 0]], dtype=np.float32)))
    overlaid = SparseNeighbourMax.of(pair.pattern, x.pattern)
    expected = [[5, -4, 4, 0], [10, -2, 0, 0]]
    assert overlaid(x.values, 1.0).csr.to_dense().tolist() == expected
    dropped = overlaid(x.values * torch.tensor([0.0, 1.0, 1.0, 2.0]), 1.0).csr.to_dense()
    assert dropped.tolist() == [[5, 0, 4, 0], [10, -4, 0, 0]]
