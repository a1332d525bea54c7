"""The architectures by name; each is a frozen dataclass of settings whose `build` returns R models as one network."""

from collections.abc import Callable

from bangs.nn.models.appnp_grand import APPNP, GRAND
from bangs.nn.models.base import Architecture
from bangs.nn.models.gat import GAT
from bangs.nn.models.gcn_sage_sgc import GCN, SGC, GraphSAGE
from bangs.nn.models.gcnii import GCNII
from bangs.nn.models.gin import GIN

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
