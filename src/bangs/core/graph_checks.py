"""Checks of a graph in memory: shapes, finite features, valid edges and weights."""

from typing import TYPE_CHECKING

import torch

from bangs.errors import InvalidInput

if TYPE_CHECKING:
    from torch_geometric.data import Data


def check_graph(data: "Data") -> int:
    """The number of nodes of a valid graph; raises `InvalidInput` if features or edges break a rule."""
    nodes = int(data.num_nodes or 0)
    if nodes == 0:
        raise InvalidInput("the graph has no nodes")
    if data.get("x") is None:
        raise InvalidInput("the graph has no features; set data.x, one row per node")
    if data.x.dim() != 2 or data.x.shape[1] == 0:
        raise InvalidInput(f"data.x must have shape [N, F] with at least one feature, got {list(data.x.shape)}")
    if data.x.layout not in (torch.strided, torch.sparse_csr):
        raise InvalidInput(f"data.x must be dense or CSR, got {data.x.layout}; convert it with to_sparse_csr()")
    if data.x.is_meta or (data.edge_index is not None and data.edge_index.is_meta):
        raise InvalidInput("the graph is on the 'meta' device, which holds no numbers; put it on a CPU or GPU")
    if data.x.shape[0] != nodes:
        raise InvalidInput(f"data.x has {data.x.shape[0]} rows, the graph has {nodes} nodes; they must agree")
    values = data.x.values() if data.x.layout == torch.sparse_csr else data.x
    if not (finite := torch.isfinite(values.float())).all():
        where = f" in row {int((~finite).any(1).nonzero()[0])}" if values is data.x else ""
        raise InvalidInput(
            f"features must be finite numbers, but X holds NaN, infinity or a number above 3e38{where}; "
            "fill or drop them"
        )
    edges = data.edge_index
    if edges is None or edges.dim() != 2 or edges.shape[0] != 2 or edges.is_floating_point() or edges.is_complex():
        got = "None" if edges is None else f"{edges.dtype} of shape {list(edges.shape)}"
        raise InvalidInput(f"data.edge_index must hold whole numbers of shape [2, E], got {got}")
    if edges.numel() and (int(edges.min()) < 0 or int(edges.max()) >= nodes):
        wrong = int(((edges < 0) | (edges >= nodes)).any(0).nonzero()[0])
        raise InvalidInput(
            f"edge {wrong} joins nodes {edges[:, wrong].tolist()}, but nodes are numbered 0 … {nodes - 1}"
        )
    weight = data.get("edge_weight")
    if weight is None:
        return nodes
    count = edges.shape[1]
    if weight.shape != (count,):
        raise InvalidInput(f"data.edge_weight must hold one number per edge [{count}], got shape {list(weight.shape)}")
    odd = ~(torch.isfinite(weight) & (weight >= 0))
    if odd.any():
        edge = int(odd.nonzero()[0])
        raise InvalidInput(
            f"data.edge_weight must hold finite, non-negative numbers, got {float(weight[edge])} for edge {edge}"
        )
    return nodes
