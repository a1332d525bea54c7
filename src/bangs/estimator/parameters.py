"""Parameters: check those of the classifier, and turn them into the candidates that a fit tries."""

import logging
import numbers
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import BuiltinFunctionType
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.calibration.calibrators import Calibrator
from bangs.calibration.graph_calibrators import GATS, CaGCN
from bangs.core.rng import Streams
from bangs.errors import InvalidInput
from bangs.estimator.candidates import (
    SOFT_METHODS,
    VIEWS,
    Candidate,
    linear_candidates,
    neural_candidates,
    soft_method,
)
from bangs.estimator.class_weights import are_uneven
from bangs.estimator.inference import check_staged
from bangs.estimator.linear import LinearTrainer, PropagatedLinear
from bangs.estimator.members import View
from bangs.graphs.store import Store, check_edges
from bangs.nn.models import MODELS
from bangs.selection.quotas import Top
from bangs.selection.scores import Agreement, Banzhaf, Chance, Confidence, Score
from bangs.selftraining.defaults import CHOICES, FIT_HARD_ROUNDS
from bangs.selftraining.loop import Method
from bangs.training.neighbour_sampling import Sampling
from bangs.training.presets import PRESETS
from bangs.training.presets import trainer as preset_trainer
from bangs.training.trainer import Trainer
from bangs.utils import limits
from bangs.utils.setting_checks import check_name

log = logging.getLogger(__name__)

EPOCHS, PATIENCE = 300, 50
METHODS = ("auto", "hard", "raw", *SOFT_METHODS)
METHOD_AND_TRAINER = ("selector", "k", "candidates", "rounds", "teacher", "preset", "epochs", "patience")  # settings
MAX_DEFAULT_K = 100  # nodes per round, since Banzhaf values of very many candidates take long

SELECTORS: dict[str, Callable[[int, int], Score]] = {
    "banzhaf": lambda k, candidates: Banzhaf(k, candidates, normalise="mass"),
    "confidence": lambda k, candidates: Confidence(),
    "agreement": lambda k, candidates: Agreement(),
    "random": lambda k, candidates: Chance(),
}


def build_candidates(
    settings: Mapping[str, Any],
    calibrate: Calibrator,
    graph: Any = None,
    labels: Tensor | None = None,
    store: Store | None = None,
) -> list[Candidate]:
    """What a fit with these parameters tries, on a graph with labels long [N], -1 = unknown; checks them all.

    Without graph and labels: the candidates that every graph gets. With a `store` that stays on the disk, parts that
    need the whole graph at once are refused, and "auto" means a GCN with hard labels.
    """
    model, method_name, batches = settings["model"], settings["method"], settings["batches"]
    check_name("method", method_name, METHODS)
    check_name("preset", settings["preset"], PRESETS)
    check_name("features", settings["features"], ("auto", *VIEWS))
    views: tuple[View, ...] = VIEWS if settings["features"] == "auto" else (settings["features"],)
    whole_graph = store is None and batches is None
    if method_name == "auto":
        soft = "soft" if labels is None or not are_uneven(labels) else "soft-aligned"
        method_name = soft if whole_graph and settings["selector"] is None else "hard"
    automatic = isinstance(model, str) and model == "auto"
    if automatic and (method_name == "hard" or not whole_graph):
        model, automatic = "gcn", False
    method = _build_method(settings, method_name, calibrate, 1 if labels is None else int((labels < 0).sum()))
    if not automatic:
        trainer = _build_trainer(model, settings["preset"], settings["epochs"], settings["patience"], batches)
        if store is not None:
            trainer = _trainer_from_disk(trainer, method, store)
        view = views[0] if len(views) == 1 else "features"
        model_name = model if isinstance(model, str) else type(trainer.model).__name__
        if isinstance(trainer, LinearTrainer):
            method = replace(method, start="teacher")
        return [Candidate(model_name, method_name, trainer, method, view)]
    out = linear_candidates(Data(x=torch.zeros(1, 1)) if graph is None else graph, method, method_name, views)
    if "features" in views:
        for name in neural_candidates(graph, has_time_limit=settings["time_limit"] is not None):
            trainer = _build_trainer(name, settings["preset"], settings["epochs"], settings["patience"], None)
            out.append(Candidate(name, method_name, trainer, method))
    return out


