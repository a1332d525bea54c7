"""Candidates: the models that an automatic fit tries, linear and neural."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from bangs.estimator.class_weights import are_uneven, labels_per_class
from bangs.estimator.linear import LinearTrainer, PropagatedLinear
from bangs.estimator.members import View
from bangs.estimator.node_features import columns_differ_in_scale, looks_like_counts, mostly_zeros
from bangs.selftraining.budget import Budget
from bangs.selftraining.defaults import FIT_SOFT_ROUNDS
from bangs.selftraining.loop import Method
from bangs.selftraining.methods import method
from bangs.selftraining.soft_labels import Sharpen
from bangs.training.trainer import Trainer

SOFT_METHODS = ("soft", "soft-aligned", "bangs-soft")
VIEWS: tuple[View, ...] = ("features", "structure", "both")
RIDGES = (3e-3, 3e-4, 1e-3, 1e-2, 3e-2)  # the first is tried for every model, the others for the best
REFINED = 3  # candidates that are tried with other ridges
REFINE_ONE_ABOVE = 50_000  # unlabelled nodes; on a larger graph only one candidate is refined
FEW_LABELS = 8  # median number of labels per class below which labels are few
TIME_LIMIT_MODELS = ("gcn", "appnp", "grand")  # tried where a time limit is given, the cheapest first
SMALL_GRAPH_MODELS = ("appnp",)  # tried without a time limit, where the graph is small
MAX_NEURAL_ENTRIES = 150_000  # stored features plus edges up to which a neural network is tried by default


@dataclass(frozen=True)
class Candidate:
    """A model, its self-training method, and what it sees of a node."""

    model_name: str  # with the ridge of a linear model: "pagerank 0.003"
    method_name: str
    trainer: Trainer | LinearTrainer
    method: Method
    view: View = "features"

    @property
    def name(self) -> str:
        return f"{self.model_name} · {self.method_name} · {self.view}"

    @property
    def model_kind(self) -> str:
        """The name of the model without its ridge."""
        return self.model_name.split(" ")[0]

    @property
    def is_linear(self) -> bool:
        """Whether it is a linear model, which trains in seconds on any graph."""
        return isinstance(self.trainer, LinearTrainer)


def soft_method(name: str, rounds: int | None) -> Method:
    """A method of soft labels by name; class shares are those of the labels a fold learns from."""
    recipe = method(name, Budget(rounds=FIT_SOFT_ROUNDS if rounds is None else rounds))
    if isinstance(recipe.believe, Sharpen) and recipe.believe.shares == "validation":
        return replace(recipe, believe=replace(recipe.believe, shares="given"))
    return recipe


def linear_candidates(graph: Data, method: Method, method_name: str, views: Sequence[View]) -> list[Candidate]:
    """Logistic regression on what each view shows of a node.

    View "features": X itself; X after personalised PageRank; X after PageRank of a random walk; and X, two hops and
    PageRank side by side. Propagated word counts are weighted by inverse document frequency. Dense columns of different
    scales are tried standardised too. View "structure": after PageRank. View "both": X itself.
    """
    out = []
    for view in views:
        models = _feature_models(graph) if view == "features" else _structure_models(view, only_view=len(views) == 1)
        for kind, model in models.items():
            out.append(_linear_candidate(kind, method_name, LinearTrainer(model, RIDGES[0]), method, view))
    return out


def _feature_models(graph: Data) -> dict[str, PropagatedLinear]:
    """The models of the view "features", by their names."""
    counts = looks_like_counts(graph.x)
    words = counts and mostly_zeros(graph.x)
    pagerank = PropagatedLinear(rows="unit" if counts else "given", columns="idf" if words else "given")
    propagated = {
        "pagerank": pagerank,
        "walk": replace(pagerank, normalise="row"),
        "scales": replace(pagerank, spread="scales"),
    }
    if not counts and columns_differ_in_scale(graph.x):
        propagated |= {f"{kind}-std": replace(model, columns="standard") for kind, model in propagated.items()}
    if words:
        propagated = {f"{kind}-idf": model for kind, model in propagated.items()}
    return propagated | {"logistic": replace(pagerank, spread="none", reach=0, columns="given")}


def _structure_models(view: View, only_view: bool) -> dict[str, PropagatedLinear]:
    """The models of the views "structure" and "both": one each, or two where no other view is tried."""
    models = {"pagerank": PropagatedLinear(), "logistic": PropagatedLinear("none", 0)}
    if only_view:
        return models
    kind = "pagerank" if view == "structure" else "logistic"
    return {kind: models[kind]}


def refined(best: Sequence[Candidate], rounds: int | None, labels: Tensor) -> list[Candidate]:
    """The best linear candidates with other ridges, and the first of them with other soft labels.

    Soft labels are aligned with the class shares of the labels [N] only where that may help, see `should_align`.
    """
    out = []
    for candidate in best[: REFINED if int((labels < 0).sum()) <= REFINE_ONE_ABOVE else 1]:
        for ridge in RIDGES[1:]:
            trainer = replace(candidate.trainer, ridge=ridge)  # type: ignore[arg-type]
            out.append(
                _linear_candidate(
                    candidate.model_kind, candidate.method_name, trainer, candidate.method, candidate.view
                )
            )
    first = best[0]
    for name in SOFT_METHODS:
        if name != first.method_name and (name != "soft-aligned" or should_align(labels)):
            out.append(_linear_candidate(first.model_kind, name, first.trainer, soft_method(name, rounds), first.view))
    return out


def should_align(labels: Tensor) -> bool:
    """Whether to try soft labels that are aligned with the class shares of labels long [N]: these are few or uneven.

    With few labels per class a weak teacher favours some classes. With more, held-out labels cannot show which method
    is better, since their shares were chosen by the person who labels.
    """
    return labels_per_class(labels)[0] < FEW_LABELS or are_uneven(labels)


def _linear_candidate(kind: str, method_name: str, trainer: Any, method: Method, view: View) -> Candidate:
    return Candidate(f"{kind} {trainer.ridge:g}", method_name, trainer, replace(method, start="teacher"), view)


def neural_candidates(graph: Data | None, *, has_time_limit: bool) -> tuple[str, ...]:
    """The names of the neural networks that are tried after the linear models."""
    if has_time_limit:
        return TIME_LIMIT_MODELS
    return SMALL_GRAPH_MODELS if graph is not None and _is_small(graph) else ()


def _is_small(graph: Data) -> bool:
    """Whether a neural network trains in seconds."""
    x = graph.x
    entries = int(x.values().numel() if x.is_sparse_csr else x.numel())
    return entries + int(graph.edge_index.shape[1]) <= MAX_NEURAL_ENTRIES
