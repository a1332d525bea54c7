"""Applying: a trained model on a graph it has not seen, as honest there as where it was validated."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.learners.batches import Surroundings
from bangs.learners.calibration import Calibrator
from bangs.learners.models import Architecture
from bangs.rng import Streams
from bangs.snapshot import Snapshot
from bangs.types import Labels, Prediction, Task


def apply(
    architecture: Architecture, weights: Mapping[str, Tensor], classes: int, graph: Data, place: torch.device
) -> Tensor:
    """What a model with these weights [1, …] says of every node of a graph: logits [1, N, C], on the CPU."""
    network = architecture.build(int(graph.x.shape[1]), classes, Streams((0,))).to(place)
    network.load(weights)
    field = Surroundings.of(graph.to(place), 1, network.loops, network.normalise).whole
    with torch.no_grad():
        logits: Tensor = network(field, None)
    return logits.cpu()


def calibrate_beside(old: Snapshot, logits: Tensor, graph: Data, calibrate: Calibrator) -> Tensor:
    """Logits [N, C] of new nodes, calibrated in the company of the nodes whose labels were held for validation."""
    new = int(graph.num_nodes or 0)
    both = Data(
        edge_index=torch.cat([old.edge_index, graph.edge_index.cpu() + old.nodes], dim=1), num_nodes=old.nodes + new
    )
    if old.edge_weight is not None or graph.get("edge_weight") is not None:
        both.edge_weight = torch.cat([_weights(old.graph), _weights(graph)])
    nobody = torch.full((new,), -1)
    given, held = (torch.cat([part, nobody])[None] for part in (old.given, old.held))
    task = Task(both, Labels.given(given), held, old.classes)
    return calibrate(Prediction(torch.cat([old.raw[None], logits], dim=1)), task).logits[0, old.nodes :]


def _weights(graph: Data) -> Tensor:
    weight = graph.get("edge_weight")
    return torch.ones(graph.edge_index.shape[1]) if weight is None else weight.cpu()
