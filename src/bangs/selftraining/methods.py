"""The methods by name, each a recipe of a few parts."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bangs.calibration.calibrators import ETS, Calibrator, Uncalibrated
from bangs.calibration.graph_calibrators import CaGCN
from bangs.core.choice_checks import check_name
from bangs.graphs.graph_views import DropEdges, DropFeatures, Noise, Same
from bangs.graphs.pagerank import PPR, Propagator
from bangs.selection.quotas import Balanced, Everyone, Nobody, Top
from bangs.selection.scores import Agreement, Alone, Banzhaf, Chance, Confidence
from bangs.selftraining.choices import POOL, ROUNDS, SOFT_ROUNDS, Pool, TeacherChoice
from bangs.selftraining.loop import Method
from bangs.selftraining.loss_weights import Balance, BanzhafWeight, Certainty, NodeWeight, Product
from bangs.selftraining.soft_labels import Sharpen
from bangs.selftraining.uncertainty import InformationGain, Transition
from bangs.training.model_views import ModelView
from bangs.valuation.banzhaf import DEFAULT, ESTIMATORS, Estimator
from bangs.valuation.influence import Normalisation

EARLY = 100  # the epoch of the first model that CPL's students start from


@dataclass(frozen=True)
class Budget:
    """What a comparison holds equal: how many rounds, how many nodes a round, who teaches."""

    k: int = 100
    candidates: int = 200
    rounds: int = ROUNDS
    teacher: TeacherChoice | None = None  # None = the method's own
    calibrate: Calibrator = field(default_factory=ETS)
    estimate: Estimator = field(default_factory=lambda: ESTIMATORS[DEFAULT](None))
    pool: Pool = POOL
    normalise: Normalisation = "none"  # of the estimated logits in the information game
    propagate: Propagator = field(default_factory=PPR)  # whom a candidate reaches in that game


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


def cpl(budget: Budget, rate: float = 0.1) -> Method:
    """The k nodes most confident over four views of the graph; students start from an early checkpoint."""
    return _common(budget, Method(views=multiview(rate), start=EARLY))


def m3s(budget: Budget) -> Method:
    """k nodes on which teacher and clustering agree, the most confident of every class in turn."""
    return replace(_common(budget, Method(score=Agreement())), quota=Balanced(budget.k))


def cagcn(budget: Budget) -> Method:
    """At most k nodes whose confidence, calibrated by a graph network, exceeds a threshold."""
    return replace(_common(budget, Method(calibrate=CaGCN())), quota=Top(budget.k, 0.8))


def drgst(budget: Budget, threshold: float = 0.53, gain: InformationGain | None = None) -> Method:
    """All confident nodes anew each round, weighted by information gain under dropout, with a corrected loss.

    The last student teaches, unless the budget says the best one. Pseudo-labels number at most k · rounds, what the
    others hold in the end.
    """
    recipe = Method(weigh=gain or InformationGain(), correct=Transition(), memory="rebuild")
    quota = Top(budget.k * max(budget.rounds, 1), threshold)
    return replace(_common(budget, recipe), quota=quota, teacher=_rebuilding(budget))


def drgst_dropedge(budget: Budget) -> Method:
    """DR-GST with the information gain under dropped edges."""
    return drgst(budget, 0.54, InformationGain(DropEdges(0.4), beta=0.5))


def bangs(budget: Budget) -> Method:
    """The k candidates with the highest k-bounded Banzhaf value, on calibrated confidences."""
    game = Banzhaf(budget.k, budget.candidates, budget.estimate, budget.propagate, budget.normalise)
    return _common(budget, Method(score=game, calibrate=budget.calibrate))


def bangs_uncalibrated(budget: Budget) -> Method:
    """BANGS on the teacher's own confidences."""
    return replace(bangs(budget), calibrate=Uncalibrated())


def bangs_no_banzhaf(budget: Budget) -> Method:
    """BANGS with each candidate valued by itself."""
    return bangs(replace(budget, estimate=Alone()))


def soft(budget: Budget) -> Method:
    """Soft, sharpened labels for all free nodes, made anew by the latest model in every round."""
    return _soft(budget, Sharpen(), Certainty())


def soft_aligned(budget: Budget) -> Method:
    """Soft labels whose class shares are those of the validation labels."""
    return _soft(budget, Sharpen(shares="validation"), Certainty())


def bangs_soft(budget: Budget) -> Method:
    """Soft labels weighted by the rank of their Banzhaf value and by confidence."""
    weight = BanzhafWeight(propagate=budget.propagate, normalise=budget.normalise)
    return _soft(budget, Sharpen(), Product(weight, Certainty()))


def _soft(budget: Budget, believe: Sharpen, weight: NodeWeight) -> Method:
    """All free nodes, labelled anew each round, by the last student unless the budget says the best one."""
    recipe = Method(quota=Everyone(), believe=believe, weigh=Balance(weight), memory="rebuild")
    return replace(recipe, rounds=budget.rounds, pool=budget.pool, teacher=_rebuilding(budget))


METHODS: dict[str, Callable[[Budget], Method]] = {
    "raw": raw,
    "random": random,
    "cpl": cpl,
    "m3s": m3s,
    "cagcn": cagcn,
    "drgst": drgst,
    "drgst-dropedge": drgst_dropedge,
    "confidence": confidence,
    "confidence-calibrated": confidence_calibrated,
    "bangs": bangs,
    "bangs-uncalibrated": bangs_uncalibrated,
    "bangs-no-banzhaf": bangs_no_banzhaf,
    "soft": soft,
    "soft-aligned": soft_aligned,
    "bangs-soft": bangs_soft,
}


def method(name: str, budget: Budget | None = None) -> Method:
    """The method of that name under a budget."""
    check_name("method", name, METHODS)
    return METHODS[name](budget or Budget())


def default_rounds(name: str) -> int:
    """The number of rounds of a method where none is asked for; a name that is unknown here counts as hard labels."""
    recipe = METHODS.get(name)
    return ROUNDS if recipe is None or recipe(Budget()).believe is None else SOFT_ROUNDS


def multiview(rate: float) -> tuple[ModelView, ...]:
    """CPL's four looks: the graph itself, with features dropped, with edges dropped, and with noise on the features."""
    return Same(), DropFeatures(rate), DropEdges(rate), Noise(rate)


def _common(budget: Budget, recipe: Method) -> Method:
    teacher = budget.teacher or recipe.teacher
    return replace(recipe, rounds=budget.rounds, quota=Top(budget.k), teacher=teacher, pool=budget.pool)


def _rebuilding(budget: Budget) -> TeacherChoice:
    """The teacher where all labels are made anew: the latest, since the first would make the same ones for ever."""
    return "latest" if budget.teacher in (None, "first") else budget.teacher
