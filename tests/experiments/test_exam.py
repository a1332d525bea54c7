"""The exam: what is marked, and by which labels."""

from types import SimpleNamespace

import pytest
import torch
from torch_geometric.data import Data

from bangs.core.types import Labels, Prediction, Split
from bangs.errors import InvalidInput
from bangs.experiments.exam import Exam

Y = torch.tensor([0, 1, 0, 1, 1, -1])  # node 5's class nobody knows
NODE = torch.arange(6)
SPLIT = Split.repeated(NODE < 2, NODE == 2, NODE > 2, runs=2)


def logits_of(*labels: int) -> torch.Tensor:
    return 9.0 * torch.nn.functional.one_hot(torch.tensor(labels), 2)


def test_test_nodes_whose_class_is_known_are_marked_and_no_others() -> None:
    """Nodes 3 and 4 count: the first run has one right, the second both; the predictions of the rest are wrong."""
    exam = Exam.of(Data(y=Y, num_nodes=6), SPLIT)
    predicted = torch.tensor([[1, 0, 1, 1, 0, 0], [1, 0, 1, 1, 1, 1]])
    assert exam.mark_labels(predicted, torch.full((2, 6), -1))["test"] == [0.5, 1.0]


def test_pseudo_labels_are_marked_apart_from_given_ones() -> None:
    """Of four adopted nodes of the first run one has no known class and two of three are right; the second has none."""
    exam = Exam.of(Data(y=Y, num_nodes=6), SPLIT)
    given = Labels.given(torch.tensor([[0, 1, -1, -1, -1, -1]]).expand(2, -1))
    chosen = torch.tensor([[False, False, True, True, True, True], [False] * 6])
    labels = given.adopt(chosen, torch.tensor([0, 0, 0, 1, 0, 0]), 1.0, round=1)
    prediction = Prediction(torch.stack([logits_of(0, 0, 0, 1, 1, 0)] * 2))
    marks = exam.mark(SimpleNamespace(labels=labels, prediction=prediction))  # type: ignore[arg-type]
    assert marks == {"test": [1.0, 1.0], "pseudo_accuracy": [pytest.approx(2 / 3), None]}


def test_an_exam_without_answers_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no test node of run 0 has a label"):
        Exam.of(Data(y=torch.where(NODE > 2, -1, Y), num_nodes=6), SPLIT)
