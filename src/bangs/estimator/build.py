"""Recipe: the trainer and the method that the parameters of a classifier describe, each checked."""

import logging
import numbers
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from bangs.calibration.calibrators import Calibrator
from bangs.calibration.graph import GATS, CaGCN
from bangs.core.rng import Streams
from bangs.errors import InvalidInput, UnknownName
from bangs.estimator.inference import check_staged
from bangs.graphs.store import Store, check_edges
from bangs.nn.models import Architecture
from bangs.selection.quotas import Top
from bangs.selection.scores import Agreement, Banzhaf, Chance, Confidence, Score
from bangs.selftraining.loop import Method
from bangs.training.presets import trainer
from bangs.training.sampling import Sampling
from bangs.training.trainer import Trainer
from bangs.utils import limits

log = logging.getLogger(__name__)

EPOCHS, PATIENCE = 300, 50
MOST = 100  # nodes a round by default, since values of very many candidates take long

SELECTORS: dict[str, Callable[[int, int], Score]] = {
    "banzhaf": lambda k, candidates: Banzhaf(k, candidates, normalise="mass"),
    "confidence": lambda k, candidates: Confidence(),
    "agreement": lambda k, candidates: Agreement(),
    "random": lambda k, candidates: Chance(),
}


def training(
    model: str | Architecture | Trainer, preset: str, epochs: int | None, patience: int | None, batches: Sampling | None
) -> Trainer:
    """How a model is trained; what is None is the default's, or that of a `Trainer` given as model."""
    asked = (("epochs", epochs), ("patience", patience), ("batches", batches))
    changes: dict[str, Any] = {name: value for name, value in asked if value is not None}
    if isinstance(model, Trainer):
        return replace(model, **changes)
    changes = {"epochs": EPOCHS, "patience": PATIENCE, **changes}
    if isinstance(model, str):
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


def self_training(
    selector: str | Score,
    calibrate: Calibrator,
    k: int | None,
    candidates: int | None,
    rounds: int,
    teacher: Literal["first", "latest", "best"],
    pool: int,
) -> Method:
    """How rounds go on a graph of which `pool` nodes have no label.

    k: None = the pool shared out so that all rounds adopt half of it, at most 100 a round; candidates: None = 5 k.
    """
    asked: tuple[tuple[str, Any, int], ...] = (("rounds", rounds, 0), ("k", k, 1), ("candidates", candidates, 1))
    for name, value, low in asked:
        if value is not None and (not isinstance(value, numbers.Integral) or not low <= int(value) <= limits.MOST):
            raise InvalidInput(f"{name} must be a whole number from {low} to {limits.MOST:,}, got {value!r}")
    if teacher not in ("first", "latest", "best"):
        raise UnknownName("teacher", str(teacher), ("first", "latest", "best"))
    k = min(max(-(-pool // (2 * max(rounds, 1))), 1), MOST) if k is None else int(k)
    score = selector
    if isinstance(score, str):
        if score not in SELECTORS:
            raise UnknownName("selector", score, SELECTORS)
        score = SELECTORS[score](k, 5 * k if candidates is None else int(candidates))
    for name, part in (("selector", score), ("calibrator", calibrate)):
        if not callable(part):
            raise InvalidInput(f"{name} must be a name or a part that can be called, got {part!r}")
    return Method(int(rounds), calibrate=calibrate, score=score, quota=Top(k), teacher=teacher)
