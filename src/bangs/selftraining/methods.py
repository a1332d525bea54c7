"""The methods by name, each a recipe of a few parts."""

from collections.abc import Callable
from dataclasses import replace

from bangs.calibration.calibrators import Uncalibrated
from bangs.calibration.graph_calibrators import CaGCN
from bangs.graphs.augmentations import DropEdges, DropFeatures, Noise, Same
from bangs.selection.quotas import Balanced, Everyone, Nobody, Top
from bangs.selection.scores import Agreement, Alone, Banzhaf, Chance, Confidence
from bangs.selftraining.budget import Budget
from bangs.selftraining.defaults import ROUNDS, SOFT_ROUNDS, TeacherChoice
from bangs.selftraining.loop import Method
from bangs.selftraining.loss_weights import Balance, BanzhafWeight, Certainty, NodeWeight, Product
from bangs.selftraining.soft_labels import Sharpen
from bangs.selftraining.uncertainty import InformationGain, Transition
from bangs.training.augmented_prediction import ModelView
from bangs.utils.setting_checks import check_name

CPL_START_EPOCH = 100  # of the first model; CPL's students start from its weights at that epoch


def raw(budget: Budget) -> Method:
    """The first model alone, without self-training."""
    return Method(rounds=0, quota=Nobody())


def random(budget: Budget) -> Method:
    """k random nodes."""
    return _common(budget, Method(score=Chance()))


def confidence(budget: Budget) -> Method:
    """The k most confident nodes, uncalibrated."""
    return _common(budget, Method(score=Confidence()))


def confidence_calibrated(budget: Budget) -> Method:
    """The k most confident nodes after calibration."""
    return _common(budget, Method(score=Confidence(), calibrate=budget.calibrate))


def cpl(budget: Budget, rate: float = 0.1) -> Method:
    """The k nodes most confident over four views of the graph; students start from an early checkpoint."""
    return _common(budget, Method(views=multiview(rate), start=CPL_START_EPOCH))


def m3s(budget: Budget) -> Method:
    """k nodes on which teacher and clustering agree, the most confident of every class in turn."""
    return replace(_common(budget, Method(score=Agreement())), quota=Balanced(budget.k))


def cagcn(budget: Budget) -> Method:
    """At most k nodes whose confidence, calibrated by a graph network, exceeds a threshold."""
    return replace(_common(budget, Method(calibrate=CaGCN())), quota=Top(budget.k, 0.8))


def drgst(budget: Budget, threshold: float = 0.53, gain: InformationGain | None = None) -> Method:
    """All confident nodes anew each round, weighted by information gain under dropout, with a corrected loss.

    The latest student is the teacher, unless the budget says the best one. There are at most k · rounds pseudo-labels,
    as many as other methods have after the last round.
    """
    recipe = Method(weigh=gain or InformationGain(), correct=Transition(), memory="rebuild")
    quota = Top(budget.k * max(budget.rounds, 1), threshold)
    return replace(_common(budget, recipe), quota=quota, teacher=_rebuild_teacher(budget))


def drgst_dropedge(budget: Budget) -> Method:
    """DR-GST with the information gain under dropped edges."""
    return drgst(budget, 0.54, InformationGain(DropEdges(0.4), beta=0.5))


def bangs(budget: Budget) -> Method:
    """The k candidates with the highest k-bounded Banzhaf value, on calibrated confidences."""
    game = Banzhaf(budget.k, budget.candidates, budget.estimate, budget.propagate, budget.normalise)
    return _common(budget, Method(score=game, calibrate=budget.calibrate))


def bangs_uncalibrated(budget: Budget) -> Method:
    """BANGS on uncalibrated confidences."""
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
    """Soft labels of all free nodes, made anew each round by the latest student, or the best if the budget says so."""
    recipe = Method(quota=Everyone(), believe=believe, weigh=Balance(weight), memory="rebuild")
    return replace(recipe, rounds=budget.rounds, pool=budget.pool, teacher=_rebuild_teacher(budget))


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
    """The default number of rounds of a method; an unknown name counts as a method with hard labels."""
    recipe = METHODS.get(name)
    return ROUNDS if recipe is None or recipe(Budget()).believe is None else SOFT_ROUNDS


def multiview(rate: float) -> tuple[ModelView, ...]:
    """CPL's four views: the graph itself, with features dropped, with edges dropped, and with noise on the features."""
    return Same(), DropFeatures(rate), DropEdges(rate), Noise(rate)


def _common(budget: Budget, recipe: Method) -> Method:
    teacher = budget.teacher or recipe.teacher
    return replace(recipe, rounds=budget.rounds, quota=Top(budget.k), teacher=teacher, pool=budget.pool)


def _rebuild_teacher(budget: Budget) -> TeacherChoice:
    """The teacher of a method that rebuilds its labels: `latest`, since the first would always make the same ones."""
    return "latest" if budget.teacher in (None, "first") else budget.teacher
