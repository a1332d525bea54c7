"""The methods by name, each a recipe of a few parts."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from bangs.errors import UnknownName
from bangs.learners.calibration import ETS, Calibrator, Uncalibrated
from bangs.loop import Method
from bangs.selection.quotas import Nobody, Top
from bangs.selection.scores import Alone, Banzhaf, Chance, Confidence
from bangs.valuation.banzhaf import DEFAULT, ESTIMATORS, Estimator


@dataclass(frozen=True)
class Budget:
    """What a comparison holds equal: how many rounds, how many nodes a round, who teaches."""

    k: int = 100
    candidates: int = 200
    rounds: int = 40
    teacher: Literal["first", "latest", "best"] = "latest"
    calibrate: Calibrator = field(default_factory=ETS)
    estimate: Estimator = field(default_factory=lambda: ESTIMATORS[DEFAULT](None))
    pool: Literal["free", "open"] = "free"


def raw(budget: Budget) -> Method:
    """The graph neural network as it is: no rounds."""
    return Method(rounds=0, quota=Nobody())


def random(budget: Budget) -> Method:
    """k nodes by chance."""
    return _common(budget, Method(score=Chance()))


def confidence(budget: Budget) -> Method:
    """The k most confident nodes, uncalibrated."""
    return _common(budget, Method(score=Confidence()))


def confidence_calibrated(budget: Budget) -> Method:
    """The k most confident nodes after calibration."""
    return _common(budget, Method(score=Confidence(), calibrate=budget.calibrate))


def bangs(budget: Budget) -> Method:
    """The k candidates with the highest k-bounded Banzhaf value, on calibrated confidences."""
    game = Banzhaf(budget.k, budget.candidates, budget.estimate)
    return _common(budget, Method(score=game, calibrate=budget.calibrate))


def bangs_uncalibrated(budget: Budget) -> Method:
    """BANGS on the teacher's own confidences."""
    return replace(bangs(budget), calibrate=Uncalibrated())


def bangs_no_banzhaf(budget: Budget) -> Method:
    """BANGS with each candidate valued by itself."""
    return replace(bangs(budget), score=Banzhaf(budget.k, budget.candidates, Alone()))


METHODS: dict[str, Callable[[Budget], Method]] = {
    "raw": raw,
    "random": random,
    "confidence": confidence,
    "confidence-calibrated": confidence_calibrated,
    "bangs": bangs,
    "bangs-uncalibrated": bangs_uncalibrated,
    "bangs-no-banzhaf": bangs_no_banzhaf,
}


def method(name: str, budget: Budget | None = None) -> Method:
    """The method of that name under a budget."""
    if name not in METHODS:
        raise UnknownName("method", name, METHODS)
    return METHODS[name](budget or Budget())


def _common(budget: Budget, recipe: Method) -> Method:
    return replace(recipe, rounds=budget.rounds, quota=Top(budget.k), teacher=budget.teacher, pool=budget.pool)
