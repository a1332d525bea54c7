"""Architectures by name: each a frozen dataclass of settings that builds R models as one network."""

from collections.abc import Callable

from bangs.learners.models.base import Architecture
from bangs.learners.models.convolutions import GCN, SGC, GraphSAGE
from bangs.learners.models.gat import GAT
from bangs.learners.models.gcnii import GCNII
from bangs.learners.models.gin import GIN
from bangs.learners.models.propagated import APPNP, GRAND

MODELS: dict[str, Callable[..., Architecture]] = {
    "gcn": GCN,
    "graphsage": GraphSAGE,
    "gat": GAT,
    "gin": GIN,
    "appnp": APPNP,
    "sgc": SGC,
    "gcnii": GCNII,
    "grand": GRAND,
}

__all__ = ["APPNP", "GAT", "GCN", "GCNII", "GIN", "GRAND", "MODELS", "SGC", "Architecture", "GraphSAGE"]
