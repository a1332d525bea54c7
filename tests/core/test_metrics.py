"""Metrics against numbers worked out by hand and against scikit-learn."""

import itertools
import math

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, brier_score_loss, confusion_matrix, f1_score, log_loss
from torch import Tensor

from bangs.core import metrics
from bangs.core.types import Prediction

EVERY_METRIC = {
    "accuracy": metrics.accuracy,
    "log_likelihood": metrics.log_likelihood,
    "negative_log_likelihood": metrics.negative_log_likelihood,
    "brier": metrics.brier,
    "calibration_error": metrics.calibration_error,
    "calibration_error_mass": lambda p, t: metrics.calibration_error(p, t, binning="mass"),
    "classwise_calibration_error": metrics.classwise_calibration_error,
    "macro_f1": metrics.macro_f1,
}


def predicted(*rows: list[float]) -> Prediction:
    """One run that gives these probabilities to its nodes."""
    return Prediction(torch.tensor([rows], dtype=torch.float64).log())


@pytest.fixture
def random() -> tuple[Prediction, Tensor]:
    generator = torch.Generator().manual_seed(0)
    prediction = Prediction(torch.randn(3, 400, 5, generator=generator) * 2)
    target = torch.randint(0, 5, (3, 400), generator=generator)
    return prediction, torch.where(torch.rand(3, 400, generator=generator) < 0.3, -1, target)


def test_four_nodes_by_hand():
    prediction = predicted([0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.5, 0.5])
    target = torch.tensor([[0, 1, 1, -1]])
    assert metrics.accuracy(prediction, target).item() == pytest.approx(2 / 3)
    expected = -(math.log(0.8) + math.log(0.4) + math.log(0.7)) / 3
    assert metrics.negative_log_likelihood(prediction, target).item() == pytest.approx(expected)
    assert metrics.log_likelihood(prediction, target).item() == pytest.approx(-expected)
    assert metrics.brier(prediction, target).item() == pytest.approx(2 * (0.04 + 0.36 + 0.09) / 3)
    assert metrics.confusion(prediction, target).tolist() == [[[1, 0], [1, 1]]]
    assert metrics.macro_f1(prediction, target).item() == pytest.approx((2 / 3 + 2 / 3) / 2)


def test_the_default_is_twenty_bins():
    """0.52 and 0.57 fall into one of ten bins, where a hit and a miss balance, and into two of twenty."""
    prediction, target = predicted([0.52, 0.48], [0.57, 0.43]), torch.tensor([[0, 1]])
    assert metrics.reliability(prediction, target).count.shape == (1, 20)
    for error in (metrics.calibration_error, metrics.classwise_calibration_error):
        assert error(prediction, target).item() == pytest.approx((0.48 + 0.57) / 2)
        assert error(prediction, target, bins=10).item() == pytest.approx(0.045)


def test_calibration_error_in_two_bins_by_hand():
    prediction = predicted([0.9, 0.05, 0.05], [0.7, 0.2, 0.1], [0.4, 0.3, 0.3], [0.2, 0.35, 0.45])
    target = torch.tensor([[0, 1, 0, 1]])
    # (0, ½] holds 0.40 and 0.45, one of them right; (½, 1] holds 0.9 and 0.7, one of them right
    diagram = metrics.reliability(prediction, target, bins=2)
    assert diagram.count.tolist() == [[2, 2]]
    torch.testing.assert_close(diagram.confidence, torch.tensor([[0.425, 0.8]], dtype=torch.float64))
    torch.testing.assert_close(diagram.accuracy, torch.tensor([[0.5, 0.5]], dtype=torch.float64))
    assert metrics.calibration_error(prediction, target, bins=2).item() == pytest.approx((0.075 + 0.3) / 2)
    assert metrics.calibration_error(prediction, target, bins=1).item() == pytest.approx(0.6125 - 0.5)


def test_classwise_calibration_error_by_hand():
    prediction = predicted([0.8, 0.2], [0.6, 0.4])
    target = torch.tensor([[0, 1]])
    # class 0 is predicted with 0.7 on average and true for half; class 1 mirrors it
    assert metrics.classwise_calibration_error(prediction, target, bins=1).item() == pytest.approx(0.2)


def test_a_confidence_on_the_border_belongs_to_the_lower_bin_and_certainty_to_the_last():
    prediction = predicted([0.5, 0.5], [1.0, 0.0])
    assert metrics.reliability(prediction, torch.tensor([[0, 0]]), bins=4).count.tolist() == [[0, 1, 0, 1]]


def test_bins_of_equal_mass_hold_equally_many_counted_nodes(random):
    prediction, target = random
    count = metrics.reliability(prediction, target, bins=7, binning="mass").count
    assert count.sum(1).tolist() == (target >= 0).sum(1).tolist()
    assert (count.amax(1) - count.amin(1)).max() <= 1


def test_bins_of_equal_mass_rise_in_confidence(random):
    confidence = metrics.reliability(*random, bins=9, binning="mass").confidence
    assert (confidence.diff(dim=1) >= 0).all()