def without_effect(settings: Mapping[str, Any], defaults: Mapping[str, Any], *others: Any) -> list[str]:
    """Names of settings that are not their defaults, but change no candidate; `others` as in `build_candidates`."""
    built = repr(build_candidates(settings, *others))

    def changes_nothing(name: str) -> bool:
        with suppress(InvalidInput):  # a default that does not fit the other settings does make a difference
            return repr(build_candidates({**settings, name: defaults[name]}, *others)) == built
        return False

    return [name for name in METHOD_AND_TRAINER if settings[name] != defaults[name] and changes_nothing(name)]


def _build_method(settings: Mapping[str, Any], name: str, calibrate: Calibrator, pool: int) -> Method:
    """The method of that name, on a graph of which `pool` nodes have no label; checks all settings.

    k: None = all rounds together adopt half of the pool, at most 100 nodes per round; candidates: None = 5 k.
    """
    rounds = FIT_HARD_ROUNDS if settings["rounds"] is None else settings["rounds"]
    k, candidates, teacher = settings["k"], settings["candidates"], settings["teacher"]
    counts: tuple[tuple[str, Any, int], ...] = (("rounds", rounds, 0), ("k", k, 1), ("candidates", candidates, 1))
    for option, value, low in counts:
        if value is not None and (not isinstance(value, numbers.Integral) or not low <= int(value) <= limits.MAX_COUNT):
            raise InvalidInput(f"{option} must be a whole number from {low} to {limits.MAX_COUNT:,}, got {value!r}")
    check_name("teacher", teacher, CHOICES["teacher"])
    k = min(max(-(-pool // (2 * max(rounds, 1))), 1), MAX_DEFAULT_K) if k is None else int(k)
    score: Any = "banzhaf" if settings["selector"] is None else settings["selector"]
    if isinstance(score, str):
        check_name("selector", score, SELECTORS)
        score = SELECTORS[score](k, 5 * k if candidates is None else int(candidates))
    for option, part in (("selector", score), ("calibrator", calibrate)):
        # a class is not a part, only its instances are; a builtin such as len cannot take a round
        if not callable(part) or isinstance(part, type | BuiltinFunctionType):
            raise InvalidInput(f"{option} must be a name or a part that can be called, got {part!r}")
    if name in SOFT_METHODS:
        return soft_method(name, settings["rounds"])
    if name == "raw":
        return Method(0, calibrate=calibrate)
    return Method(int(rounds), calibrate=calibrate, score=score, quota=Top(k), teacher=teacher)


def _build_trainer(model: Any, preset: str, epochs: int | None, patience: int | None, batches: Sampling | None) -> Any:
    """The trainer of a model; what is None comes from the defaults, or from a `Trainer` given as model."""
    options = {"epochs": epochs, "patience": patience, "batches": batches}
    changes: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if isinstance(model, Trainer):
        return replace(model, **changes)
    if isinstance(model, LinearTrainer):
        return model
    if isinstance(model, PropagatedLinear):
        return LinearTrainer(model)
    changes = {"epochs": EPOCHS, "patience": PATIENCE, **changes}
    if isinstance(model, str):
        check_name("model", model, ("auto", *MODELS))
        return preset_trainer(model, preset, **changes)
    if not callable(getattr(model, "build", None)):
        raise InvalidInput(f"model must be a name, an architecture such as GCN() or a Trainer, got {model!r}")
    return replace(preset_trainer("gcn", preset, **changes), model=model)


def _trainer_from_disk(trainer: Trainer, method: Method, store: Store) -> Trainer:
    """The trainer for a graph that stays on the disk: with default batches, if it has none.

    Raises where a part of the method needs the whole graph at once.
    """
    if trainer.batches is None:
        trainer = replace(trainer, batches=Sampling())
        log.info("'%s' stays on the disk, so training goes in %s", store.path.name, trainer.batches)
    manifest = store.manifest
    check_staged(trainer.model.build(manifest.features, len(manifest.classes), Streams((0,))), trainer.model)
    if isinstance(method.calibrate, CaGCN | GATS) or isinstance(method.score, Agreement):
        check_edges(manifest.edges)
    return trainer
