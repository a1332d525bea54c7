"""Class weights: how much a label counts in a fit, by its class."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from bangs.core.types import Prediction
from bangs.errors import InvalidInput
from bangs.estimator.folds import held_out_labels, mean_of_runs, unseen_prediction
from bangs.estimator.label_inputs import Classes
from bangs.utils.setting_checks import check_number

UNEVEN_RATIO = 1.5  # largest class over median class, above which labels are uneven
PRIOR_LABELS = 5.0  # imagined labels of every class, in the class shares of a random sample


def check_class_weight(class_weight: Any) -> None:
    """Raises where `class_weight` is neither "auto" nor "balanced" nor None nor a dict of weights."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight in ("auto", "balanced")):
        return
    if not isinstance(class_weight, Mapping):
        raise InvalidInput(
            f"class_weight must be 'auto', 'balanced', None (--class-weight none) or a dict, got {class_weight!r}"
        )
    for name, weight in class_weight.items():
        check_number(f"class_weight of class {name!r}", weight, within="[1e-6, 1e6]")


def class_weights(class_weight: Any, classes: Classes, labels: Tensor) -> Tensor:
    """How much a label of each class counts: float64 [C], from the labels long [N]. Only their ratios matter.

    As in scikit-learn, "balanced" gives all classes the same weight in all, None all labels, and a dict names weights.
    "auto" begins as "balanced".
    """
    check_class_weight(class_weight)
    if isinstance(class_weight, str):
        counts = torch.bincount(labels[labels >= 0], minlength=len(classes))
        return counts.sum() / (len(classes) * counts.clamp_min(1).double())
    given = {} if class_weight is None else dict(class_weight)
    weights = [float(given.pop(name, 1.0)) for name in classes.tolist()]
    if given and not set(classes.tolist()) <= set(class_weight):  # else a class has no label here, as in some folds
        known = ", ".join(map(repr, classes.tolist()))
        raise InvalidInput(f"class_weight names class {next(iter(given))!r}; the labels have {known}")
    return torch.tensor(weights, dtype=torch.float64)


def random_sample_weights(labels: Tensor, classes: int) -> Tensor:
    """Weights float64 [C] that give classes their expected shares of the graph, if labels [N] are a random sample.

    Class c with n_c of n labels gets the share (n_c + a) / (n + aC) in all, the posterior mean with a = `PRIOR_LABELS`:
    many labels count alike, and few labels nearly balance the classes.
    """
    counts = torch.bincount(labels[labels >= 0], minlength=classes).double()
    return (counts + PRIOR_LABELS) / counts.clamp_min(1)


def were_chosen(prediction: Prediction, held: Tensor, labels: Tensor) -> bool | None:
    """Whether labels [N] look chosen by their class, such as twenty of one and three of each other class.

    None = not known, since almost all nodes have a label.

    We compare the mean of z = Σ_c p_c (n_c/n − 1/C), with p from models of R folds [R, N, C], over nodes held out
    (`held` [R, N]) and over nodes without a label. In a random sample both are equal. If the classes of the graph are
    equally frequent, the second is the mean of the held-out classes' means. The labels were chosen if the difference is
    closer to that, and more than one standard error.
    """
    counts = torch.bincount(labels[labels >= 0], minlength=prediction.logits.shape[-1]).double()
    excess = torch.where(counts > 0, counts / counts.sum() - 1 / (counts > 0).sum(), 0.0)
    held_out = unseen_prediction(prediction, held).probs[0].cpu().double() @ excess
    others = mean_of_runs(prediction).probs[0].cpu().double()[labels < 0] @ excess
    if len(others) < 2:
        return None
    held_labels = held_out_labels(held.cpu())
    class_means = torch.stack([held_out[held_labels == label].mean() for label in held_labels.unique()])
    standard_error = others.std() / len(held_out) ** 0.5
    difference, if_equal = held_out.mean() - others.mean(), held_out.mean() - class_means.mean()
    return bool(difference > torch.maximum(if_equal / 2, standard_error))


def are_uneven(labels: Tensor) -> bool:
    """Whether some class has many more labels than the median class, in labels long [N]."""
    median, largest = labels_per_class(labels)
    return largest > UNEVEN_RATIO * median


def labels_per_class(labels: Tensor) -> tuple[int, int]:
    """The median and the largest number of labels of a class that has any."""
    counts = labels[labels >= 0].unique(return_counts=True)[1]
    return int(counts.median()), int(counts.max())


def uneven_note(labels: Tensor, classes: Sequence[Any], chosen: bool | None, balanced: bool) -> str:
    """What the user should know where class weights were found from uneven labels long [N]; see `were_chosen`."""
    counts = torch.bincount(labels[labels >= 0])
    facts = (
        f"class {str(classes[int(counts.argmax())])!r} has {int(counts.max()):,} labels, the median class "
        f"{labels_per_class(labels)[0]:,}"
    )
    found = {
        True: "the labels do not look like a random sample of the nodes, so",
        False: "the labels look like a random sample of the nodes, so",
        None: "whether the labels are a random sample of the nodes is not known;",
    }[chosen]
    if balanced:
        return f"{facts}; {found} every class counts alike; if they are, set class_weight=None (--class-weight none)"
    return (
        f"{facts}; {found} classes count about as often as they occur; if you chose them by class, set "
        "class_weight='balanced' (--class-weight balanced)"
    )
