"""A hash that is equal for equal graphs."""

from hashlib import sha256

import torch
from torch import Tensor
from torch_geometric.data import Data


def fingerprint(data: Data) -> str:
    """The sha256 of all tensors of a graph."""
    digest = sha256()
    for key in sorted(data.keys()):
        value = data[key]
        if isinstance(value, Tensor):
            sparse = value.layout == torch.sparse_csr
            for part in (value.crow_indices(), value.col_indices(), value.values()) if sparse else (value,):
                digest.update(f"{key}{part.dtype}{list(part.shape)}".encode())
                digest.update(part.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
