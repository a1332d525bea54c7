"""Check CSR arrays from files before their indices are used."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from bangs.errors import InvalidInput

Array = npt.NDArray[Any]


def checked_csr(
    values: Array, columns: Array, pointers: Array, shape: tuple[int, int], what: str
) -> "sp.csr_array[Any]":
    """The scipy CSR array [n, m] of these parts, with 64-bit indices; raises if an index is out of range."""
    entries = check_indices(pointers, columns, shape, what)
    if values.ndim != 1 or len(values) < entries:
        raise InvalidInput(f"{what} must have one value for each of its {entries} column numbers, got {len(values)}")
    parts = values[:entries], columns[:entries].astype(np.int64), pointers.astype(np.int64)
    return sp.csr_array(parts, shape=shape)


def check_indices(pointers: Array, columns: Array, shape: tuple[int, int], what: str) -> int:
    """The number of entries of a CSR matrix [n, m]; raises if a pointer or column number is out of range."""
    if any(array.ndim != 1 or array.dtype.kind not in "iu" for array in (pointers, columns)):
        raise InvalidInput(f"the row pointers and column numbers of {what} must be whole numbers in one dimension")
    starts = pointers.astype(np.int64)
    rows, width = shape
    if len(starts) != rows + 1 or starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] > len(columns):
        raise InvalidInput(
            f"the row pointers of {what} must be {rows + 1} numbers that rise from 0 to its {len(columns)} entries"
        )
    check_range(columns[: starts[-1]], width, f"the column numbers of {what}")
    return int(starts[-1])


def check_range(numbers: Array, count: int, what: str) -> None:
    """Raises if one of the numbers is not in 0 … count − 1."""
    if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < count:
        raise InvalidInput(f"{what} must be 0 … {count - 1}, got {int(numbers.min())} … {int(numbers.max())}")


def check_scipy(matrix: Any, what: str) -> None:
    """Raises if a scipy sparse matrix of any format has an index out of range."""
    rows, width = matrix.shape
    if matrix.format in ("csr", "csc", "bsr"):
        if matrix.format == "bsr":
            rows, width = rows // matrix.blocksize[0], width // matrix.blocksize[1]
        shape = (width, rows) if matrix.format == "csc" else (rows, width)
        entries = check_indices(matrix.indptr, matrix.indices, shape, what)
        if len(matrix.data) < entries:
            raise InvalidInput(f"{what} must have one value for each of its {entries} column numbers")
    elif matrix.format == "coo":
        for numbers, count, side in zip(matrix.coords, matrix.shape, ("row", "column"), strict=True):
            check_range(numbers, count, f"the {side} numbers of {what}")
