"""Applying: trained models on a graph they have not seen, as honest there as where they were judged."""

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

PARTS = 5  # that judged nodes are dealt into, where calibration is judged
_BY_NODE = (Uncalibrated, Temperature, ProvenTemperature, Vector, ETS)  # calibrators that look at no edges


def apply(
    architecture: Architecture,
    weights: Mapping[str, Tensor],
    classes: int,
    graph: Data | StoredGraph,
    place: torch.device,
    memory: int = Sampling.memory,
) -> Tensor:
    """What R models with these weights [R, …] say of every node of a graph: logits [R, N, C], on the CPU.

    A graph on disk goes through the models layer by layer, with about `memory` bytes in use beside the logits.
    """
    if isinstance(architecture, PropagatedLinear):
        if isinstance(graph, StoredGraph):
            raise InvalidInput(
                "a linear model needs the whole graph at once, and one on disk is not read whole; "
                "fit with model gcn, graphsage or sgc, which go layer by layer"
            )
        return architecture.logits(weights, graph, place).cpu()
    runs = next(iter(weights.values())).shape[0]
    network = architecture.build(int(graph.x.shape[1]), classes, Streams((0,) * runs)).to(place)
    network.load(weights)
    with torch.no_grad():
        if isinstance(graph, StoredGraph):
            check_staged(network, architecture)
            return Layerwise(memory)(network, Sampler.of(graph, network.loops, network.normalise), runs).cpu()
        subgraph = PreparedGraph.of(graph.to(place), runs, network.loops, network.normalise).whole
        logits: Tensor = network(subgraph, None)
    return logits.cpu()


def calibrate_beside(old: Snapshot, logits: Tensor, graph: Any, calibrate: Calibrator) -> Tensor:
    """Logits [N, C] of nodes of a graph, calibrated in the company of the judged nodes of a run."""
    beside, held, given = _judges(old, calibrate)
    mapped = isinstance(graph, StoredGraph) or not isinstance(old.graph, EdgeList)
    apart = mapped or isinstance(calibrate, _BY_NODE)
    both: Any = _Apart(len(beside) + len(logits)) if apart else _side_by_side(old.graph, graph)
    nobody = torch.full((len(logits),), -1)
    labels = torch.cat([held, nobody]), torch.cat([given, nobody])
    return _calibrated(calibrate, torch.cat([beside, logits]), both, *labels)[len(beside) :]


def calibrate_judged(old: Snapshot, calibrate: Calibrator) -> Tensor:
    """Logits [M, C] of the judged nodes of a run, each calibrated without the labels of its fifth of them."""
    before, _, label = old.judged
    if isinstance(calibrate, Uncalibrated) or len(label) < PARTS:
        return before
    out = before.clone()
    part = torch.arange(len(label)) % PARTS
    raw, held, given = _judges(old, calibrate)
    nodes = (held >= 0).nonzero()[:, 0]
    graph: Any = _Apart(len(raw)) if isinstance(calibrate, _BY_NODE) else old.graph
    for own in range(PARTS):
        others = held.index_fill(0, nodes[part == own], -1)
        out[part == own] = _calibrated(calibrate, raw, graph, others, given)[nodes[part == own]]
    return out


def check_staged(network: Network, architecture: Architecture) -> None:
    """Raises where a model cannot go layer by layer over a graph on disk."""
    if network.hops is None or not network.staged:
        raise InvalidInput(
            f"a {type(architecture).__name__} needs the whole graph at once, and one on disk is not read whole; "
            "gcn, graphsage and sgc go layer by layer"
        )


def _judges(old: Snapshot, calibrate: Calibrator) -> tuple[Tensor, Tensor, Tensor]:
    """Of the nodes a calibrator looks at, logits [n, C], held and given labels [n]: all, or those judged if by node.

    The logits of judged nodes are of models that have not learned them.
    """
    before, _, label = old.judged
    if isinstance(calibrate, _BY_NODE):
        return before, label, torch.full_like(label, -1)
    raw = old.raw.clone()
    raw[old.held >= 0] = before
    return raw, old.held, old.given


def _calibrated(calibrate: Calibrator, logits: Tensor, graph: Any, held: Tensor, given: Tensor) -> Tensor:
    """Calibrated logits [n, C] of n nodes of a graph, of which some labels [n] are held and others given."""
    raw = Prediction(logits[None])
    task = Task(graph, Labels.given(given[None]), held[None], logits.shape[1])
    return part_checks.check_calibrated(calibrate(raw, task), raw).logits[0]


@dataclass(frozen=True)
class _Apart:
    """Nodes without their edges, for calibrators that look at none."""

    num_nodes: int

    @property
    def edge_index(self) -> Tensor:
        raise InvalidInput(
            "the model's calibrator looks at edges, and a graph on disk is not read whole; "
            "fit the model with --calibrator ets, temperature or vector"
        )

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)


def _side_by_side(old: Any, graph: Any) -> Data:
    before, new = int(old.num_nodes or 0), int(graph.num_nodes or 0)
    edges = torch.cat([old.edge_index, graph.edge_index.cpu() + before], dim=1)
    both = Data(edge_index=edges, num_nodes=before + new)
    if old.get("edge_weight") is not None or graph.get("edge_weight") is not None:
        both.edge_weight = torch.cat([edge_weights(old), edge_weights(graph).cpu()])
    return both
