"""Applying: a trained model on a graph it has not seen, as honest there as where it was validated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.calibration.calibrators import Calibrator
from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Task
from bangs.errors import InvalidInput
from bangs.graphs.store import StoredGraph, StoreReference
from bangs.nn.ensemble import Network
from bangs.nn.models import Architecture
from bangs.nn.subgraphs import PreparedGraph
from bangs.runs.snapshot import Snapshot
from bangs.training.layerwise import Layerwise
from bangs.training.sampling import Sampler, Sampling


def apply(
    architecture: Architecture,
    weights: Mapping[str, Tensor],
    classes: int,
    graph: Data | StoredGraph,
    place: torch.device,
    memory: int = Sampling.memory,
) -> Tensor:
    """What a model with these weights [1, …] says of every node of a graph: logits [1, N, C], on the CPU.

    A graph on disk goes through the model layer by layer, with about `memory` bytes in use beside the logits.
    """
    network = architecture.build(int(graph.x.shape[1]), classes, Streams((0,))).to(place)
    network.load(weights)
    with torch.no_grad():
        if isinstance(graph, StoredGraph):
            check_staged(network, architecture)
            return Layerwise(memory)(network, Sampler.of(graph, network.loops, network.normalise), 1).cpu()
        subgraph = PreparedGraph.of(graph.to(place), 1, network.loops, network.normalise).whole
        logits: Tensor = network(subgraph, None)
    return logits.cpu()


def calibrate_beside(old: Snapshot, logits: Tensor, graph: Data | StoredGraph, calibrate: Calibrator) -> Tensor:
    """Logits [N, C] of new nodes, calibrated in the company of the nodes whose labels were held for validation."""
    new = int(graph.num_nodes or 0)
    mapped = isinstance(graph, StoredGraph) or isinstance(old.graph, StoreReference)
    both = _Apart(old.nodes + new) if mapped else _side_by_side(old.graph, graph)
    nobody = torch.full((new,), -1)
    given, held = (torch.cat([part, nobody])[None] for part in (old.given, old.held))
    task = Task(both, Labels.given(given), held, old.classes)
    return calibrate(Prediction(torch.cat([old.raw[None], logits], dim=1)), task).logits[0, old.nodes :]


@dataclass(frozen=True)
class _Apart:
    """Two graphs as one, for calibrators that look at no edges; one of them stays on the disk."""

    num_nodes: int

    @property
    def edge_index(self) -> Tensor:
        raise InvalidInput(
            "the model's calibrator looks at edges, and a graph on disk is not read whole; "
            "fit the model with --calibrator ets, temperature or vector"
        )

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)


def _side_by_side(old: Data, graph: Data) -> Data:
    before, new = int(old.num_nodes or 0), int(graph.num_nodes or 0)
    edges = torch.cat([old.edge_index, graph.edge_index.cpu() + before], dim=1)
    both = Data(edge_index=edges, num_nodes=before + new)
    if old.get("edge_weight") is not None or graph.get("edge_weight") is not None:
        both.edge_weight = torch.cat([_weights(old), _weights(graph)])
    return both


def check_staged(network: Network, architecture: Architecture) -> None:
    """Raises where a model cannot go layer by layer over a graph on disk."""
    if network.hops is None or not network.staged:
        raise InvalidInput(
            f"a {type(architecture).__name__} needs the whole graph at once, and one on disk is not read whole; "
            "gcn, graphsage and sgc go layer by layer"
        )


def _weights(graph: Data) -> Tensor:
    weight = graph.get("edge_weight")
    return torch.ones(graph.edge_index.shape[1]) if weight is None else weight.cpu()
