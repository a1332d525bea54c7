"""What every calibrator promises."""

import pytest
import torch
from torch_geometric.data import Data

from bangs.calibration.calibrators import (
    CALIBRATORS,
    ETS,
    GATS,
    CaGCN,
    Calibrator,
    Temperature,
    Uncalibrated,
    Vector,
    calibrator,
)
from bangs.calibration.crossfit import Crossfit
from bangs.calibration.proven_temperature import ProvenTemperature
from bangs.core import metrics
from bangs.core.types import Labels, Prediction, Task
from tests.calibration.miscalibrated import Miscalibrated, miscalibrated

SHORT = {"cagcn": CaGCN(fit=Crossfit(epochs=20)), "gats": GATS(fit=Crossfit(epochs=20))}
KEEPS_LABELS = ["none", "temperature", "ets", "cagcn", "gats"]


@pytest.fixture(scope="module")
def case() -> Miscalibrated:
    return miscalibrated("region", nodes=400, runs=3)


@pytest.fixture(scope="module", params=CALIBRATORS)
def named(request) -> str:
    return request.param


def part(name: str) -> Calibrator:
    """The calibrator of that name; those that are trained, briefly."""
    return SHORT.get(name, calibrator(name))


@pytest.fixture(scope="module")
def calibrated(named, case) -> Prediction:
    return part(named)(case.prediction, case.task)


def without_validation(task: Task, runs: list[int]) -> Task:
    validation = task.validation.clone()
    validation[runs] = -1
    return Task(task.graph, task.given, validation, task.classes)


def test_logits_keep_shape_type_and_are_finite(calibrated, case):
    assert calibrated.logits.shape == case.prediction.logits.shape
    assert calibrated.logits.dtype == case.prediction.logits.dtype
    assert calibrated.log_probs.isfinite().all()
    assert not calibrated.logits.requires_grad


def test_held_out_likelihood_rises(named, calibrated, case):
    before, after = (metrics.negative_log_likelihood(p, case.test) for p in (case.prediction, calibrated))
    assert named == "none" or (after < before - 0.1).all()


def test_labels_are_kept_where_the_theory_says_so(named, calibrated, case):
    changed = calibrated.label != case.prediction.label
    assert named not in KEEPS_LABELS or not changed.any()


def test_the_prediction_given_is_not_touched(named, case):
    before = case.prediction.logits.clone()
    part(named)(case.prediction, case.task)
    assert torch.equal(case.prediction.logits, before)


def test_the_same_call_gives_the_same_numbers(named, calibrated, case):
    assert torch.equal(part(named)(case.prediction, case.task).logits, calibrated.logits)


def test_a_run_alone_equals_the_run_in_a_batch(named, calibrated, case):
    for run in range(3):
        alone = part(named)(Prediction(case.prediction.logits[[run]]), case.task.only([run]))
        torch.testing.assert_close(alone.probs[0], calibrated.probs[run], rtol=0, atol=1e-5)


def test_only_validation_labels_are_read(named, calibrated, case):
    """Other given labels change nothing; where they are given may."""
    given = case.task.given
    shifted = torch.where(given.known, (given.target + 1) % 4, -1)
    task = Task(case.task.graph, Labels.given(shifted), case.task.validation, 4)
    assert torch.equal(part(named)(case.prediction, task).logits, calibrated.logits)


def test_a_run_without_validation_nodes_stays_as_it_is_and_the_others_as_they_were(named, calibrated, case):
    got = part(named)(case.prediction, without_validation(case.task, [1]))
    torch.testing.assert_close(got.probs[1], case.prediction.probs[1], rtol=0, atol=5e-3)
    torch.testing.assert_close(got.probs[[0, 2]], calibrated.probs[[0, 2]], rtol=0, atol=1e-5)


def test_no_validation_node_at_all_changes_nothing(named, case):
    got = part(named)(case.prediction, without_validation(case.task, [0, 1, 2]))
    torch.testing.assert_close(got.probs, case.prediction.probs, rtol=0, atol=5e-3)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_handful_of_validation_nodes_gives_finite_numbers(named, case, count):
    held = (case.task.held.cumsum(1) <= count) & case.task.held
    task = Task(case.task.graph, case.task.given, torch.where(held, case.task.validation, -1), 4)
    got = part(named)(case.prediction, task)
    assert got.log_probs.isfinite().all()


def test_one_class_of_validation_labels_gives_finite_numbers(named, case):
    task = Task(case.task.graph, case.task.given, case.task.validation.clamp(max=0), 4)
    assert part(named)(case.prediction, task).log_probs.isfinite().all()


def test_equal_and_huge_logits_give_finite_numbers(named, case):
    logits = case.prediction.logits.clone()
    logits[:, ::7] = 1.0
    for factor in (0.0, 1e3):
        assert part(named)(Prediction(factor * logits), case.task).log_probs.isfinite().all()


def test_a_graph_without_edges_will_do(named, case):
    empty = Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=case.task.nodes)
    task = Task(empty, case.task.given, case.task.validation, 4)
    before = metrics.negative_log_likelihood(case.prediction, case.test)
    after = metrics.negative_log_likelihood(part(named)(case.prediction, task), case.test)
    assert named == "none" or (after < before).all()


def test_float64_logits_stay_float64(named, case):
    wide = Prediction(case.prediction.logits.double())
    assert part(named)(wide, case.task).logits.dtype == torch.float64


def test_the_representation_rebuilds_the_part(named):
    names = {kind.__name__: kind for kind in (Uncalibrated, Temperature, ProvenTemperature, Vector, ETS, CaGCN, GATS)}
    names["Crossfit"] = Crossfit
    whole = calibrator(named)
    assert eval(repr(whole), names) == whole


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_gpu_agrees_with_the_cpu(named, calibrated, case):
    got = part(named)(Prediction(case.prediction.logits.cuda()), case.task.to("cuda"))
    torch.testing.assert_close(got.probs.cpu(), calibrated.probs, rtol=0, atol=5e-3)
