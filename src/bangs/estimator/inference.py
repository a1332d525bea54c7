"""Inference: trained models applied to another graph, and calibrated with the held-out nodes of the fit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.calibration.calibrators import ETS, Calibrator, Temperature, Uncalibrated, Vector
from bangs.calibration.proven_temperature import ProvenTemperature
from bangs.core import part_checks
from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Task
from bangs.errors import InvalidInput
from bangs.estimator.linear import PropagatedLinear
from bangs.graphs.edges import EdgeList
from bangs.graphs.sparse import edge_weights
from bangs.graphs.store import StoredGraph
from bangs.nn.ensemble import Network
from bangs.nn.models import Architecture
from bangs.nn.subgraphs import PreparedGraph
from bangs.runs.snapshot import Snapshot
from bangs.training.layerwise_inference import Layerwise
from bangs.training.neighbour_sampling import Sampler, Sampling

CALIBRATION_FOLDS = 5  # of the held-out nodes, to judge the calibration
_WITHOUT_EDGES = (Uncalibrated, Temperature, ProvenTemperature, Vector, ETS)  # these calibrators use no edges


def apply(
    architecture: Architecture,
    weights: Mapping[str, Tensor],
    classes: int,
    graph: Data | StoredGraph,
    device: torch.device,
    memory: int = Sampling.memory,
) -> Tensor:
    """Logits [R, N, C] of R models with these weights [R, …] for every node of a graph, on the CPU.

    A graph on disk goes through the models layer by layer, with about `memory` bytes in use beside the logits.
    """
    if isinstance(architecture, PropagatedLinear):
        if isinstance(graph, StoredGraph):
            raise InvalidInput(
                "a linear model needs the whole graph at once, and one on disk is not read whole; "
                "fit with model gcn, graphsage or sgc, which go layer by layer"
            )
        return architecture.logits(weights, graph, device).cpu()
    runs = next(iter(weights.values())).shape[0]
    network = architecture.build(int(graph.x.shape[1]), classes, Streams((0,) * runs)).to(device)
    network.load(weights)
    with torch.no_grad():
        if isinstance(graph, StoredGraph):
            check_staged(network, architecture)
            return Layerwise(memory)(network, Sampler.of(graph, network.loops, network.normalise), runs).cpu()
        subgraph = PreparedGraph.of(graph.to(device), runs, network.loops, network.normalise).whole
        logits: Tensor = network(subgraph, None)
    return logits.cpu()


def calibrate_logits(snapshot: Snapshot, logits: Tensor, graph: Any, calibrate: Calibrator) -> Tensor:
    """Calibrated logits [N, C] of the nodes of a graph; the calibrator learns from the held-out nodes of a fit."""
    old, held, given = _calibration_nodes(snapshot, calibrate)
    on_disk = isinstance(graph, StoredGraph) or not isinstance(snapshot.graph, EdgeList)
    without_edges = on_disk or isinstance(calibrate, _WITHOUT_EDGES)
    both: Any = _NodesWithoutEdges(len(old) + len(logits)) if without_edges else _joined(snapshot.graph, graph)
    unknown = torch.full((len(logits),), -1)
    labels = torch.cat([held, unknown]), torch.cat([given, unknown])
    return _calibrated(calibrate, torch.cat([old, logits]), both, *labels)[len(old) :]


def calibrate_unseen(snapshot: Snapshot, calibrate: Calibrator) -> Tensor:
    """Calibrated out-of-fold logits [M, C] of the held-out nodes, in five folds: no label calibrates its own node."""
    unseen, _, label = snapshot.judged
    if isinstance(calibrate, Uncalibrated) or len(label) < CALIBRATION_FOLDS:
        return unseen
    out = unseen.clone()
    raw, held, given = _calibration_nodes(snapshot, calibrate)
    nodes = (held >= 0).nonzero()[:, 0]
    graph: Any = _NodesWithoutEdges(len(raw)) if isinstance(calibrate, _WITHOUT_EDGES) else snapshot.graph
    for fold in range(CALIBRATION_FOLDS):
        inside = torch.arange(len(label)) % CALIBRATION_FOLDS == fold
        others = held.index_fill(0, nodes[inside], -1)
        out[inside] = _calibrated(calibrate, raw, graph, others, given)[nodes[inside]]
    return out


def check_staged(network: Network, architecture: Architecture) -> None:
    """Raises where a model cannot go layer by layer over a graph on disk."""
    if network.hops is None or not network.staged:
        raise InvalidInput(
            f"a {type(architecture).__name__} needs the whole graph at once, and one on disk is not read whole; "
            "gcn, graphsage and sgc go layer by layer"
        )


def _calibration_nodes(snapshot: Snapshot, calibrate: Calibrator) -> tuple[Tensor, Tensor, Tensor]:
    """Logits [n, C], held-out and given labels [n] of the nodes that a calibrator needs.

    These are the held-out nodes if it uses no edges, else all nodes. The logits of held-out nodes are out-of-fold.
    """
    unseen, _, label = snapshot.judged
    if isinstance(calibrate, _WITHOUT_EDGES):
        return unseen, label, torch.full_like(label, -1)
    raw = snapshot.raw.clone()
    raw[snapshot.held >= 0] = unseen
    return raw, snapshot.held, snapshot.given


def _calibrated(calibrate: Calibrator, logits: Tensor, graph: Any, held: Tensor, given: Tensor) -> Tensor:
    """Calibrated logits [n, C] of n nodes of a graph, with held-out and given labels [n]."""
    raw = Prediction(logits[None])
    task = Task(graph, Labels.given(given[None]), held[None], logits.shape[1])
    return part_checks.check_calibrated(calibrate(raw, task), raw).logits[0]


@dataclass(frozen=True)
class _NodesWithoutEdges:
    """A graph whose edges are not read, for calibrators that use none."""

    num_nodes: int

    @property
    def edge_index(self) -> Tensor:
        raise InvalidInput(
            "the model's calibrator uses edges, and a graph on disk is not read whole; "
            "fit the model with --calibrator ets, temperature or vector"
        )

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)


def _joined(old: Any, graph: Any) -> Data:
    """Both graphs as one, with no edge between them."""
    old_nodes, new_nodes = int(old.num_nodes or 0), int(graph.num_nodes or 0)
    edges = torch.cat([old.edge_index, graph.edge_index.cpu() + old_nodes], dim=1)
    both = Data(edge_index=edges, num_nodes=old_nodes + new_nodes)
    if old.get("edge_weight") is not None or graph.get("edge_weight") is not None:
        both.edge_weight = torch.cat([edge_weights(old), edge_weights(graph).cpu()])
    return both
