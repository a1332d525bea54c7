"""Our Adam takes the same steps as torch's."""

import torch

from bangs.training.adam import Adam


def walk(optimiser, weights, fake_gradients):
    for pull in fake_gradients:
        optimiser.zero_grad()
        for weight, gradient in zip(weights, pull, strict=True):
            weight.grad = gradient.clone()
        optimiser.step()
    return [weight.detach().clone() for weight in weights]


def weights():
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in ((2, 5, 3), (2, 1, 3))]


def fake_gradients(count):
    generator = torch.Generator().manual_seed(2)
    return [[torch.randn(weight.shape, generator=generator) for weight in weights()] for _ in range(count)]


def test_steps_are_those_of_torch():
    ours, stock = weights(), weights()
    actual = walk(Adam(ours, 0.01, [5e-4] * 2), ours, fake_gradients(12))
    expected = walk(torch.optim.Adam(stock, lr=0.01, weight_decay=5e-4), stock, fake_gradients(12))
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_every_weight_decays_by_itself():
    ours, stock = weights(), weights()
    actual = walk(Adam(ours, 0.01, [0.5, 0.0]), ours, fake_gradients(5))
    groups = [{"params": stock[:1], "weight_decay": 0.5}, {"params": stock[1:], "weight_decay": 0.0}]
    expected = walk(torch.optim.Adam(groups, lr=0.01), stock, fake_gradients(5))
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_the_first_step_is_the_learning_rate():
    weight = torch.zeros(3, requires_grad=True)
    (actual,) = walk(Adam([weight], 0.5, [0.0]), [weight], [[torch.tensor([4.0, -1e-3, 0.0])]])
    torch.testing.assert_close(actual, torch.tensor([-0.5, 0.5, 0.0]), atol=1e-5, rtol=0)


def test_begun_again_it_has_forgotten_every_step():
    ours = weights()
    optimiser = Adam(ours, 0.01, [0.0] * 2)
    first = walk(optimiser, ours, fake_gradients(3))
    optimiser.restart()
    for weight, start in zip(ours, weights(), strict=True):
        weight.data.copy_(start)
    for one, other in zip(walk(optimiser, ours, fake_gradients(3)), first, strict=True):
        assert torch.equal(one, other)


def test_a_weight_without_a_gradient_stays():
    moving, resting = (torch.ones(2, requires_grad=True) for _ in range(2))
    optimiser = Adam([resting, moving], 0.1, [0.1] * 2)
    moving.grad = torch.ones(2)
    optimiser.step()
    assert torch.equal(resting, torch.ones(2))
    assert (moving < 1).all()


def test_a_step_increments_the_version_of_the_weights():
    weight = torch.ones(2, requires_grad=True)
    before = weight._version
    walk(Adam([weight], 0.1, [0.0]), [weight], [[torch.ones(2)]])
    assert weight._version > before
