"""Uneven labels: every class counts alike, where models learn and where they are judged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from bangs import SelfTrainingClassifier
from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Round, Task
from bangs.errors import InvalidInput
from bangs.estimator.candidates import should_align
from bangs.estimator.class_weights import are_uneven, random_sample_weights, were_chosen
from bangs.estimator.folds import Folds, label_weights
from bangs.estimator.inputs import prepare
from bangs.estimator.parameters import build_candidates
from bangs.estimator.stacking import common_factor, member_temperatures, stacking_weights
from bangs.estimator.training_data import training_data
from bangs.graphs.datasets.synthetic import citation
from bangs.selftraining.loss_weights import Balance, Certainty
from bangs.selftraining.soft_labels import Sharpen
from bangs.training.teacher import Teacher

UNEVEN = torch.tensor([0, 0, 0, 0, 0, 0, 1, 1, -1, 2])
BALANCED = torch.tensor([3 / 6, 3 / 2, 3 / 1], dtype=torch.float64)
QUICK: dict[str, Any] = {"model": "gcn", "method": "raw", "epochs": 3, "device": "cpu"}


def partly_labelled(*counts: int) -> tuple[Data, torch.Tensor]:
    """A citation graph with so many labels of each class, and the truth."""
    data = citation(nodes=400, classes=len(counts), features=60, isolated=0.0, signal=0.3, seed=5)
    y = torch.full_like(data.y, -1)
    for label, count in enumerate(counts):
        y[(data.y == label).nonzero().flatten()[:count]] = label
    return Data(x=data.x, edge_index=data.edge_index, y=y), data.y


def weights_of(y: Any, class_weight: Any) -> list[float]:
    """The class weights that a fit of labels y has."""
    data = Data(x=torch.eye(len(y)), edge_index=torch.tensor([[0, 1], [1, 0]]), y=y)
    inputs = prepare(data)
    return training_data(inputs, seed=0, folds=None, validation=None, class_weight=class_weight).class_weights.tolist()


def test_labels_of_all_classes_have_the_same_weight_in_all() -> None:
    weights = label_weights(UNEVEN, BALANCED)
    assert float(weights[UNEVEN >= 0].mean()) == pytest.approx(1)
    assert [float(weights[label == UNEVEN].sum()) for label in range(3)] == pytest.approx([3, 3, 3])
    assert float(weights[8]) == 0, "a node without a label has no weight"


def test_equally_many_labels_of_each_class_have_weight_one_to_the_bit() -> None:
    labels = torch.arange(7).repeat(11)
    assert label_weights(labels, torch.full((7,), 0.3, dtype=torch.float64)).tolist() == [1.0] * 77
    assert weights_of(torch.arange(4).repeat(3), "balanced") == [1.0] * 4


def test_class_weights_are_balanced_equal_or_given() -> None:
    y = torch.tensor([0, 0, 0, 0, 1, 1, -1, -1])
    assert weights_of(y, "balanced") == [6 / 8, 6 / 4]
    assert weights_of(y, None) == [1, 1]
    assert weights_of(y, {1: 3}) == [1, 3], "as in scikit-learn, classes left out have weight 1"


@pytest.mark.parametrize(
    ("class_weight", "words"),
    [
        ("None", "class_weight must be 'auto', 'balanced', None (--class-weight none) or a dict, got 'None'"),
        (2.0, "class_weight must be 'auto', 'balanced', None (--class-weight none) or a dict, got 2.0"),
        ({0: 0}, "class_weight of class 0 must lie in [1e-6, 1e6], got 0"),
        ({0: 1e-40}, "class_weight of class 0 must lie in [1e-6, 1e6], got 1e-40"),
        ({0: 10**400}, "class_weight of class 0 must lie in [1e-6, 1e6], got 1000"),
        ({0: "1"}, "class_weight of class 0 must be a number, got '1'"),
        ({7: 1.0}, "class_weight names class 7; the labels have 0, 1, 2"),
    ],
)
def test_a_wrong_class_weight_is_named(class_weight: Any, words: str) -> None:
    data, _ = partly_labelled(4, 4, 4)
    with pytest.raises(InvalidInput) as raised:
        SelfTrainingClassifier(class_weight=class_weight).fit(data)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    "settings", [{}, {"model": "gcn", "epochs": 40}, {"model": "gcn", "method": "hard", "rounds": 2}]
)
def test_a_class_with_many_labels_takes_no_nodes_from_the_others(settings: dict[str, Any]) -> None:
    data, truth = partly_labelled(40, 4, 4, 4)
    hidden = (data.y < 0).numpy()

    def hit_rates(class_weight: Any) -> list[float]:
        model = SelfTrainingClassifier(class_weight=class_weight, device="cpu", **settings).fit(data)
        right = model.predict() == truth.numpy()
        return [float(right[hidden & (truth == label).numpy()].mean()) for label in range(4)]

    balanced, equal = hit_rates("balanced"), hit_rates(None)
    assert np.mean(balanced) > np.mean(equal) + 0.02
    assert np.mean(balanced[1:]) > np.mean(equal[1:]) + 0.05, "the classes with few labels gain"


def test_only_the_ratios_of_class_weights_matter() -> None:
    data, _ = partly_labelled(12, 4, 4)
    one, other = (
        SelfTrainingClassifier(class_weight=weight).fit(data) for weight in ({0: 1, 1: 2}, {0: 4, 1: 8, 2: 4})
    )
    assert np.allclose(one.predict_proba(), other.predict_proba(), atol=1e-5)


def test_with_equally_many_labels_balancing_changes_nothing() -> None:
    data, _ = partly_labelled(5, 5, 5)
    one, other = (SelfTrainingClassifier(class_weight=weight).fit(data) for weight in ("auto", None))
    assert np.array_equal(one.predict_proba(), other.predict_proba())


def test_held_out_labels_judge_with_their_weights() -> None:
    """Two members: one knows class 0 only, the other class 1 only; three of four labels are of class 0."""
    label = torch.tensor([0, 0, 0, 1])
    sure = torch.tensor([[1.0, 0.0]]).expand(4, 2)
    unsure = torch.tensor([[0.0, 1.0]]).expand(4, 2)
    probs = torch.stack([member.softmax(-1)[torch.arange(4), label] for member in (sure, unsure)])
    balanced = label_weights(label, torch.tensor([1.0, 3.0], dtype=torch.float64))
    assert stacking_weights(probs, balanced)[1] > stacking_weights(probs)[1]
    assert member_temperatures([sure], label, balanced) > member_temperatures([sure], label)
    assert common_factor([sure], torch.ones(1), label, balanced) > common_factor([sure], torch.ones(1), label)


def soft_round(weight: torch.Tensor | None) -> Round:
    """A round after a teacher that knows nothing; three classes, given labels as in `UNEVEN`."""
    given = Labels.given(UNEVEN[None], weight)
    task = Task(Data(num_nodes=10), given, torch.full((1, 10), -1), 3)
    prediction, pool = Prediction(torch.zeros(1, 10, 3)), ~given.known
    teacher: Teacher = None  # type: ignore[assignment]  # not used
    return Round(1, task, given, prediction, prediction, pool, teacher, Streams((0,)))


def test_aligned_soft_labels_take_the_shares_of_the_weights() -> None:
    balanced = label_weights(UNEVEN[None], BALANCED).float()
    even = Sharpen(1.0, "given")(soft_round(balanced))[0, 8]
    uneven = Sharpen(1.0, "given")(soft_round(None))[0, 8]
    assert even.tolist() == pytest.approx([1 / 3] * 3)
    assert uneven.tolist() == pytest.approx([7 / 12, 3 / 12, 2 / 12])


def test_the_given_part_of_the_loss_is_a_weighted_mean() -> None:
    balanced = label_weights(UNEVEN[None], BALANCED).float()
    round = soft_round(balanced)
    labels = round.labels.adopt(round.pool, torch.zeros(1, 10, dtype=torch.long), 1.0, 1)
    weight = Balance(Certainty(0.0), strength=2.0)(round, labels)[0] / 10
    assert [float(weight[label == UNEVEN].sum()) for label in range(3)] == pytest.approx([1 / 3] * 3)
    assert float(weight[8]) == pytest.approx(2.0)


def test_uneven_labels_begin_with_aligned_soft_labels() -> None:
    data, _ = partly_labelled(20, 3, 3)
    assert are_uneven(data.y)
    settings = SelfTrainingClassifier().get_params(deep=False)
    methods = {one.method_name for one in build_candidates(settings, lambda p, t: p, data, data.y)}
    assert methods == {"soft-aligned"}
    even, _ = partly_labelled(20, 20, 20)
    assert not are_uneven(even.y)
    assert not should_align(even.y)
    assert {one.method_name for one in build_candidates(settings, lambda p, t: p, even, even.y)} == {"soft"}
    named = {**settings, "method": "soft"}
    assert {one.method_name for one in build_candidates(named, lambda p, t: p, data, data.y)} == {"soft"}


def test_where_most_classes_have_one_label_none_is_held_back() -> None:
    folds = Folds.of(torch.tensor([0, 0, 0, 0, 0, 0, 1, 2, -1, -1]), 4, seed=0)
    assert not folds.has_held_out
    assert Folds.of(torch.tensor([0, 0, 0, 1, 1, 2, -1, -1]), 4, seed=0).has_held_out
    data, truth = partly_labelled(6, 1, 1, 1)
    model = SelfTrainingClassifier().fit(data)
    assert "most classes have one label only, so no label is held back: accuracy is not known" in model.notes_
    shares = np.bincount(model.predict(), minlength=4) / len(truth)
    assert shares.max() < 0.6, "the class with six labels does not take all nodes"


def test_labels_chosen_by_class_are_distinguished_from_a_random_sample() -> None:
    """Models that tell two halves of a graph apart; labels of one half only, or of nodes like all others."""
    logits = torch.zeros(2, 200, 2)
    logits[:, :100, 0] = logits[:, 100:, 1] = 2.0

    def chosen(first: int, second: int) -> bool | None:
        labels = torch.full((200,), -1)
        labels[:first], labels[100 : 100 + second] = 0, 1
        folds = Folds.of(labels, 2, seed=0)
        return were_chosen(Prediction(logits), folds.held, labels)

    assert chosen(30, 5)
    assert chosen(5, 30)
    assert chosen(20, 18) is False
    logits[:, :170, 0], logits[:, :170, 1] = 2.0, 0.0
    logits[:, 170:, 0], logits[:, 170:, 1] = 0.0, 2.0
    labels = torch.full((200,), -1)
    labels[:34], labels[170:176] = 0, 1
    assert were_chosen(Prediction(logits), Folds.of(labels, 2, seed=0).held, labels) is False, "as in the graph"


@pytest.mark.parametrize("everywhere", [True, False])
def test_where_labels_cannot_be_compared_they_stay_balanced_and_no_cause_is_named(everywhere: bool) -> None:
    """All nodes have a label; or most classes have one label, so none is held out."""
    data, truth = partly_labelled(6, 1, 1)
    data.y = truth if everywhere else data.y
    auto, balanced = (SelfTrainingClassifier(class_weight=weight, **QUICK).fit(data) for weight in ("auto", "balanced"))
    (note,) = noted(auto)
    assert "whether the labels are a random sample of the nodes is not known; every class counts alike" in note
    assert np.array_equal(auto.predict_proba(), balanced.predict_proba())


def test_a_random_sample_has_the_expected_shares() -> None:
    labels = torch.tensor([0] * 95 + [1] * 5 + [-1] * 50)
    weights = random_sample_weights(labels, 2)
    mass = weights * torch.tensor([95.0, 5.0])
    assert (mass / mass.sum()).tolist() == pytest.approx([100 / 110, 10 / 110])


def noted(model: SelfTrainingClassifier) -> list[str]:
    return [note for note in model.notes_ if "class_weight=" in note]


@pytest.mark.parametrize("settings", [{}, {"validation": 0.4}, {"model": "gcn", "epochs": 20, "rounds": 1}])
def test_auto_balances_labels_chosen_by_class_and_says_so(settings: dict[str, Any]) -> None:
    data, _ = partly_labelled(60, 6, 6, 6)
    auto, balanced = (
        SelfTrainingClassifier(class_weight=weight, device="cpu", **settings).fit(data)
        for weight in ("auto", "balanced")
    )
    assert np.array_equal(auto.predict_proba(), balanced.predict_proba())
    (note,) = noted(auto)
    assert note.startswith("class '0' has 60 labels, the median class 6; the labels do not look like a random sample")
    assert noted(balanced) == []


def test_auto_keeps_the_shares_of_a_random_sample() -> None:
    data, truth = partly_labelled(1, 1, 1, 1)
    rare = truth == 3
    keep = (~rare).nonzero().flatten().tolist() + rare.nonzero().flatten()[:12].tolist()
    nodes = torch.tensor(sorted(keep))
    graph = Data(x=data.x.to_dense()[nodes], edge_index=subgraph(nodes, data.edge_index, relabel_nodes=True)[0])
    two = (truth[nodes] == 3).long()  # 4 % of the nodes
    draw = torch.randperm(len(nodes), generator=torch.Generator().manual_seed(1))[:150]
    graph.y = torch.full_like(two, -1)
    graph.y[draw] = two[draw]
    hidden = (graph.y < 0).numpy()
    by_share = dict(enumerate(random_sample_weights(graph.y, 2).tolist()))
    auto, named, balanced = (
        SelfTrainingClassifier(class_weight=weight).fit(graph) for weight in ("auto", by_share, "balanced")
    )
    (note,) = noted(auto)
    assert "look like a random sample of the nodes" in note
    assert np.allclose(auto.predict_proba(), named.predict_proba(), atol=1e-6)
    predicted, true = auto.predict_proba()[hidden, 1].mean(), two.numpy()[hidden].mean()
    assert abs(predicted - true) < abs(balanced.predict_proba()[hidden, 1].mean() - true)


def test_auto_adds_no_note_about_even_labels() -> None:
    data, _ = partly_labelled(6, 5, 5)
    assert noted(SelfTrainingClassifier(model="gcn", epochs=5, rounds=1).fit(data)) == []


def test_labels_of_a_split_are_balanced_where_models_learn_and_where_they_are_judged() -> None:
    """As many labels of each class to learn from, and a random sample to judge, as in published splits."""
    data, truth = partly_labelled(5, 5, 5)
    data.train_mask = data.y >= 0
    data.val_mask = ~data.train_mask & (torch.arange(400) < 150)
    data.y = truth
    split = training_data(prepare(data), seed=0, folds=None, validation=None, class_weight="balanced")
    learned = label_weights(split.folds.given[0], split.class_weights)
    judged = label_weights(split.folds.held[0], split.held_class_weights)
    held = split.folds.held[0] >= 0
    assert [float(learned[data.train_mask & (truth == label)].sum()) for label in range(3)] == pytest.approx([5] * 3)
    masses = [float(judged[held & (truth == label)].sum()) for label in range(3)]
    assert masses == pytest.approx([int(held.sum()) / 3] * 3)


def test_a_split_with_even_training_labels_learns_the_same_when_balanced() -> None:
    data, truth = partly_labelled(5, 5, 5)
    data.train_mask, data.val_mask = data.y >= 0, torch.zeros(400, dtype=torch.bool)
    data.val_mask[(~data.train_mask & (truth == 0)).nonzero().flatten()[:60]] = True
    data.val_mask[(~data.train_mask & (truth > 0)).nonzero().flatten()[:10]] = True
    data.y = truth
    settings: dict[str, Any] = {"model": "gcn", "epochs": 20, "patience": 20, "method": "raw", "device": "cpu"}
    one, other = (SelfTrainingClassifier(class_weight=weight, **settings).fit(data) for weight in ("balanced", None))
    assert np.array_equal(one.members_[0].weights["weight.0"], other.members_[0].weights["weight.0"])


def test_a_saved_model_keeps_the_weights_of_classes_by_name(tmp_path: Path) -> None:
    data, _ = partly_labelled(4, 4, 4)
    weights: Any = {0: 2, np.int64(1): np.float32(0.5)}
    model = SelfTrainingClassifier(class_weight=weights, **QUICK).fit(data)
    model.save(tmp_path)
    assert SelfTrainingClassifier.load(tmp_path).class_weight == {0: 2, 1: 0.5}
    words = SelfTrainingClassifier(class_weight={"0": 3.0}, **QUICK)
    words.fit(data.x.to_dense().numpy(), [str(label) for label in data.y.tolist()], edge_index=data.edge_index)
    words.save(tmp_path)
    assert SelfTrainingClassifier.load(tmp_path).class_weight == {"0": 3.0}


def test_class_weights_may_name_a_class_without_labels_if_they_name_all_others() -> None:
    """As in scikit-learn: the labels of a fold may lack a class."""
    y = torch.tensor([0, 0, 0, 1, 1, 1, -1])
    assert weights_of(y, {0: 1, 1: 3, 2: 5}) == [1, 3]
    with pytest.raises(InvalidInput, match="class_weight names class 2; the labels have 0, 1"):
        weights_of(y, {1: 3, 2: 5})
