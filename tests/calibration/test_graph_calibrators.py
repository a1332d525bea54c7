"""CaGCN and GATS: slow twins of their networks, and node-wise miscalibration they can see."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional
from torch_geometric.data import Data

from bangs.calibration.calibrators import GATS, CaGCN, Temperature
from bangs.calibration.crossfit import Crossfit, _Folds
from bangs.calibration.graph_calibrators import _Attention, _Convolution, hops
from bangs.calibration.logit_scaling import ValidationSample
from bangs.core import metrics
from bangs.core.types import Prediction
from bangs.errors import InvalidInput
from bangs.graphs.sparse import adjacency
from tests.calibration.miscalibrated import Miscalibrated, miscalibrated

SHORT = Crossfit(epochs=25)
LONG = Crossfit(epochs=120)
START = Crossfit(epochs=0)


@pytest.fixture(scope="module")
def region() -> Miscalibrated:
    return miscalibrated("region", nodes=600)


@pytest.fixture(scope="module")
def degree() -> Miscalibrated:
    return miscalibrated("degree", nodes=600)


def likelihood(prediction: Prediction, case: Miscalibrated) -> Tensor:
    """Mean log-likelihood of the held-out nodes: [R]."""
    return metrics.log_likelihood(prediction, case.test)


class TestWhatTheyCanSee:
    """CaGCN: one half of the graph is too sure. GATS: some nodes are surer than their neighbours."""

    @pytest.mark.parametrize("margin", [0.5, 0.0])
    def test_cagcn(self, region, margin):
        part = CaGCN(margin=margin, fit=LONG)
        temperature = part.temperatures(region.prediction, region.task)
        after = likelihood(Prediction(region.prediction.logits / temperature[..., None]), region)
        before, best = likelihood(region.prediction, region), likelihood(region.truth, region)
        assert (after > likelihood(Temperature()(region.prediction, region.task), region) + 0.05).all()
        assert (best - after < 0.25 * (best - before)).all()
        sure = torch.arange(600) % 4 < 2
        assert (temperature[:, sure].mean(1) > 1.3 * temperature[:, ~sure].mean(1)).all()

    def test_gats(self, degree):
        temperature = GATS(fit=LONG).temperatures(degree.prediction, degree.task)
        after = likelihood(Prediction(degree.prediction.logits / temperature[..., None]), degree)
        assert (after > likelihood(Temperature()(degree.prediction, degree.task), degree) + 0.05).all()
        sure = torch.bincount(degree.task.graph.edge_index[1]) > 8
        assert (temperature[:, sure].mean(1) > 1.3 * temperature[:, ~sure].mean(1)).all()


@pytest.mark.parametrize("part", [CaGCN(fit=SHORT), GATS(fit=SHORT)], ids=["cagcn", "gats"])
def test_nothing_is_lost_where_there_is_nothing_to_see(part):
    case = miscalibrated("scale", nodes=600)
    scaled = Temperature()(case.prediction, case.task)
    assert (likelihood(part(case.prediction, case.task), case) > likelihood(scaled, case) - 0.003).all()


@pytest.mark.parametrize("part", [CaGCN(fit=SHORT, prior=0), GATS(fit=SHORT, prior=0)], ids=["cagcn", "gats"])
def test_temperatures_follow_the_scale_of_the_logits(region, part):
    once = part.temperatures(region.prediction, region.task)
    eightfold = part.temperatures(Prediction(8 * region.prediction.logits), region.task)
    torch.testing.assert_close(eightfold, 8 * once, rtol=1e-4, atol=0)


@pytest.mark.parametrize(("part", "error"), [(CaGCN(fit=START), 1e-9), (GATS(fit=START), 0.01)], ids=["cagcn", "gats"])
def test_both_start_at_temperature_scaling(region, part, error):
    actual = part.temperatures(region.prediction, region.task)
    plain = Temperature().fit(region.prediction, region.task)
    torch.testing.assert_close(actual, plain[:, None].expand_as(actual), rtol=error, atol=0)


def test_cagcn_learns_from_logits_of_unit_mean_square_by_the_published_margin(region):
    """With every node held, the network sees D^-½(A + I)D^-½ z of all."""
    recorded = []

    def fit(network, start, sample, shuffle, margin=0.0):
        recorded.append((network.smooth, start[0], margin))
        return start

    everyone = replace(region.task, validation=region.truth.label)
    prediction = Prediction(region.prediction.logits * torch.tensor([1.0, 5.0])[:, None, None])
    CaGCN(fit=fit).temperatures(prediction, everyone)
    ((smooth, weight, margin),) = recorded
    wanted = (
        torch.as_tensor(adjacency(region.task.graph, 1.0, "symmetric").toarray()).double() @ prediction.logits.double()
    )
    torch.testing.assert_close(smooth, wanted / wanted.square().mean((1, 2), keepdim=True).sqrt(), rtol=1e-5, atol=1e-6)
    assert margin == 0.5
    bound = math.sqrt(6 / (region.task.classes + 16))  # Glorot's
    assert -bound <= weight.min() < -0.5 * bound
    assert 0.5 * bound < weight.max() <= bound


@pytest.fixture
def tiny() -> tuple[sp.csr_array, Prediction, Tensor]:
    """A path of five nodes with a repeated edge and a lonely sixth one, two runs, and the given labels."""
    path = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 4, 0, 1], [1, 2, 3, 4, 0, 1, 2, 3, 1, 0]])
    pattern = adjacency(Data(edge_index=path, num_nodes=6), 1.0, "none")
    logits = torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    known = torch.tensor([[True, False, False, False, False, False], [False, False, False, True, False, False]])
    return pattern, Prediction(logits), known


def test_hops_on_a_path_with_a_lonely_node(tiny):
    pattern, _, known = tiny
    assert hops(pattern, known).tolist() == [[0, 1, 2, 2, 2, 2], [2, 2, 1, 0, 1, 2]]


def test_distance_follows_edges_from_a_given_node_and_not_to_it():
    pattern = adjacency(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3), 1.0, "none")
    assert hops(pattern, torch.tensor([[False, True, False]])).tolist() == [[2, 0, 1]]


def test_attention_equals_its_equation_node_by_node(tiny):
    pattern, prediction, known = tiny
    generator = torch.Generator().manual_seed(1)
    models, heads = 4, 2  # two models of each of two runs
    theta, omega, trust, least = (
        torch.randn(models, *shape, generator=generator, dtype=torch.float64) for shape in ((3, heads), (), (2,), ())
    )
    nodes = torch.tensor([[4, 1, 5], [2, 0, 3]])
    distance = hops(pattern, known)
    got = _Attention.of(pattern, prediction, distance, nodes)([theta, omega, trust, least])
    for model in range(models):
        run = model % 2
        gamma = torch.cat([trust[model].exp(), torch.ones(1, dtype=torch.float64)])[distance[run]]
        z, confidence = prediction.logits[run], prediction.confidence[run]
        shape = ((z - z.amin(1, keepdim=True)) / (z.amax(1) - z.amin(1))[:, None]).sort(1).values
        for position, i in enumerate(nodes[run].tolist()):
            around = torch.as_tensor(pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]]).long()
            level = functional.leaky_relu((z[around] @ z[i]) / (gamma[i] * gamma[around]), 0.2)
            weight = level.softmax(0) * gamma[around]
            inner = weight @ shape[around] @ theta[model] + omega[model] * (confidence[i] - confidence[around]).mean()
            expected = functional.softplus(inner).mean() + (1 - math.log(2)) * least[model].exp()
            torch.testing.assert_close(got[model, position], expected, rtol=1e-4, atol=1e-5)


def test_convolution_equals_a_dense_gcn(tiny):
    pattern, prediction, _ = tiny
    degree = np.asarray(pattern.sum(1)).ravel()
    matrix = sp.csr_array(pattern.toarray() / np.sqrt(degree[:, None] * degree))
    dense = torch.as_tensor(matrix.toarray()).double()
    generator = torch.Generator().manual_seed(2)
    weight, bias, head, offset = (
        torch.randn(4, *shape, generator=generator, dtype=torch.float64) for shape in ((3, 5), (5,), (5,), ())
    )
    nodes = torch.tensor([[4, 1, 5], [2, 0, 2]])
    smooth = dense @ prediction.logits
    got = _Convolution.of(matrix, smooth, nodes)([weight, bias, head, offset])
    for model in range(4):
        run = model % 2
        hidden = (dense @ (prediction.logits[run] @ weight[model]) + bias[model]).relu()
        s = dense @ (hidden @ head[model]) + offset[model]
        expected = torch.log(1.1 + (math.e - 1.1) * s.exp())[nodes[run]]
        torch.testing.assert_close(got[model], expected, rtol=1e-4, atol=1e-5)


class TestCrossfit:
    def test_keeps_the_start_where_learning_only_hurts(self, region):
        """A network that multiplies noise into the logits cannot help unseen nodes."""
        sample = ValidationSample.of(region.truth, region.task, prior=1.0)
        generator = torch.Generator().manual_seed(0)
        masks = torch.randn(*sample.nodes.shape, 60, generator=generator, dtype=torch.float64)

        def factor(parameters):
            (weight,) = parameters
            folds = len(weight) // len(masks)
            return torch.einsum("gvd,gd->gv", masks.repeat(folds, 1, 1), weight).exp()

        shuffle = torch.rand(sample.nodes.shape, generator=generator)
        (weight,) = Crossfit(lr=0.05)(factor, [torch.zeros(2, 60, dtype=torch.float64)], sample, shuffle)
        assert weight.abs().max() < 0.1
        (eager,) = Crossfit(lr=0.05, epochs=200, patience=1000)(
            factor, [torch.zeros(2, 60, dtype=torch.float64)], sample, shuffle
        )
        torch.testing.assert_close(eager, weight)

    def test_every_validation_node_is_unseen_by_exactly_one_model(self, region):
        sample = ValidationSample.of(region.prediction, region.task, prior=1.0)
        folds = _Folds.of(sample, torch.rand(sample.nodes.shape), folds=4)
        assert ((folds.test_weight > 0).sum(0) == sample.held).all()
        assert ((folds.train_weight > 0).sum(0) == 4 * sample.held).all()
        torch.testing.assert_close(folds.train_weight.sum(-1), torch.ones(5, 2, dtype=torch.float64))

    def test_bad_settings_say_what_to_do(self):
        for setting, message in (
            ({"folds": 1}, r"Crossfit\.folds must be at least 2, got 1"),
            ({"lr": 0}, r"Crossfit\.lr must be positive"),
            ({"weight_decay": -1}, r"Crossfit\.weight_decay must not be negative"),
        ):
            with pytest.raises(InvalidInput, match=message):
                Crossfit(**setting)


def test_bad_settings_say_what_to_do():
    with pytest.raises(InvalidInput, match=r"CaGCN\.hidden must be at least 1, got 0"):
        CaGCN(hidden=0)
    with pytest.raises(InvalidInput, match=r"CaGCN\.margin must not be negative"):
        CaGCN(margin=-0.1)
    with pytest.raises(InvalidInput, match=r"GATS\.heads must be at least 1, got 0"):
        GATS(heads=0)
    with pytest.raises(InvalidInput, match=r"GATS\.prior must be a number of nodes"):
        GATS(prior=-1)
