"""GraphSAGE: a GCN that takes the mean of a node and its neighbours."""

from dataclasses import dataclass

from bangs.core.rng import Streams
from bangs.nn.ensemble import Network
from bangs.nn.models.base import Checked
from bangs.nn.models.gcn import Convolutions


@dataclass(frozen=True)
class GraphSAGE(Checked):
    """Mean aggregation (Hamilton et al. 2017) in DGL's 'gcn' form, as in the paper: H' = σ(D⁻¹(A + 2I) H W + b)."""

    hidden: int = 128
    layers: int = 2
    dropout: float = 0.3
    input_dropout: float = 0.3
    loops: float = 2.0

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return Convolutions(self, features, classes, rng, "row")
