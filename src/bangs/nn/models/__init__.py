"""The architectures by name; each is a frozen dataclass of settings whose `build` returns R models as one network."""

from collections.abc import Callable

from bangs.nn.models.appnp import APPNP
from bangs.nn.models.base import Architecture
from bangs.nn.models.gat import GAT
from bangs.nn.models.gcn import GCN
from bangs.nn.models.gcnii import GCNII
from bangs.nn.models.gin import GIN
from bangs.nn.models.grand import GRAND
from bangs.nn.models.graphsage import GraphSAGE
from bangs.nn.models.sgc import SGC

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
