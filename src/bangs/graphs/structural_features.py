"""Features made from the edges alone, for graphs without features."""

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.graphs.edges import undirected
from bangs.graphs.sparse import Sparse, adjacency
from bangs.graphs.tables.fitted_encoding import Structural

WIDTH = 64  # columns; a code has one bit of a 64-bit hash for each
DIRECTIONS = 32  # eigenvectors
STRUCTURE_RULE = 2  # 1 = those of the largest eigenvalues, 2 = of the largest absolute values
_STEPS = 20
_STEPS_PER_ORTHOGONALISATION = 2


def structural(graph: Data, ids: npt.NDArray[np.object_], seed: int) -> npt.NDArray[np.float64]:
    """Degree, log(1 + degree) and a spectral position for every node: float [N, 2 + 64].

    Edges of weight 0 do not count; other weights are not used.

    The position is a spectral embedding of Ã = (D + I)^-½ (A + I) (D + I)^-½ with D the degrees of A + I; the added I
    keeps small components from taking all directions (Chaudhuri et al. 2012). Its 32 eigenvectors E with the
    largest |λ| are found by subspace iteration from R, a code of ±1 per node that depends on the node's id and the seed
    only. A negative λ separates nodes that connect to the other side, as in a graph of buyers and sellers.
    Eigenvectors are known up to a rotation, so they are rotated towards the codes: E Λ⁴ U Vᵀ with U S Vᵀ = Eᵀ R, where
    Λ⁴, the eigenvalues after four steps, gives stable directions more weight. If a graph has grown a little, the old
    nodes keep nearly their old positions, and a model fitted before can be used after. Between graphs that share no ids
    the positions cannot be compared.
    """
    nodes = len(ids)
    edges, weight = graph.edge_index.cpu(), graph.get("edge_weight")
    source, target = (edges if weight is None else edges[:, weight.cpu() > 0]).numpy()
    matrix = adjacency(undirected(source, target, nodes), loops=1.0, normalise="none")
    degree = np.diff(matrix.indptr).astype(np.float64) - 1
    scale = (1 / np.sqrt(degree + 2)).astype(np.float32)
    matrix.data *= np.repeat(scale, np.diff(matrix.indptr)) * scale[matrix.indices]
    positions = _spectral_positions(Sparse.of(matrix), _codes(ids, seed))
    return np.column_stack([degree, np.log1p(degree), positions.double().numpy()])


def standardised(
    graph: Data, ids: npt.NDArray[np.object_], seed: int, scaling: Structural | None = None
) -> tuple[npt.NDArray[np.float32], Structural]:
    """Standardised structural features: float [N, 66], and their scaling; a given `scaling` is applied as it is."""
    features = structural(graph, ids, seed if scaling is None else scaling.seed)
    if scaling is None:
        scale = features.std(axis=0)
        scales = np.where(scale > 1e-9, scale, 1.0)
        scaling = Structural(seed, tuple(features.mean(axis=0).tolist()), tuple(scales.tolist()))
    return ((features - np.array(scaling.means)) / np.array(scaling.scales)).astype(np.float32), scaling


def _spectral_positions(matrix: Sparse, codes: Tensor) -> Tensor:
    """The leading eigenvectors, rotated towards the codes: float [N, 64]."""
    basis = codes
    for step in range(_STEPS):
        basis = matrix @ basis
        if step % _STEPS_PER_ORTHOGONALISATION == _STEPS_PER_ORTHOGONALISATION - 1:
            basis = _orthonormal(basis)
    values, ritz = torch.linalg.eigh(_product(basis, matrix @ basis))
    order = values.abs().argsort(descending=True, stable=True)[:DIRECTIONS]
    leading = basis @ ritz[:, order].float()
    confidence = values[order, None] ** 4
    left, _, right = torch.linalg.svd(_product(leading, codes), full_matrices=False)
    # times √N: the columns of an orthonormal basis shrink as a graph grows
    positions: Tensor = leading @ (confidence * (left @ right)).float() * len(codes) ** 0.5
    return positions


def _orthonormal(basis: Tensor) -> Tensor:
    """An orthonormal basis of the same span, by its Gram matrix; directions of no length become zero."""
    values, vectors = torch.linalg.eigh(_product(basis, basis))
    shrink = torch.where(values > 1e-9 * values[-1], values.clamp_min(1e-300).rsqrt(), 0.0)
    orthonormal: Tensor = basis @ (vectors * shrink).float()
    return orthonormal


def _product(left: Tensor, right: Tensor) -> Tensor:
    return (left.T @ right).double()


def _codes(ids: npt.NDArray[np.object_], seed: int) -> Tensor:
    """A random sign for each node and column, a function of id and seed only: ±1 [N, 64]."""
    hashed = pd.util.hash_array(ids, hash_key=f"{seed % 10**16:016d}", categorize=False)
    bits = (hashed[:, None] >> np.arange(WIDTH, dtype=np.uint64)) & np.uint64(1)
    return torch.from_numpy((2.0 * bits - 1.0).astype(np.float32))
