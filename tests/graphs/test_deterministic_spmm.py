"""Products with a fixed order of sums equal those of scipy and of the CPU."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from bangs.graphs import deterministic_spmm
from bangs.graphs.deterministic_spmm import RowPieces
from bangs.graphs.sparse import Sparse

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, needs_gpu])]


def hubs(rows: int = 40, columns: int = 600, seed: int = 0) -> sp.csr_array:
    """A matrix with an empty row, short rows, and two that are full."""
    matrix = sp.random_array((rows, columns), density=0.05, format="lil", dtype=np.float32, rng=seed)
    matrix[1] = 0
    matrix[3] = matrix[17] = 0.5
    return sp.csr_array(matrix)


def product(ours: Sparse, dense: Tensor) -> Tensor:
    return deterministic_spmm.product(RowPieces.of(ours.pattern.rows), ours.pattern.cols, ours.values, dense)


def test_a_row_of_three_is_known_on_paper_in_pieces_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deterministic_spmm, "MAX_PIECE_LENGTH", 2)
    rows = torch.tensor([0, 3, 3, 4], dtype=torch.int32)
    pieces = RowPieces.of(rows)
    assert pieces.starts.tolist() == [0, 2, 3, 3, 4]
    assert pieces.merge is not None
    assert (pieces.merge.starts.tolist(), pieces.merge.merge) == ([0, 2, 3, 4], None)
    cols = torch.tensor([0, 1, 2, 0], dtype=torch.int32)
    product = deterministic_spmm.product(
        pieces, cols, torch.tensor([1.0, 10.0, 100.0, 5.0]), torch.tensor([[1.0], [2.0], [3.0]])
    )
    assert product.tolist() == [[321.0], [0.0], [5.0]]


def test_rows_no_longer_than_a_piece_are_not_cut() -> None:
    rows = torch.tensor(
        [0, deterministic_spmm.MAX_PIECE_LENGTH, deterministic_spmm.MAX_PIECE_LENGTH + 1], dtype=torch.int32
    )
    assert RowPieces.of(rows) == (rows, None)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("longest", [2, 3, 128])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_products_are_those_of_scipy(
    device: str, longest: int, kind: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deterministic_spmm, "MAX_PIECE_LENGTH", longest)
    matrix = hubs()
    ours = Sparse.of(matrix, device)
    ours = ours.with_values(ours.values.to(kind))
    for width in (1, 7, 40):
        dense = torch.randn(600, width, dtype=kind, generator=torch.Generator().manual_seed(width))
        found = product(ours, dense.to(device)).cpu()
        assert found.dtype == kind
        np.testing.assert_allclose(found.numpy(), matrix.astype(np.float64) @ dense.numpy(), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(found, Sparse.of(matrix).with_values(ours.values.cpu()).matmul(dense))


@pytest.mark.parametrize("device", DEVICES)
def test_the_transposes_pieces_are_cut_by_its_own_rows(device: str) -> None:
    ours = Sparse.of(sp.csr_array(hubs().T), device).repeat(2)
    pattern, order = ours.pattern.transposed
    dense = torch.randn(1200, 5, generator=torch.Generator().manual_seed(1))
    product = deterministic_spmm.product(pattern.pieces, pattern.cols, ours.values[order], dense.to(device)).cpu()
    expected = np.concatenate([hubs() @ part.numpy() for part in dense.split(600)])
    np.testing.assert_allclose(product.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_a_matrix_without_entries_multiplies_to_zero(device: str) -> None:
    empty = Sparse.of(sp.csr_array((3, 2), dtype=np.float32), device)
    assert product(empty, torch.ones(2, 4, device=device)).tolist() == [[0.0] * 4] * 3
