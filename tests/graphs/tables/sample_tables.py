"""A small valid folder of tables, which tests modify."""

from pathlib import Path

import torch
from torch_geometric.data import Data

NODES = """id,height,colour,label
a,1.5,red,cat
b,2.5,blue,cat
c,0.5,red,dog
d,3.5,blue,dog
e,3.0,green,
f,1.0,green,
"""

EDGES = """source,target
a,b
c,d
a,c
b,e
d,f
"""


def folder(path: Path, nodes: str | bytes | None = NODES, edges: str | bytes | None = EDGES, **others: bytes) -> Path:
    """The path, with nodes.csv, edges.csv and other files in it; None leaves a table out."""
    for name, content in (("nodes.csv", nodes), ("edges.csv", edges), *others.items()):
        if content is not None:
            name = name.replace("__", ".")
            (path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def edges_of(data: Data) -> dict[tuple[int, int], float]:
    """The weight of every edge, one without a weight counting one."""
    weight = data.get("edge_weight")
    weight = torch.ones(data.num_edges) if weight is None else weight
    return {(int(s), int(t)): float(w) for s, t, w in zip(*data.edge_index, weight, strict=True)}
