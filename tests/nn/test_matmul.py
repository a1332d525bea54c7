"""Batched products and their gradients equal torch's."""

import pytest
import torch

from bangs.nn.matmul import CPU_NARROW_COLUMNS, batched_matmul


@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("columns", [1, 7, CPU_NARROW_COLUMNS + 1])
def test_values_and_gradients_are_those_of_a_plain_product(runs, shared, columns):
    rows, weight = torch.randn(1 if shared else runs, 20, 6), torch.randn(runs, 6, columns)
    pull = torch.randn(runs, 20, columns)
    results = []
    for product in (batched_matmul, torch.matmul):
        x, w = rows.clone().requires_grad_(), weight.clone().requires_grad_()
        out = product(x, w)
        (out * pull).sum().backward()
        results.append((out.detach(), x.grad, w.grad))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_lines_without_a_gradient_get_none():
    x, weight = torch.randn(2, 5, 3), torch.randn(2, 3, 4, requires_grad=True)
    batched_matmul(x, weight).sum().backward()
    assert x.grad is None
    torch.testing.assert_close(weight.grad, x.sum(1)[:, :, None].expand(-1, -1, 4))
