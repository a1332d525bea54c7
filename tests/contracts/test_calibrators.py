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
from tests.calibration.miscalibrated import Misled, misled

SHORT = {"cagcn": CaGCN(fit=Crossfit(epochs=20)), "gats": GATS(fit=Crossfit(epochs=20))}
KEEPS_LABELS = ["none", "temperature", "ets", "cagcn", "gats"]


@pytest.fixture(scope="module")
def world() -> Misled:
    return misled("region", nodes=400, runs=3)


@pytest.fixture(scope="module", params=CALIBRATORS)
def named(request) -> str:
    return request.param


def part(name: str) -> Calibrator:
    """The calibrator of that name; those that are trained, briefly."""
    return SHORT.get(name, calibrator(name))


@pytest.fixture(scope="module")
def calibrated(named, world) -> Prediction:
    return part(named)(world.prediction, world.task)


def without_validation(task: Task, runs: list[int]) -> Task:
    validation = task.validation.clone()
    validation[runs] = -1
    return Task(task.graph, task.given, validation, task.classes)


def test_logits_keep_shape_type_and_are_finite(calibrated, world):
    assert calibrated.logits.shape == world.prediction.logits.shape
    assert calibrated.logits.dtype == world.prediction.logits.dtype
    assert calibrated.log_probs.isfinite().all()
    assert not calibrated.logits.requires_grad


def test_held_out_likelihood_rises(named, calibrated, world):
    before, after = (metrics.negative_log_likelihood(p, world.test) for p in (world.prediction, calibrated))
    assert named == "none" or (after < before - 0.1).all()


def test_labels_are_kept_where_the_theory_says_so(named, calibrated, world):
    changed = calibrated.label != world.prediction.label
    assert named not in KEEPS_LABELS or not changed.any()


def test_the_prediction_given_is_not_touched(named, world):
    before = world.prediction.logits.clone()
    part(named)(world.prediction, world.task)
    assert torch.equal(world.prediction.logits, before)


def test_the_same_call_gives_the_same_numbers(named, calibrated, world):
    assert torch.equal(part(named)(world.prediction, world.task).logits, calibrated.logits)


def test_a_run_alone_equals_the_run_in_a_batch(named, calibrated, world):
    for run in range(3):
        alone = part(named)(Prediction(world.prediction.logits[[run]]), world.task.only([run]))
        torch.testing.assert_close(alone.probs[0], calibrated.probs[run], rtol=0, atol=1e-5)


def test_only_validation_labels_are_read(named, calibrated, world):
    """Other given labels change nothing; where they are given may."""
    given = world.task.given
    shifted = torch.where(given.known, (given.target + 1) % 4, -1)
    task = Task(world.task.graph, Labels.given(shifted), world.task.validation, 4)
    assert torch.equal(part(named)(world.prediction, task).logits, calibrated.logits)


def test_a_run_without_validation_nodes_stays_as_it_is_and_the_others_as_they_were(named, calibrated, world):
    got = part(named)(world.prediction, without_validation(world.task, [1]))
    torch.testing.assert_close(got.probs[1], world.prediction.probs[1], rtol=0, atol=5e-3)
    torch.testing.assert_close(got.probs[[0, 2]], calibrated.probs[[0, 2]], rtol=0, atol=1e-5)


def test_no_validation_node_at_all_changes_nothing(named, world):
    got = part(named)(world.prediction, without_validation(world.task, [0, 1, 2]))
    torch.testing.assert_close(got.probs, world.prediction.probs, rtol=0, atol=5e-3)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_handful_of_validation_nodes_gives_finite_numbers(named, world, count):
    held = (world.task.held.cumsum(1) <= count) & world.task.held
    task = Task(world.task.graph, world.task.given, torch.where(held, world.task.validation, -1), 4)
    got = part(named)(world.prediction, task)
    assert got.log_probs.isfinite().all()


def test_one_class_of_validation_labels_gives_finite_numbers(named, world):
    task = Task(world.task.graph, world.task.given, world.task.validation.clamp(max=0), 4)
    assert part(named)(world.prediction, task).log_probs.isfinite().all()


def test_equal_and_huge_logits_give_finite_numbers(named, world):
    logits = world.prediction.logits.clone()
    logits[:, ::7] = 1.0
    for factor in (0.0, 1e3):
        assert part(named)(Prediction(factor * logits), world.task).log_probs.isfinite().all()


def test_a_graph_without_edges_will_do(named, world):
    empty = Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=world.task.nodes)
    task = Task(empty, world.task.given, world.task.validation, 4)
    before = metrics.negative_log_likelihood(world.prediction, world.test)
    after = metrics.negative_log_likelihood(part(named)(world.prediction, task), world.test)
    assert named == "none" or (after < before).all()


def test_float64_logits_stay_float64(named, world):
    wide = Prediction(world.prediction.logits.double())
    assert part(named)(wide, world.task).logits.dtype == torch.float64


def test_the_representation_rebuilds_the_part(named):
    names = {kind.__name__: kind for kind in (Uncalibrated, Temperature, ProvenTemperature, Vector, ETS, CaGCN, GATS)}
    names["Crossfit"] = Crossfit
    whole = calibrator(named)
    assert eval(repr(whole), names) == whole


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_gpu_agrees_with_the_cpu(named, calibrated, world):
    got = part(named)(Prediction(world.prediction.logits.cuda()), world.task.to("cuda"))
    torch.testing.assert_close(got.probs.cpu(), calibrated.probs, rtol=0, atol=5e-3)
