"""Inference: a fitted classifier applied to another graph, and calibrated with the held-out nodes of its fit."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data

from bangs.calibration.calibrators import ETS, Calibrator, Temperature, Uncalibrated, Vector, calibrator
from bangs.calibration.proven_temperature import ProvenTemperature
from bangs.core.rng import Streams
from bangs.core.types import Prediction
from bangs.errors import InvalidInput
from bangs.estimator.folds import mean_of_runs
from bangs.estimator.inputs import check_columns, in_memory, prepare
from bangs.estimator.linear import PropagatedLinear
from bangs.estimator.members import calibrated
from bangs.estimator.node_features import view_of
from bangs.estimator.stacking import mixture
from bangs.graphs.edges import EdgeList
from bangs.graphs.sparse import edge_weights
from bangs.graphs.store import Store, StoredGraph
from bangs.graphs.structural_features import STRUCTURE_RULE
from bangs.nn.ensemble import Network
from bangs.nn.models import Architecture
from bangs.nn.subgraphs import PreparedGraph
from bangs.runs.snapshot import Snapshot
from bangs.training.layerwise_inference import Layerwise
from bangs.training.neighbour_sampling import Sampler, Sampling
from bangs.utils.devices import choose_device

CALIBRATION_FOLDS = 5  # of the held-out nodes, to judge the calibration
_WITHOUT_EDGES = (Uncalibrated, Temperature, ProvenTemperature, Vector, ETS)  # these calibrators use no edges


def predict_logits(model: Any, X: Any, edge_index: Any, edge_weight: Any, names: Any) -> Tensor:
    """Calibrated logits [N, C] of a fitted classifier: of its graph, or of another one with the same columns."""
    check_is_fitted(model)
    if X is None and edge_index is None:
        calibrated: Tensor = model.snapshot_.calibrated
        return calibrated
    if model.structure_rule_ != STRUCTURE_RULE and any(
        _sees_structure(model, member.view) for member in model.members_
    ):
        raise InvalidInput(
            "this model was fitted by an earlier version of bangs, which computed features from the edges in another "
            "way; fit it again to predict another graph"
        )
    if model.scaling_ is not None:
        X = in_memory(X) if isinstance(X, Store) else X  # so that it can be scaled
    feature_names = getattr(model, "feature_names_in_", None)
    inputs = prepare(
        X,
        None,
        edge_index,
        edge_weight,
        names,
        directed=model.directed,
        fitted=True,
        columns=model.columns_,
        feature_names=feature_names,
    )
    graph = inputs.graph
    if graph.x.shape[1] != model.n_features_in_:
        raise InvalidInput(
            f"X has {graph.x.shape[1]} features, but {type(model).__name__} is expecting {model.n_features_in_} "
            "features as input: those it was fitted with"
        )
    check_columns(inputs.frame, feature_names)
    if model.scaling_ is not None:
        if not isinstance(graph, Data):
            raise InvalidInput("this model scales its features, but a store on disk is read as it is; give X instead")
        graph.x = model.scaling_(graph.x)
    if sentence := positions_warning(model, graph, inputs.names):
        warnings.warn(sentence, stacklevel=4)
    views = dict.fromkeys(member.view for member in model.members_)
    graphs = {view: view_of(graph, view, inputs.names, model.seed_) for view in views}
    device, classes = choose_device(model.device), len(model.classes_)
    logits = []
    for member in model.members_:
        runs = apply(member.architecture, member.weights, classes, graphs[member.view], device)
        logits.append(mean_of_runs(Prediction(runs)).logits[0] / member.temperature)
    weights = torch.tensor([member.weight for member in model.members_], dtype=torch.float64)
    mean = logits[0] if len(logits) == 1 else mixture(logits, weights)
    mean = calibrate_logits(model.snapshot_, mean, graph, as_calibrator(model.calibrator))
    return mean if inputs.rows is None else mean[torch.from_numpy(inputs.rows)]


def as_calibrator(value: str | Calibrator) -> Calibrator:
    """The calibrator that is the value of the parameter, or has this name."""
    return calibrator(value) if isinstance(value, str) else value


def positions_warning(model: Any, graph: Any, names: Any) -> str | None:
    """A sentence if positions matter and most edges of a graph are not those of the fitted one, by names; else None."""
    fitted = model.snapshot_.graph
    share = sum(member.weight for member in model.members_ if _sees_structure(model, member.view))
    if share == 0 or not isinstance(fitted, EdgeList) or not isinstance(graph, Data) or graph.num_edges == 0:
        return None
    numbers = {name: number for number, name in enumerate(model.node_names_)}
    rows = np.array([numbers.get(name, -1) for name in names])
    source, target = rows[graph.edge_index.cpu().numpy()]
    fitted_source, fitted_target = fitted.edge_index.numpy()
    fitted_keys = fitted_source * fitted.num_nodes + fitted_target
    known = (source >= 0) & (target >= 0) & np.isin(source * fitted.num_nodes + target, fitted_keys)
    if 2 * int(known.sum()) >= len(known):
        return None
    return (
        f"{int(known.sum()):,} of {len(known):,} edges are those of the fitted graph, so positions of nodes cannot be "
        f"compared, and models that see them have {share:.0%} of the weight: predictions may be wrong. Give nodes the "
        "names that they had in the fit; for another graph, fit with features='features' (--features features)"
    )


def _sees_structure(model: Any, view: str) -> bool:
    return view != "features" or (model.columns_ is not None and model.columns_.structural is not None)


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
    return calibrated(calibrate, torch.cat([old, logits]), both, *labels).logits[0][len(old) :]


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
        out[inside] = calibrated(calibrate, raw, graph, others, given).logits[0][nodes[inside]]
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
    weighted = old.get("edge_weight") is not None or graph.get("edge_weight") is not None
    weight = torch.cat([edge_weights(old), edge_weights(graph).cpu()]) if weighted else None
    return Data(edge_index=edges, edge_weight=weight, num_nodes=old_nodes + new_nodes)
