"""Structure: features for nodes that came without any, made from the edges alone."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp

WIDTH = 64  # codes have one bit of a 64-bit hash per column
DIRECTIONS = 32
_STEPS = 20
_TOGETHER = 3  # products between two orthogonalisations


def structural(
    edge_index: npt.NDArray[np.int64],
    weight: npt.NDArray[np.float32] | None,
    ids: npt.NDArray[np.object_],
    seed: int,
) -> npt.NDArray[np.float32]:
    """Degree, log(1 + degree) and a place in the graph for every node: float [N, 2 + 64].

    The place is a spectral embedding of Ã = (D + 1)^-½ (A + I) (D + 1)^-½ with D the degrees of A + I, the 1 added
    so that small components do not take all directions (Chaudhuri et al. 2012). Its 32 leading eigenvectors E are
    found by subspace iteration from R, a code of ±1 per node that depends on the node's id and the seed only.
    Eigenvectors are known up to a rotation, so they are turned towards the codes: E U Vᵀ with U S Vᵀ = Eᵀ R. A
    graph that has grown a little therefore gives the old nodes nearly their old places, and a model fitted before
    can be used after; between graphs that share no ids the places cannot be compared.
    """
    nodes = len(ids)
    values = np.ones(edge_index.shape[1], np.float32) if weight is None else weight
    both = sp.coo_array((values, (edge_index[0], edge_index[1])), shape=(nodes, nodes)).tocsr()
    symmetric = sp.csr_array(both.maximum(both.T))
    degree = np.asarray(symmetric.sum(axis=1)).ravel().astype(np.float64)
    places = _places(symmetric, degree, _codes(ids, seed))
    return np.column_stack([degree, np.log1p(degree), places]).astype(np.float32)


def _places(
    matrix: "sp.csr_array[Any]",
    degree: npt.NDArray[np.float64],
    codes: npt.NDArray[np.float32],
) -> npt.NDArray[np.float64]:
    nodes = len(degree)
    scale = sp.diags_array((1 / np.sqrt(degree + 2)).astype(np.float32))
    step = sp.csr_array(scale @ (matrix + sp.eye_array(nodes, dtype=np.float32)) @ scale)
    basis = codes[:, : min(WIDTH, nodes)].astype(np.float64)
    for turn in range(_STEPS):
        basis = step @ basis
        if turn % _TOGETHER == _TOGETHER - 1 or turn == _STEPS - 1:
            basis = np.linalg.qr(basis)[0]
    ritz = np.linalg.eigh(basis.T @ (step @ basis))[1]
    leading = basis @ ritz[:, ::-1][:, :DIRECTIONS]
    left, _, right = np.linalg.svd(leading.T @ codes, full_matrices=False)
    # times √N: columns of an orthonormal basis shrink as a graph grows
    places: npt.NDArray[np.float64] = leading @ (left @ right) * np.sqrt(nodes)
    return places


def _codes(ids: npt.NDArray[np.object_], seed: int) -> npt.NDArray[np.float32]:
    """A random sign per node and column, a pure function of id and seed: ±1 [N, 64]."""
    hashed = pd.util.hash_array(ids, hash_key=f"{seed % 10**16:016d}", categorize=False)
    bits = (hashed[:, None] >> np.arange(WIDTH, dtype=np.uint64)) & np.uint64(1)
    return (2.0 * bits - 1.0).astype(np.float32)
