"""Recipe: the candidates that the parameters of a classifier describe, each checked."""

import logging
import numbers
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import BuiltinFunctionType
from typing import Any

import torch
from torch_geometric.data import Data

from bangs.calibration.calibrators import Calibrator
from bangs.calibration.graph_calibrators import GATS, CaGCN
from bangs.core.choice_checks import check_name
from bangs.core.rng import Streams
from bangs.errors import InvalidInput, UnknownName
from bangs.estimator.candidates import SOFT, VIEWS, Candidate, linear_candidates, small_enough, soft_method
from bangs.estimator.inference import check_staged
from bangs.estimator.linear import LinearTrainer, PropagatedLinear
from bangs.estimator.members import View
from bangs.graphs.store import Store, check_edges
from bangs.nn.models import MODELS
from bangs.selection.quotas import Top
from bangs.selection.scores import Agreement, Banzhaf, Chance, Confidence, Score
from bangs.selftraining.choices import CHOICES
from bangs.selftraining.loop import Method
from bangs.training.neighbour_sampling import Sampling
from bangs.training.presets import PRESETS, trainer
from bangs.training.trainer import Trainer
from bangs.utils import limits

log = logging.getLogger(__name__)

EPOCHS, PATIENCE = 300, 50
HARD_ROUNDS = 10
METHODS = ("auto", "hard", "raw", *SOFT)
NEURAL = ("gcn", "appnp", "grand")  # tried within a time limit, the cheapest first
UNASKED = ("appnp",)  # tried without one, where the graph is small
MOST = 100  # nodes a round by default, since values of very many candidates take long

SELECTORS: dict[str, Callable[[int, int], Score]] = {
    "banzhaf": lambda k, candidates: Banzhaf(k, candidates, normalise="mass"),
    "confidence": lambda k, candidates: Confidence(),
    "agreement": lambda k, candidates: Agreement(),
    "random": lambda k, candidates: Chance(),
}


def planned(
    settings: Mapping[str, Any], calibrate: Calibrator, graph: Any = None, pool: int = 1, store: Store | None = None
) -> list[Candidate]:
    """What a fit with these parameters tries, on a graph of which `pool` nodes have no label; all are checked.

    Without a graph, those that any graph gets. Give a `store` that stays on the disk, and parts that need the whole
    graph at once are refused; what is left open is then a GCN with hard labels.
    """
    model, name, batches = settings["model"], settings["method"], settings["batches"]
    check_name("method", name, METHODS)
    check_name("preset", settings["preset"], PRESETS)
    check_name("features", settings["features"], ("auto", *VIEWS))
    views: tuple[View, ...] = VIEWS if settings["features"] == "auto" else (settings["features"],)
    whole = store is None and batches is None
    if name == "auto" and (settings["selector"] is not None or not whole):
        name = "hard"
    automatic = isinstance(model, str) and model == "auto"
    if automatic and (name == "hard" or not whole):
        model, automatic = "gcn", False
    taught = "soft" if name == "auto" else name
    recipe = _method(settings, taught, calibrate, pool)
    if not automatic:
        learner = training(model, settings["preset"], settings["epochs"], settings["patience"], batches)
        if store is not None:
            learner = from_disk(learner, recipe, store)
        view = views[0] if len(views) == 1 else "features"
        kind = model if isinstance(model, str) else type(learner.model).__name__
        if isinstance(learner, LinearTrainer):
            recipe = replace(recipe, start="teacher")
        return [Candidate(kind, taught, learner, recipe, view)]
    out = linear_candidates(Data(x=torch.zeros(1, 1)) if graph is None else graph, recipe, taught, views)
    timed = settings["time_limit"] is not None
    if "features" in views and (timed or (graph is not None and small_enough(graph))):
        for kind in NEURAL if timed else UNASKED:
            learner = training(kind, settings["preset"], settings["epochs"], settings["patience"], None)
            out.append(Candidate(kind, taught, learner, recipe))
    return out


def _method(settings: Mapping[str, Any], name: str, calibrate: Calibrator, pool: int) -> Method:
    """The method of that name, on a graph of which `pool` nodes have no label; all settings are checked.

    k: None = the pool shared out so that all rounds adopt half of it, at most 100 a round; candidates: None = 5 k.
    """
    rounds = HARD_ROUNDS if settings["rounds"] is None else settings["rounds"]
    k, candidates, teacher = settings["k"], settings["candidates"], settings["teacher"]
    asked: tuple[tuple[str, Any, int], ...] = (("rounds", rounds, 0), ("k", k, 1), ("candidates", candidates, 1))
    for word, value, low in asked:
        if value is not None and (not isinstance(value, numbers.Integral) or not low <= int(value) <= limits.MAX_COUNT):
            raise InvalidInput(f"{word} must be a whole number from {low} to {limits.MAX_COUNT:,}, got {value!r}")
    check_name("teacher", teacher, CHOICES["teacher"])
    k = min(max(-(-pool // (2 * max(rounds, 1))), 1), MOST) if k is None else int(k)
    score: Any = "banzhaf" if settings["selector"] is None else settings["selector"]
    if isinstance(score, str):
        if score not in SELECTORS:
            raise UnknownName("selector", score, SELECTORS)
        score = SELECTORS[score](k, 5 * k if candidates is None else int(candidates))
    for word, part in (("selector", score), ("calibrator", calibrate)):
        # a class makes parts and is none; a function of Python's own, such as len, knows no round
        if not callable(part) or isinstance(part, type | BuiltinFunctionType):
            raise InvalidInput(f"{word} must be a name or a part that can be called, got {part!r}")
    if name in SOFT:
        return soft_method(name, settings["rounds"])
    rounds = 0 if name == "raw" else int(rounds)
    return Method(rounds, calibrate=calibrate, score=score, quota=Top(k), teacher=teacher)


def training(model: Any, preset: str, epochs: int | None, patience: int | None, batches: Sampling | None) -> Any:
    """How a model is trained; what is None is the default's, or that of a `Trainer` given as model."""
    asked = (("epochs", epochs), ("patience", patience), ("batches", batches))
    changes: dict[str, Any] = {name: value for name, value in asked if value is not None}
    if isinstance(model, Trainer):
        return replace(model, **changes)
    if isinstance(model, PropagatedLinear | LinearTrainer):
        return LinearTrainer(model) if isinstance(model, PropagatedLinear) else model
    changes = {"epochs": EPOCHS, "patience": PATIENCE, **changes}
    if isinstance(model, str):
        check_name("model", model, ("auto", *MODELS))
        return trainer(model, preset, **changes)
    if not callable(getattr(model, "build", None)):
        raise InvalidInput(f"model must be a name, an architecture such as GCN() or a Trainer, got {model!r}")
    return replace(trainer("gcn", preset, **changes), model=model)


def from_disk(learner: Trainer, method: Method, store: Store) -> Trainer:
    """The trainer of a graph that stays on the disk: in the usual batches, where it says none.

    Raises where a part of the recipe needs the whole graph at once.
    """
    if learner.batches is None:
        learner = replace(learner, batches=Sampling())
        log.info("'%s' stays on the disk, so training goes in %s", store.path.name, learner.batches)
    manifest = store.manifest
    check_staged(learner.model.build(manifest.features, len(manifest.classes), Streams((0,))), learner.model)
    if isinstance(method.calibrate, CaGCN | GATS) or isinstance(method.score, Agreement):
        check_edges(manifest.edges)
    return learner
