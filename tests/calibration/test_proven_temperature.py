"""A calibrator that may do harm is left out, and none takes labels away."""

import pytest
import torch
from torch_geometric.data import Data

from bangs.calibration.calibrators import ETS, Temperature
from bangs.calibration.proven_temperature import ProvenTemperature
from bangs.core.types import Labels, Prediction, Task
from bangs.errors import InvalidInput


def task(label: torch.Tensor, classes: int) -> Task:
    """All nodes held for validation."""
    graph = Data(x=torch.zeros(len(label), 1), edge_index=torch.zeros(2, 0, dtype=torch.long))
    return Task(graph, Labels.given(torch.full((1, len(label)), -1)), label[None], classes)


def confident(nodes: int, right: float, scale: float, seed: int = 0) -> tuple[Prediction, torch.Tensor]:
    """Logits of one size for a class that is right so often."""
    draw = torch.Generator().manual_seed(seed)
    predicted = torch.randint(3, (nodes,), generator=draw)
    label = torch.where(torch.rand(nodes, generator=draw) < right, predicted, (predicted + 1) % 3)
    return Prediction(scale * torch.nn.functional.one_hot(predicted, 3).float()[None]), label


def test_probabilities_that_are_far_off_are_scaled() -> None:
    prediction, label = confident(200, 0.7, 20.0)
    actual = ProvenTemperature()(prediction, task(label, 3))
    assert float(actual.confidence.max()) < 0.999
    assert actual.label.equal(prediction.label)


def test_calibrated_probabilities_do_not_change() -> None:
    prediction, label = confident(200, 0.7, 1.54)  # 0.7 is what such logits say
    assert ProvenTemperature()(prediction, task(label, 3)).logits.equal(prediction.logits)


def test_a_handful_of_labels_proves_nothing() -> None:
    prediction, label = confident(8, 0.5, 20.0)
    assert ProvenTemperature()(prediction, task(label, 3)).logits.equal(prediction.logits)


@pytest.mark.parametrize("calibrate", [ETS(), ProvenTemperature(), Temperature()])
def test_a_model_no_better_than_chance_keeps_its_labels_and_is_not_flattened(calibrate: object) -> None:
    draw = torch.Generator().manual_seed(0)
    prediction = Prediction(torch.randn(1, 300, 7, generator=draw))
    label = torch.randint(7, (300,), generator=draw)
    actual = calibrate(prediction, task(label, 7))  # type: ignore[operator]
    assert actual.label.equal(prediction.label)
    assert len(actual.confidence.unique()) > 100


def test_a_floor_of_zero_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"ETS.floor must lie in \(0, 1\]"):
        ETS(floor=0.0)
