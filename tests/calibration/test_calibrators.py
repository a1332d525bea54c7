"""Temperature, vector and ensemble temperature scaling: known distortions, slow twins, edge cases."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize, minimize_scalar
from torch import Tensor
from torch_geometric.data import Data

from bangs.calibration import calibrators, logit_scaling
from bangs.calibration.calibrators import CALIBRATORS, ETS, GATS, CaGCN, Temperature, Uncalibrated, Vector, calibrator
from bangs.calibration.logit_scaling import ValidationSample, mixture, vector
from bangs.calibration.proven_temperature import ProvenTemperature
from bangs.core import metrics
from bangs.core.types import Labels, Prediction, Task
from bangs.errors import InvalidInput, UnknownName

PLAIN = [Temperature(), Vector(), ETS()]


def task_of(validation: Tensor, classes: int) -> Task:
    """A task without edges that holds these validation labels [R, N]."""
    graph = Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=validation.shape[1])
    return Task(graph, Labels.given(torch.full_like(validation, -1)), validation, classes)


def calibrated_logits(nodes: int, classes: int = 4, runs: int = 2, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Logits z [R, N, C] and labels drawn from softmax(z)."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(runs, nodes, classes, generator=generator)
    label = torch.multinomial(logits.softmax(-1).flatten(0, 1), 1, generator=generator)
    return logits, label.view(runs, nodes)


def halves(label: Tensor, classes: int = 4) -> tuple[Task, Tensor]:
    """The first half of the nodes for validation, the targets of the second half for the test."""
    first = torch.arange(label.shape[1]) < label.shape[1] // 2
    return task_of(torch.where(first, label, -1), classes), torch.where(first, -1, label)


@pytest.mark.parametrize("factor", [0.1, 0.5, 1.0, 3.0, 20.0])
def test_temperature_recovers_the_factor_that_spoiled_the_logits(factor):
    logits, label = calibrated_logits(20_000)
    task, _ = halves(label)
    temperature = Temperature().fit(Prediction(factor * logits), task)
    torch.testing.assert_close(temperature, torch.full_like(temperature, factor), rtol=0.05, atol=0)


def test_vector_recovers_weights_and_biases():
    logits, label = calibrated_logits(40_000)
    weight, bias = torch.tensor([0.5, 1.0, 2.0, 1.5]), torch.tensor([1.0, -1.0, 0.5, -0.5])
    spoiled = Prediction((logits - bias) / weight)
    task, _ = halves(label)
    found_weight, found_bias = Vector().fit(spoiled, task)
    torch.testing.assert_close(found_weight, weight.double().expand(2, -1), rtol=0.05, atol=0.02)
    found_bias = found_bias - found_bias.mean(1, keepdim=True)
    torch.testing.assert_close(found_bias, bias.double().expand(2, -1), rtol=0, atol=0.08)
    assert (Vector()(spoiled, task).probs - logits.softmax(-1)).abs().mean() < 0.01


@pytest.mark.parametrize("factor", [0.3, 4.0])
def test_ets_recovers_a_known_distortion(factor):
    """Labels follow softmax(z), the classifier predicts softmax(factor·z)."""
    logits, label = calibrated_logits(16_000)
    task, test = halves(label)
    got = ETS()(Prediction(factor * logits), task)
    assert (got.probs - logits.softmax(-1)).abs().mean() < 0.01
    reachable = metrics.negative_log_likelihood(Prediction(logits), test)
    assert (metrics.negative_log_likelihood(got, test) - reachable < 0.003).all()


def test_ets_sees_noise_that_temperature_cannot():
    """Labels follow 0.8·softmax(z) + 0.2/C, as noisy labels do, the classifier predicts softmax(3z)."""
    generator = torch.Generator().manual_seed(3)
    logits, _ = calibrated_logits(16_000)
    truth = 0.8 * logits.softmax(-1) + 0.2 / 4
    draw = torch.rand(truth.shape[:-1], generator=generator, dtype=torch.float64)  # alike in all versions of torch
    label = (truth.cumsum(-1)[..., :-1] < draw[..., None]).sum(-1)
    task, test = halves(label)
    spoiled = Prediction(3 * logits)
    got, plain = ETS()(spoiled, task), Temperature()(spoiled, task)
    assert (got.probs - truth).abs().mean() < 0.75 * (plain.probs - truth).abs().mean()
    reachable = metrics.negative_log_likelihood(Prediction(truth.log()), test)
    assert (metrics.negative_log_likelihood(got, test) - reachable < 0.004).all()


def test_ets_improves_a_sharpened_prediction_mixed_with_the_uniform_distribution():
    logits, label = calibrated_logits(16_000)
    task, test = halves(label)
    spoiled = Prediction((0.9 * (2 * logits).softmax(-1) + 0.1 / 4).log())
    before, after = (metrics.negative_log_likelihood(p, test) for p in (spoiled, ETS()(spoiled, task)))
    assert (after < before - 0.01).all()


@pytest.mark.parametrize("truth", [(0.6, 0.1, 0.3), (0.0, 0.7, 0.3), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)])
def test_the_weights_of_a_known_mixture_are_recovered(truth):
    generator = torch.Generator().manual_seed(4)
    sharp = 6 * torch.randn(1, 4, 20_000, generator=generator, dtype=torch.float64)
    members = torch.stack([sharp.softmax(1), (sharp / 5).softmax(1), torch.full_like(sharp, 1 / 4)], 1)
    weights = torch.tensor([truth], dtype=torch.float64)
    target = (weights[..., None, None] * members).sum(1) / 20_000
    torch.testing.assert_close(mixture(members, target), weights, rtol=0, atol=1e-6)


@pytest.mark.parametrize("part", PLAIN, ids=repr)
@pytest.mark.parametrize("factor", [0.2, 4.0])
def test_held_out_likelihood_improves(part, factor):
    logits, label = calibrated_logits(2_000)
    task, test = halves(label)
    spoiled = Prediction(factor * logits)
    before, after = (metrics.negative_log_likelihood(p, test) for p in (spoiled, part(spoiled, task)))
    assert (after < before - 0.05).all()


@pytest.mark.parametrize("part", [Temperature(), ETS()], ids=repr)
def test_scaling_by_one_temperature_keeps_every_label(part):
    logits, label = calibrated_logits(3_000)
    task, _ = halves(label)
    spoiled = Prediction(4 * logits)
    assert torch.equal(part(spoiled, task).label, spoiled.label)


def test_a_calibrated_prediction_hardly_changes():
    logits, label = calibrated_logits(20_000)
    task, _ = halves(label)
    for part in PLAIN:
        assert (part(Prediction(logits), task).probs - logits.softmax(-1)).abs().mean() < 0.01


class TestSlowTwins:
    """The batched solvers reach what scipy reaches, run by run."""

    @pytest.fixture(params=[(0.3, 1.0), (1.0, 1.0), (5.0, 0.0)], ids=["dull", "honest", "sharp"])
    def case(self, request) -> tuple[Prediction, Task, float]:
        factor, prior = request.param
        logits, label = calibrated_logits(600, seed=5)
        generator = torch.Generator().manual_seed(6)
        noisy = torch.where(torch.rand(label.shape, generator=generator) < 0.2, label.roll(7, 1), label)
        return Prediction(factor * logits), halves(noisy)[0], prior

    def test_temperature(self, case):
        prediction, task, prior = case
        actual = Temperature(prior).fit(prediction, task)
        sample = ValidationSample.of(prediction, task, prior)
        for run in range(2):

            def loss(log_beta: float, run: int = run) -> float:
                return _cross_entropy(np.exp(log_beta) * sample.logits[run].numpy(), sample.target[run].numpy())

            slow = minimize_scalar(loss, bounds=(-4.6, 4.6), method="bounded", options={"xatol": 1e-10})
            assert actual[run].item() == pytest.approx(np.exp(-slow.x), rel=1e-5)
            assert loss(-np.log(actual[run].item())) <= slow.fun + 1e-12

    def test_vector(self, case):
        prediction, task, prior = case
        sample = ValidationSample.of(prediction, task, prior)
        weight, bias = vector(sample.logits, sample.target, torch.full((2,), 1e-3, dtype=torch.float64))
        for run in range(2):

            def loss(point: np.ndarray, run: int = run) -> float:
                w, b = np.split(point[:, None], 2)
                penalty = 0.5e-3 * (((w - 1) ** 2).sum() + (b**2).sum())
                return penalty + _cross_entropy(w * sample.logits[run].numpy() + b, sample.target[run].numpy())

            slow = minimize(loss, [1.0] * 4 + [0.0] * 4, method="BFGS", options={"gtol": 1e-7})
            assert loss(torch.cat([weight[run], bias[run]]).numpy()) <= slow.fun + 1e-12
            np.testing.assert_allclose(torch.cat([weight[run], bias[run]]), slow.x, atol=1e-3)

    def test_mixture(self, case):
        prediction, task, prior = case
        temperature, weights = ETS(prior).fit(prediction, task)
        sample = ValidationSample.of(prediction, task, prior)
        for run in range(2):
            z = sample.logits[run]
            members = torch.stack([(z / temperature[run]).softmax(0), z.softmax(0), torch.full_like(z, 1 / 4)]).numpy()

            def loss(w: np.ndarray, run: int = run, members: np.ndarray = members) -> float:
                mixed = np.maximum(np.tensordot(w, members, 1), 1e-300)
                return float(-(sample.target[run].numpy() * np.log(mixed)).sum())

            total = {"type": "eq", "fun": lambda w: w.sum() - 1}
            slow = minimize(loss, [1 / 3] * 3, method="SLSQP", bounds=[(0, 1)] * 3, constraints=total, tol=1e-13)
            actual = weights[run].numpy()
            assert actual.min() >= 0
            assert actual.sum() == pytest.approx(1)
            assert loss(actual) <= slow.fun + 1e-10


@pytest.mark.parametrize("part", PLAIN, ids=repr)
class TestEdgeCases:
    def test_no_validation_node_at_all_changes_nothing(self, part):
        logits, label = calibrated_logits(50)
        task = task_of(torch.full_like(label, -1), 4)
        torch.testing.assert_close(part(Prediction(logits), task).probs, logits.softmax(-1), rtol=1e-3, atol=1e-4)

    def test_a_run_without_validation_nodes_does_not_disturb_the_others(self, part):
        logits, label = calibrated_logits(400)
        validation = halves(label)[0].validation.clone()
        validation[1] = -1
        got = part(Prediction(4 * logits), task_of(validation, 4))
        alone = part(Prediction(4 * logits[:1]), task_of(validation[:1], 4))
        torch.testing.assert_close(got.logits[:1], alone.logits)
        torch.testing.assert_close(got.probs[1], (4 * logits[1]).softmax(-1), rtol=1e-3, atol=1e-4)

    def test_a_run_with_few_validation_nodes_is_calibrated_as_if_alone(self, part):
        logits, label = calibrated_logits(400)
        validation = halves(label)[0].validation.clone()
        validation[1, 20:] = -1
        got = part(Prediction(4 * logits), task_of(validation, 4))
        alone = part(Prediction(4 * logits[1:]), task_of(validation[1:], 4))
        torch.testing.assert_close(got.logits[1:], alone.logits)

    def test_one_validation_node_moves_little(self, part):
        logits, _ = calibrated_logits(50)
        validation = torch.where(torch.arange(50) == 3, logits.argmax(-1), -1)
        got = part(Prediction(logits), task_of(validation, 4))
        assert got.logits.isfinite().all()
        assert got.confidence.mean() < 0.99

    def test_perfectly_separable_validation_labels_stay_finite(self, part):
        logits, _ = calibrated_logits(200)
        got = part(Prediction(logits), task_of(logits.argmax(-1), 4))
        assert got.logits.isfinite().all()
        assert (got.log_probs > -1e5).all()
        assert (got.label == logits.argmax(-1)).double().mean() > 0.95

    def test_wrong_everywhere_ends_near_the_uniform_distribution(self, part):
        logits, _ = calibrated_logits(400)
        got = part(Prediction(logits), task_of((logits.argmax(-1) + 1) % 4, 4))
        assert got.logits.isfinite().all()
        assert metrics.negative_log_likelihood(got, (logits.argmax(-1) + 1) % 4).max() < 1.45

    def test_validation_labels_of_one_class_only(self, part):
        logits, _ = calibrated_logits(200)
        got = part(Prediction(logits), task_of(torch.zeros(2, 200, dtype=torch.long), 4))
        assert got.logits.isfinite().all()

    def test_huge_and_constant_logits_stay_finite(self, part):
        logits, label = calibrated_logits(200)
        logits[:, :20] = 3.0
        task = halves(label)[0]
        for factor in (0.0, 1e-6, 1e4):
            assert part(Prediction(factor * logits), task).log_probs.isfinite().all()


def test_without_a_prior_separable_labels_meet_the_bound():
    logits, _ = calibrated_logits(200)
    temperature = Temperature(prior=0).fit(Prediction(logits), task_of(logits.argmax(-1), 4))
    torch.testing.assert_close(temperature, torch.full_like(temperature, 0.01), rtol=1e-6, atol=0)


def test_without_a_prior_labels_that_are_all_wrong_meet_the_other_bound():
    logits, _ = calibrated_logits(200)
    temperature = Temperature(prior=0).fit(Prediction(logits), task_of((logits.argmax(-1) + 1) % 4, 4))
    torch.testing.assert_close(temperature, torch.full_like(temperature, 100.0), rtol=1e-6, atol=0)


@pytest.mark.parametrize("prior", [0.0, 1.0, 50.0])
def test_the_targets_of_a_run_weigh_one_in_all_whatever_the_prior_and_however_few_nodes(prior):
    logits, label = calibrated_logits(30, runs=3)
    validation = torch.where(torch.arange(30) < torch.tensor([[20], [3], [0]]), label, -1)
    sample = ValidationSample.of(Prediction(logits), task_of(validation, 4), prior)
    torch.testing.assert_close(sample.target.sum((1, 2)), torch.ones(3, dtype=torch.float64))
    assert (sample.target[1, :, 3:] == 0).all()


def test_what_has_converged_stands_still_however_long_others_take(monkeypatch):
    """So a run ends at the same bits alone and in a batch."""
    logits, label = calibrated_logits(200)
    case = Prediction(3 * logits), halves(label)[0]
    asked_often, asked_never = [], []
    for every, fits in ((1, asked_often), (1000, asked_never)):
        monkeypatch.setattr(logit_scaling, "_CHECK_EVERY", every)
        fits += [Temperature().fit(*case), *Vector().fit(*case), *ETS().fit(*case)]
    assert all(torch.equal(one, other) for one, other in zip(asked_often, asked_never, strict=True))


def test_the_prior_weighs_as_much_as_its_nodes():
    logits, label = calibrated_logits(4_000)
    task, _ = halves(label)
    spoiled = Prediction(3 * logits)
    weak, strong = (Temperature(prior).fit(spoiled, task) for prior in (1.0, 1e6))
    torch.testing.assert_close(weak, torch.full_like(weak, 3.0), rtol=0.1, atol=0)
    torch.testing.assert_close(strong, torch.ones_like(strong), rtol=0.01, atol=0)


def test_the_models_own_prediction_counts_as_one_validation_node():
    """Of a single right node with p = σ(2) a half of the target is p: σ(2/T) = (1 + p)/2."""
    confidence = torch.tensor(2.0, dtype=torch.float64).sigmoid()
    wanted = 2 / ((1 + confidence) / 2).logit()
    prediction, task = Prediction(torch.tensor([[[2.0, 0.0]]])), task_of(torch.tensor([[0]]), 2)
    torch.testing.assert_close(Temperature().fit(prediction, task), wanted[None])
    torch.testing.assert_close(ETS().fit(prediction, task)[0], wanted[None])


def test_a_mixture_does_not_depend_on_how_many_nodes_are_mixed_at_once(monkeypatch):
    logits, label = calibrated_logits(29)
    task, _ = halves(label)
    whole = ETS()(Prediction(logits), task)
    monkeypatch.setattr(calibrators, "CHUNK", 7)
    torch.testing.assert_close(ETS()(Prediction(logits), task).logits, whole.logits)


@pytest.mark.parametrize("count", [5, 20, 100])
def test_vector_with_few_nodes_stays_close_to_temperature_scaling(count):
    logits, label = calibrated_logits(2_000, runs=4)
    validation = torch.where(torch.arange(2_000) < count, label, -1)
    test = torch.where(torch.arange(2_000) < count, -1, label)
    plain, rich = (part(Prediction(3 * logits), task_of(validation, 4)) for part in (Temperature(), Vector()))
    loss = metrics.negative_log_likelihood(rich, test) - metrics.negative_log_likelihood(plain, test)
    assert loss.mean() < 0.05


def test_uncalibrated_is_the_prediction_itself():
    logits, label = calibrated_logits(10)
    prediction = Prediction(logits)
    assert Uncalibrated()(prediction, halves(label)[0]) is prediction


def test_names_lead_to_calibrators():
    parts = {"none": Uncalibrated(), "temperature": Temperature(), "vector": Vector(), "ets": ETS()}
    parts |= {"proven": ProvenTemperature(), "cagcn": CaGCN(), "gats": GATS()}
    assert {name: calibrator(name) for name in CALIBRATORS} == parts


def test_bad_settings_and_unknown_names_say_what_to_do():
    with pytest.raises(InvalidInput, match=r"Temperature\.prior must be a number of nodes, 0 or more, got -1"):
        Temperature(prior=-1)
    with pytest.raises(InvalidInput, match=r"Vector\.ridge must be positive"):
        Vector(ridge=0)
    with pytest.raises(UnknownName, match="did you mean 'temperature'"):
        calibrator("temprature")


def _cross_entropy(logits: np.ndarray, target: np.ndarray) -> float:
    shifted = logits - logits.max(0)
    return float(-(target * (shifted - np.log(np.exp(shifted).sum(0)))).sum())
