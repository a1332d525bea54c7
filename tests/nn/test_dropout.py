"""Dropout masks: their rate, their scale and their random streams."""

import pytest
import torch

from bangs.core.rng import Streams
from bangs.nn.dropout import DropoutMasks, NumpyMasks, dropout_masks


@pytest.fixture(params=["torch", "numpy"])
def masks(request):
    """Makes the noise of some seeds, by either library's bits."""

    def made(*seeds: int) -> DropoutMasks:
        streams = Streams(seeds).at("dropout")
        return DropoutMasks(streams.generators()) if request.param == "torch" else NumpyMasks(streams.numbers())

    return made


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.3, 0.5, 0.6, 0.9, 0.999])
def test_the_rate_is_met(masks, rate):
    count = 200_000
    dropped = (masks(1, 2).factors((count,), rate) == 0).float().mean(1)
    error = 5 * (rate * (1 - rate) / count) ** 0.5 + 2**-16
    assert (dropped - rate).abs().max() < error


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
def test_survivors_are_scaled_so_that_the_mean_stays(masks, rate):
    x = torch.full((2, 300, 300), 3.0)
    dropped = masks(1, 2).drop(x, rate)
    assert dropped.unique().tolist() == pytest.approx([0, 3 / (1 - rate)])
    assert dropped.mean().item() == pytest.approx(3, rel=0.02)


def test_rate_zero_leaves_everything_as_it_is_and_draws_nothing(masks):
    x = torch.randn(2, 5, 3)
    quiet, untouched = masks(1, 2), masks(1, 2)
    assert torch.equal(quiet.drop(x, 0.0), x)
    assert torch.equal(quiet.factors((8,), 0.5), untouched.factors((8,), 0.5))
    assert masks(1).factors((1000,), 0.0).all()


@pytest.mark.parametrize("shape", [(1,), (3,), (4,), (5, 7), (2, 3, 2)])
def test_a_run_draws_the_same_masks_alone_or_in_a_batch(masks, shape):
    together, alone = masks(11, 22, 33), masks(22)
    for _ in range(3):
        mask = together.factors(shape, 0.5)
        assert mask.shape == (3, *shape)
        assert torch.equal(mask[1:2], alone.factors(shape, 0.5))


def test_masks_advance_and_differ_between_runs(masks):
    drawn = masks(1, 2)
    first, second = drawn.factors((1000,), 0.5), drawn.factors((1000,), 0.5)
    for one, other in ((first, second), (first[0], first[1]), (second[0], second[1])):
        assert (one == other).float().mean().item() == pytest.approx(0.5, abs=0.1)


def test_neighbouring_elements_are_independent(masks):
    mask = masks(7).factors((100_000,), 0.5)[0]
    for lag in (1, 2, 3, 4):
        assert (mask[lag:] == mask[:-lag]).float().mean().item() == pytest.approx(0.5, abs=0.01)


def test_a_tensor_shared_by_all_runs_gets_one_mask_each(masks):
    shared = masks(1, 2, 3).drop(torch.ones(1, 50, 4), 0.5)
    repeated = masks(1, 2, 3).drop(torch.ones(3, 50, 4), 0.5)
    assert torch.equal(shared, repeated)


def test_gradients_flow_through_survivors_only(masks):
    x = torch.ones(1, 200, requires_grad=True)
    dropped = masks(1).drop(x, 0.25)
    dropped.sum().backward()
    torch.testing.assert_close(x.grad, dropped.detach())


def test_a_restart_draws_the_same_masks_again(masks):
    numbers = Streams((1, 2)).at("dropout").numbers()
    drawn = masks(1, 2)
    first = drawn.factors((50,), 0.5)
    drawn.factors((7,), 0.5)
    drawn.restart(numbers)
    assert torch.equal(drawn.factors((50,), 0.5), first)


def test_bits_that_numpy_guarantees():
    mask = NumpyMasks([7]).keep_mask((16,), 0.5)
    words = [1791289110853690569, 15195811958582366061, 4353573261847909477, 3192670137268717821]  # of PCG64DXSM(7)
    signs = [word >> (16 * part + 15) & 1 for word in words for part in range(4)]
    assert mask[0].tolist() == [1.0 - sign for sign in signs]


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_activation_is_dropout_of_a_relu_in_values_and_gradients(masks, rate):
    x, bias, pull = torch.randn(2, 60, 5), torch.randn(2, 1, 5), torch.randn(2, 60, 5)
    results = []
    for act in (
        lambda drawn, x, bias: drawn.activate(x, bias, rate),
        lambda drawn, x, bias: drawn.drop((x + bias).relu(), rate),
    ):
        leaves = x.clone().requires_grad_(), bias.clone().requires_grad_()
        out = act(masks(1, 2), *leaves)
        (out * pull).sum().backward()
        results.append((out.detach(), leaves[0].grad, leaves[1].grad))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_a_processor_draws_by_numpy():
    assert isinstance(dropout_masks([1], torch.device("cpu")), NumpyMasks)


@pytest.mark.parametrize("own", [1, 2], ids=["shared", "each"])
def test_values_without_a_gradient_are_dropped_by_the_same_mask_and_not_changed(masks, own):
    x = torch.randn(own, 5, 4, generator=torch.Generator().manual_seed(0))
    before, learned = x.clone(), x.clone().requires_grad_()
    assert torch.equal(masks(1, 2).drop(x, 0.5), masks(1, 2).drop(learned, 0.5))
    assert torch.equal(x, before)
