"""Candidates: what an automatic fit tries, the cheapest first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from bangs.estimator.linear import LinearTrainer, PropagatedLinear
from bangs.estimator.members import View
from bangs.estimator.views import counted, sparse
from bangs.selftraining.loop import Method
from bangs.selftraining.methods import Budget, method
from bangs.selftraining.soft_labels import Sharpen
from bangs.training.trainer import Trainer

SOFT = ("soft", "soft-aligned", "bangs-soft")
VIEWS: tuple[View, ...] = ("features", "structure", "both")
ROUNDS = 3  # of soft labels, after which they hardly change
RIDGES = (3e-3, 3e-4, 1e-3, 1e-2, 3e-2)  # the first is tried for every model, the others for the best
REFINED, LARGE = 3, 50_000  # candidates of graphs up to so many nodes; of larger ones one
FEW, UNEVEN = 8, 1.5  # labels of the median class, and times as many of the largest
QUICK = 150_000  # entries of features and edges up to which a neural network is tried unasked


@dataclass(frozen=True)
class Candidate:
    """A kind of model, how it teaches itself, and what it sees of a node."""

    kind: str  # of model
    taught: str  # the name of the method
    trainer: Trainer | LinearTrainer
    method: Method
    view: View = "features"

    @property
    def name(self) -> str:
        return f"{self.kind} · {self.taught} · {self.view}"

    @property
    def label(self) -> str:
        """The kind of model without its settings."""
        return self.kind.split(" ")[0]

    @property
    def cheap(self) -> bool:
        """Whether trying it costs seconds on any graph."""
        return isinstance(self.trainer, LinearTrainer)


def soft_method(name: str, rounds: int | None) -> Method:
    """A recipe of soft labels by name; class shares are those of the labels a fold learns from."""
    recipe = method(name, Budget(rounds=ROUNDS if rounds is None else rounds, teacher="latest"))
    if isinstance(recipe.believe, Sharpen) and recipe.believe.shares == "validation":
        return replace(recipe, believe=replace(recipe.believe, shares="given"))
    return recipe


def linear_candidates(graph: Data, method: Method, name: str, views: Sequence[View]) -> list[Candidate]:
    """Logistic regression on what each view shows of a node.

    Features: as they are, after personalised PageRank, after a random walk's, and as they are, after two hops and after
    PageRank side by side; words are propagated with rare ones enlarged. Structure: after PageRank. Both: as they are.
    """
    out = []
    for view in views:
        models = _of_features(graph) if view == "features" else _of_places(view, len(views) == 1)
        for label, model in models.items():
            out.append(_linear(label, name, LinearTrainer(model, RIDGES[0]), method, view))
    return out


def _of_features(graph: Data) -> dict[str, PropagatedLinear]:
    """The models of a graph's own features by their names."""
    counts = counted(graph.x)
    words = counts and sparse(graph.x)
    own = PropagatedLinear(rows="unit" if counts else "given", columns="idf" if words else "given")
    spread = {
        "pagerank": own,
        "walk": replace(own, normalise="row"),
        "scales": replace(own, spread="scales"),
    }
    named = {f"{label}-idf": model for label, model in spread.items()} if words else spread
    return named | {"logistic": replace(own, spread="none", reach=0, columns="given")}


def _of_places(view: View, alone: bool) -> dict[str, PropagatedLinear]:
    """The models of places in the graph, without or with features; of each view one, unless it is tried alone."""
    models = {"pagerank": PropagatedLinear(), "logistic": PropagatedLinear("none", 0)}
    kept = "pagerank" if view == "structure" else "logistic"
    return models if alone else {kept: models[kept]}


def refined(best: Sequence[Candidate], rounds: int | None, labels: Tensor) -> list[Candidate]:
    """The best linear candidates with other ridges, of large graphs one, and the very best with other soft labels.

    Soft labels are aligned with the class shares of the labels [N] only where that may help, see `alignable`.
    """
    out = []
    for own in best[: REFINED if int((labels < 0).sum()) <= LARGE else 1]:
        for ridge in RIDGES[1:]:
            trainer = replace(own.trainer, ridge=ridge)  # type: ignore[arg-type]
            out.append(_linear(own.label, own.taught, trainer, own.method, own.view))
    first = best[0]
    for name in SOFT:
        if name != first.taught and (name != "soft-aligned" or alignable(labels)):
            out.append(_linear(first.label, name, first.trainer, soft_method(name, rounds), first.view))
    return out


def alignable(labels: Tensor) -> bool:
    """Whether the class shares of labels long [N] are worth learning: they are uneven, or labels are few.

    As many labels of every class are a choice of the person who labels, and judged labels share it: they cannot tell
    that the classes of the graph are of different sizes. With a few labels a class, even shares still help, since a
    weak teacher favours some classes.
    """
    counts = labels[labels >= 0].unique(return_counts=True)[1]
    usual = int(counts.median())
    return usual < FEW or int(counts.max()) > UNEVEN * usual


def _linear(label: str, name: str, trainer: Any, method: Method, view: View) -> Candidate:
    return Candidate(f"{label} {trainer.ridge:g}", name, trainer, replace(method, start="teacher"), view)


def small_enough(graph: Data) -> bool:
    """Whether a neural network is trained in seconds."""
    x = graph.x
    stored = int(x.values().numel() if x.is_sparse_csr else x.numel())
    return stored + int(graph.edge_index.shape[1]) <= QUICK