def test_an_empty_bin_has_no_mean_and_no_error():
    diagram = metrics.reliability(predicted([0.9, 0.1]), torch.tensor([[0]]), bins=10)
    assert diagram.confidence.isnan().sum() == 9
    assert diagram.error.item() == pytest.approx(0.1)


def test_a_perfectly_calibrated_prediction_has_little_error():
    generator = torch.Generator().manual_seed(1)
    prediction = Prediction(2 * torch.randn(1, 40_000, 4, generator=generator))
    target = torch.multinomial(prediction.probs[0], 1, generator=generator).T
    for binning in ("width", "mass"):
        assert metrics.calibration_error(prediction, target, binning=binning).item() < 0.02
    assert metrics.classwise_calibration_error(prediction, target).item() < 0.01
    assert metrics.calibration_error(Prediction(3 * prediction.logits), target).item() > 0.1


@pytest.mark.parametrize("bins", [1, 15, 20])
@pytest.mark.parametrize("binning", ["width", "mass"])
def test_calibration_error_equals_its_slow_twin(random, bins, binning):
    prediction, target = random
    for run in range(3):
        counted = (target[run] >= 0).numpy()
        confidence = prediction.confidence[run].double().numpy()[counted]
        right = (prediction.label[run] == target[run]).numpy()[counted]
        if binning == "width":
            edges = np.linspace(0, 1, bins + 1)
            groups = [(confidence > low) & (confidence <= high) for low, high in itertools.pairwise(edges)]
        else:
            order = np.argsort(confidence, kind="stable")
            bin_index = np.arange(len(order)) * bins // len(order)
            groups = [order[bin_index == bin] for bin in range(bins)]
        parts = [(confidence[group], right[group]) for group in groups]
        expected = sum(len(c) * abs(r.mean() - c.mean()) for c, r in parts if len(c)) / counted.sum()
        got = metrics.calibration_error(prediction, target, bins, binning)[run].item()
        assert got == pytest.approx(expected, abs=1e-9)


def test_scikit_learn_agrees(random):
    prediction, target = random
    for run in range(3):
        counted = target[run] >= 0
        truth, probs = target[run][counted].numpy(), prediction.probs[run][counted].double().numpy()
        probs /= probs.sum(1, keepdims=True)
        label = prediction.label[run][counted].numpy()
        assert metrics.accuracy(prediction, target)[run].item() == pytest.approx(accuracy_score(truth, label))
        nll = metrics.negative_log_likelihood(prediction, target)[run].item()
        assert nll == pytest.approx(log_loss(truth, probs, labels=range(5)), abs=1e-6)
        one_against_rest = sum(brier_score_loss(truth == c, probs[:, c]) for c in range(5))
        assert metrics.brier(prediction, target)[run].item() == pytest.approx(one_against_rest, abs=1e-6)
        assert (metrics.confusion(prediction, target)[run].numpy() == confusion_matrix(truth, label)).all()
        macro = f1_score(truth, label, average="macro")
        assert metrics.macro_f1(prediction, target)[run].item() == pytest.approx(macro)


def test_macro_f1_leaves_out_a_class_without_target_or_prediction():
    prediction = Prediction(torch.tensor([[[5.0, 0, 0], [0, 5, 0]]]))
    assert metrics.macro_f1(prediction, torch.tensor([[0, 1]])).item() == 1.0


def test_entropy_of_known_distributions():
    got = metrics.entropy(torch.tensor([[0.25] * 4, [1.0, 0, 0, 0], [0.5, 0.5, 0, 0]]))
    torch.testing.assert_close(got, torch.tensor([math.log(4), 0.0, math.log(2)]))


@pytest.mark.parametrize("name", EVERY_METRIC)
def test_one_float64_number_per_run_and_a_run_alone_equals_the_run_in_a_batch(random, name):
    prediction, target = random
    together = EVERY_METRIC[name](prediction, target)
    assert together.shape == (3,)
    assert together.dtype == torch.float64
    alone = [EVERY_METRIC[name](Prediction(prediction.logits[[run]]), target[[run]]) for run in range(3)]
    torch.testing.assert_close(torch.cat(alone), together)


@pytest.mark.parametrize("name", EVERY_METRIC)
def test_nodes_that_are_not_counted_do_not_matter(random, name):
    prediction, target = random
    other = torch.where((target >= 0)[..., None], prediction.logits, -7 * prediction.logits.flip(-1))
    torch.testing.assert_close(EVERY_METRIC[name](Prediction(other), target), EVERY_METRIC[name](prediction, target))


@pytest.mark.parametrize("name", EVERY_METRIC)
def test_a_run_without_counted_nodes_has_no_number_and_leaves_the_others_alone(random, name):
    prediction, target = random
    some = target.clone()
    some[1] = -1
    got, full = EVERY_METRIC[name](prediction, some), EVERY_METRIC[name](prediction, target)
    assert got[1].isnan()
    torch.testing.assert_close(got[[0, 2]], full[[0, 2]])
