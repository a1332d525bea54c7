"""Uncertainty: the information gain of a pseudo-label, and the class confusion of the teacher (DR-GST).

Both are from Liu et al., "Confidence may cheat: self-training on graph neural networks under distribution shift"
(2022). A student learns little from a confident node, so the loss weights nodes by their information gain. The
pseudo-labels are the teacher's, so the loss multiplies the student's probabilities by the teacher's confusion matrix.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.metrics import entropy
from bangs.core.rng import Streams
from bangs.core.types import Labels, Model, Round, one_hot
from bangs.training.augmented_prediction import Dropout, ModelView, predict_view
from bangs.utils.setting_checks import check_integer, check_number


@dataclass(frozen=True)
class InformationGain:
    """Weights of labelled nodes by their information gain: float [R, N].

        b_i = H(mean_t p_i^t) − mean_t H(p_i^t) ≥ 0,    w_i = (b_i + ε) / (beta · mean_j (b_j + ε)),

    where p^t is the t-th of `passes` predictions of the teacher and j runs over the labelled nodes, given ones too, so
    the mean weight is 1/beta. `view` is that of a pass: `Dropout()`, at the rate the model was trained with,
    `Dropout(rate)`, or `DropEdges(rate)`.
    """

    view: ModelView = field(default_factory=Dropout)
    passes: int = 100
    beta: float = 1 / 3

    def __post_init__(self) -> None:
        check_integer("InformationGain.passes", self.passes, least=1)
        check_number("InformationGain.beta", self.beta, within="(0, inf)")

    def __call__(self, round: Round, labels: Labels) -> Tensor:
        gain = information_gain(round.teacher, round.graph, self.view, self.passes, round.rng.at("gain"))
        gain = torch.where(labels.known, gain + EPSILON, 0.0)
        mean = gain.sum(1, keepdim=True) / labels.known.sum(1, keepdim=True)
        return (gain / (self.beta * mean)).to(labels.weight.dtype)


EPSILON = 1e-6  # nats; gives a weight to nodes for which all passes agree


def information_gain(model: Model, graph: Data, view: ModelView, passes: int, rng: Streams) -> Tensor:
    """Mutual information between a node's label and the model's weights (or the graph), in nats: float64 [R, N]."""
    total = total_entropy = torch.zeros((), dtype=torch.float64)
    for number in range(passes):
        probs = predict_view(model, graph, view, rng.at(number)).probs.double()
        total = total + probs
        total_entropy = total_entropy + entropy(probs)
    # not negative by Jensen's inequality, except for rounding
    return (entropy(total / passes) - total_entropy / passes).clamp_min(0.0)


@dataclass(frozen=True)
class Transition:
    """The confusion matrix of the teacher: T [R, C, C], row c its mean prediction for given nodes of class c, shrunk.

    T minimises the squared error to the teacher's probabilities p_i on the n given nodes and to the identity,

        (1/nC) Σ_i |p_i − T_{y_i}|² + (1/C²) |T − I|²,

    each a mean over its entries. The published code takes 200 steps of Adam; the problem is quadratic, row by row, so
    with n_c given nodes in class c

        T_c = (C Σ_{y_i = c} p_i + n e_c) / (C n_c + n),

    which is the mean of the average prediction and e_c where classes are balanced. Rows sum to one.
    """

    def __call__(self, round: Round) -> Tensor:
        target, probs = round.task.given.target, round.raw.probs
        classes = probs.shape[-1]
        member = one_hot(target, classes).to(probs.dtype).transpose(1, 2)  # [R, C, N]
        count = member.sum(2)[..., None]  # [R, C, 1]
        total = count.sum(1, keepdim=True)
        identity = torch.eye(classes, dtype=probs.dtype, device=probs.device)
        return (classes * (member @ probs) + total * identity) / (classes * count + total)
