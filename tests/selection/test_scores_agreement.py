"""Scores of other methods: agreement with clusters, raw logits."""

from dataclasses import dataclass, replace

import pytest
import torch

from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Round, Task
from bangs.selection.quotas import Above, Top, TopPerClass
from bangs.selection.scores import Agreement, Chance, Confidence, Logit, Score

NEVER = float("-inf")


@dataclass(frozen=True, eq=False)
class TeacherWithEmbedding:
    """A teacher that has nothing but embeddings."""

    embedding: torch.Tensor  # [N, D]

    def embed(self, graph) -> torch.Tensor:
        return self.embedding[None]


def a_round(logits: torch.Tensor, given_: torch.Tensor, task: Task, embedding: torch.Tensor) -> Round:
    """A round in which the teacher predicts these logits [N, C], has these embeddings and knows these labels [N]."""
    labels = Labels.given(given_[None])
    prediction = Prediction(logits[None])
    return Round(1, task, labels, prediction, prediction, ~labels.known, TeacherWithEmbedding(embedding), Streams((0,)))


@pytest.fixture
def disputed(task) -> Round:
    """Nodes 0 and 1 are given, of classes 0 and 1. Nodes 2 … 4 are predicted as 0, but 3 and 4 lie nearer to node 1."""
    logits = torch.tensor([[8.0, 0.0], [1.0, 0.5], [9.0, 0.0], [2.0, 0.0], [1.5, 0.0], [0.0, 0.9]])
    embedding = torch.tensor([[0.0], [1.0], [0.9], [0.1], [0.2], [0.7]])
    return a_round(logits, torch.tensor([0, 1, -1, -1, -1, -1]), task.only([0]), embedding)


LOGITS = Agreement(clusters=4, space="logits")


@pytest.mark.parametrize("score", [Chance(), Confidence(), Logit(), LOGITS], ids=lambda score: type(score).__name__)
def test_no_node_outside_the_pool_is_scored(disputed, score: Score):
    assert (score(disputed).score[0] > NEVER).tolist()[:2] == [False, False]
    assert (score(disputed).score[0] > NEVER).any()


def test_clusters_of_embeddings_may_differ_from_those_of_logits(disputed):
    """By their embeddings nodes 3 and 4 are of class 0, as the teacher predicts, and 2 is of class 1."""
    score = Agreement(clusters=4)(disputed).score[0]
    assert (score > NEVER).tolist() == [False, False, False, True, True, True]


def test_agreement_is_with_the_calibrated_label(disputed):
    turned = replace(disputed, prediction=Prediction(disputed.raw.logits.flip(-1)))
    assert (LOGITS(turned).score[0] > NEVER).tolist() == [False, False, False, True, True, False]


def test_clusters_are_those_of_the_logits_before_calibration(disputed):
    """A calibrator that leaves labels alone but puts all nodes of a label in one place changes nobody's cluster."""
    crowded = torch.nn.functional.one_hot(disputed.raw.label, 2).float()
    assert torch.equal(
        LOGITS(replace(disputed, prediction=Prediction(crowded))).score > NEVER, LOGITS(disputed).score > NEVER
    )


def test_only_nodes_whose_cluster_agrees_are_scored(disputed):
    score = LOGITS(disputed).score[0]
    confidence = disputed.prediction.confidence[0]
    assert (score > NEVER).tolist() == [False, False, True, False, False, True]
    assert score[2] == confidence[2]
    assert score[5] == confidence[5]


def test_agreement_is_checked_before_the_quota_or_after_it(disputed):
    before = Top(2)(LOGITS(disputed).score, disputed.prediction.label)
    assert before[0].nonzero().flatten().tolist() == [2, 5]
    # the two most confident of class 0 are 2 and 3, and 3 has no substitute
    after = Above(0.0)(replace(LOGITS, among=TopPerClass(2))(disputed).score, disputed.prediction.label)
    assert after[0].nonzero().flatten().tolist() == [2, 5]
    only = Above(0.0)(replace(LOGITS, among=Top(2))(disputed).score, disputed.prediction.label)
    assert only[0].nonzero().flatten().tolist() == [2]


def test_the_largest_logit_is_no_confidence(disputed):
    score = Logit()(disputed).score[0]
    assert score.tolist() == [NEVER, NEVER, 9.0, 2.0, 1.5, pytest.approx(0.9)]
    assert (Confidence()(disputed).score[0][2:] <= 1).all()
    calibrated = replace(disputed, prediction=Prediction(disputed.raw.logits / 2))
    assert Logit()(calibrated).score[0, 2] == 4.5


@pytest.mark.parametrize("setting", ["clusters", "steps"])
def test_no_clusters_are_refused(setting):
    with pytest.raises(ValueError, match=f"Agreement.{setting} must be at least 1, got 0"):
        Agreement(**{setting: 0})
