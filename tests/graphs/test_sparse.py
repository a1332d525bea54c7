"""Sparse products agree with dense ones, forward and backward."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.sparse import (
    MIN_EMBEDDING_BAG_COLUMNS,
    Pattern,
    Sparse,
    adjacency,
    batched_adjacency,
    to_scipy,
    to_torch,
)


def matrix(rows: int, columns: int, seed: int = 0, density: float = 0.3) -> sp.csr_array:
    return sp.csr_array(sp.random(rows, columns, density, random_state=np.random.RandomState(seed), dtype=np.float32))


def dense(sparse: sp.csr_array) -> torch.Tensor:
    return torch.from_numpy(sparse.toarray().astype(np.float32))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 5), st.integers(0, 1000))
def test_a_product_and_its_gradient_equal_the_dense_ones(rows: int, columns: int, width: int, seed: int) -> None:
    ours = matrix(rows, columns, seed)
    weight = torch.randn(columns, width, generator=torch.Generator().manual_seed(seed))
    twin = weight.clone().requires_grad_()
    weight.requires_grad_()
    product, expected = Sparse.of(ours) @ weight, dense(ours) @ twin
    torch.testing.assert_close(product, expected)
    product.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(weight.grad, twin.grad)


@pytest.mark.parametrize("width", [3, MIN_EMBEDDING_BAG_COLUMNS])
def test_a_share_of_something_else_is_added_to_a_product(width: int) -> None:
    ours, x, y = matrix(7, 5), torch.randn(5, width), torch.randn(7, width)
    torch.testing.assert_close(Sparse.of(ours).matmul(x, y, 0.15), dense(ours) @ x + 0.15 * y)
    torch.testing.assert_close(Sparse.of(ours).matmul_transposed(y, x, 0.15), dense(ours).T @ y + 0.15 * x)


def test_a_product_of_what_needs_no_gradient_has_none() -> None:
    assert not (Sparse.of(matrix(4, 3)) @ torch.ones(3, 2)).requires_grad


def test_the_transpose_of_the_transpose_is_the_matrix() -> None:
    ours = matrix(7, 5)
    transposed = Sparse.of(ours).T
    x = torch.randn(7, 3)
    torch.testing.assert_close(transposed @ x, dense(ours).T @ x)
    torch.testing.assert_close(transposed.T @ torch.eye(5), dense(ours))


def test_other_values_keep_the_pattern_and_the_gradient() -> None:
    ours = Sparse.of(matrix(6, 4))
    doubled = ours.with_values(ours.values * 2)
    weight = torch.randn(4, 2, requires_grad=True)
    (doubled @ weight).sum().backward()
    torch.testing.assert_close(weight.grad, 2 * (ours.T @ torch.ones(6, 2)))


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_copies_along_the_diagonal_serve_every_run(runs: int) -> None:
    ours = matrix(5, 4)
    weight = torch.randn(runs * 4, 2, requires_grad=True)
    copies = Sparse.of(ours).repeat(runs)
    assert copies.shape == (runs * 5, runs * 4)
    expected = torch.cat([dense(ours) @ part for part in weight.detach().split(4)])
    product = copies @ weight
    torch.testing.assert_close(product.detach(), expected)
    product.sum().backward()
    torch.testing.assert_close(weight.grad, (dense(ours).T @ torch.ones(5, 2)).repeat(runs, 1))


def test_the_transpose_of_copies_keeps_every_runs_own_values() -> None:
    copies = Sparse.of(matrix(5, 4)).repeat(3)
    own = copies.with_values(torch.rand_like(copies.values))
    whole = own @ torch.eye(12)
    torch.testing.assert_close(own.T @ torch.eye(15), whole.T)


def test_a_matrix_without_entries_multiplies_to_zero() -> None:
    assert (Sparse.of(sp.csr_array((3, 2), dtype=np.float32)) @ torch.ones(2, 2)).abs().sum() == 0


def test_moving_to_a_device_keeps_the_matrix() -> None:
    ours = Sparse.of(matrix(4, 4))
    torch.testing.assert_close(ours.to("cpu") @ torch.eye(4), ours @ torch.eye(4))


def test_torch_and_scipy_are_two_spellings_of_one_matrix() -> None:
    ours = matrix(6, 3)
    assert to_torch(ours).layout == torch.sparse_csr
    assert (to_scipy(to_torch(ours)) != ours).nnz == 0


PATH = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=4)  # 0 - 1 - 2, and 3 alone


def test_a_row_normalised_path_is_known_on_paper() -> None:
    expected = [[1 / 2, 1 / 2, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [0, 1 / 2, 1 / 2, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(adjacency(PATH).toarray(), expected, rtol=1e-6)


def test_a_symmetrically_normalised_path_is_known_on_paper() -> None:
    a = 1 / np.sqrt(6)
    expected = [[1 / 2, a, 0, 0], [a, 1 / 3, a, 0], [0, a, 1 / 2, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(adjacency(PATH, normalise="symmetric").toarray(), expected, rtol=1e-6)


def test_two_loops_weigh_a_node_twice() -> None:
    np.testing.assert_allclose(adjacency(PATH, loops=2.0).toarray()[1], [1 / 4, 1 / 2, 1 / 4, 0], rtol=1e-6)


def test_without_loops_a_lonely_node_has_an_empty_row() -> None:
    assert adjacency(PATH, loops=0.0).toarray()[3].tolist() == [0, 0, 0, 0]


def test_rows_belong_to_the_targets_of_edges() -> None:
    arrow = Data(edge_index=torch.tensor([[0], [1]]), edge_weight=torch.tensor([3.0]), num_nodes=2)
    assert adjacency(arrow, loops=0.0, normalise="none").toarray().tolist() == [[0, 0], [3, 0]]
    np.testing.assert_allclose(adjacency(arrow).toarray(), [[1, 0], [3 / 4, 1 / 4]])


def test_count_is_the_multiplicity_of_an_edge_whatever_its_weight():
    graph = Data(
        edge_index=torch.tensor([[0, 0, 1], [1, 1, 1]]), edge_weight=torch.tensor([0.0, 5.0, 2.0]), num_nodes=2
    )
    assert adjacency(graph, 1.0, "count").toarray().tolist() == [[1, 0], [2, 2]]


def test_graphs_of_one_size_stand_along_one_diagonal() -> None:
    one = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    other = Data(edge_index=torch.tensor([[2, 2], [0, 1]]), num_nodes=3)
    blocks = [torch.from_numpy(adjacency(graph).toarray()) for graph in (one, other)]
    torch.testing.assert_close(batched_adjacency([one, other]) @ torch.eye(6), torch.block_diag(*blocks))


def test_repeated_edges_add_up_to_one_entry() -> None:
    graph = Data(edge_index=torch.tensor([[0, 0, 1], [1, 1, 0]]), num_nodes=2)
    matrix = adjacency(graph, 1.0, "none")
    assert matrix.nnz == 4
    assert matrix.toarray().tolist() == [[1.0, 1.0], [2.0, 1.0]]


def test_a_matrix_too_large_for_its_indices_is_refused() -> None:
    few = torch.zeros(1, dtype=torch.int32)
    with pytest.raises(InvalidInput, match="Run fewer seeds at once"):
        Pattern(few.repeat(2), few.expand(2**31), (1, 1))
    with pytest.raises(InvalidInput, match=r"2,147,483,648 × 1 with 0 entries"):
        Pattern(few, few[:0], (2**31, 1))


def test_copies_too_many_for_the_indices_are_refused_before_they_are_made() -> None:
    one = Pattern(torch.tensor([0, 2**20], dtype=torch.int32), torch.zeros(1, dtype=torch.int32).expand(2**20), (1, 1))
    with pytest.raises(InvalidInput, match=r"2,048 × 2,048 with 2,147,483,648 entries is too large"):
        one.repeat(2**11)
