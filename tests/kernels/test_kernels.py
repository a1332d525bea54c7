"""Our kernels against torch, on a GPU or in Triton's interpreter."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from bangs.graphs.sparse import Sparse
from bangs.nn.dropout import CounterMasks
from bangs.training.epoch_loop import EagerSession

pytest.importorskip("triton", reason="Triton comes with torch for CUDA")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("no GPU; TRITON_INTERPRET=1 runs the kernels without one", allow_module_level=True)

from bangs.kernels import adam, dropout, early_stopping, matmul, spmm  # noqa: E402

RUNS = 3
DIGITS = {"atol": 1e-4, "rtol": 1e-4}  # of sums of some hundred products


@pytest.mark.parametrize(
    ("n", "m", "d"), [(20, 30, 7), (5, 9, 130), (7, 4, 1), (3, 3, 128), (40, 2, 300), (9, 200, 65)]
)
@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_of_every_run_is_the_block_diagonal_one(n, m, d, transposed):
    block = Sparse.of(sp.random_array((n, m), density=0.3, format="csr", dtype=np.float32, rng=1))
    values = torch.rand(RUNS * len(block.values))
    whole = block.repeat(RUNS).with_values(values)
    x = torch.randn(RUNS * (n if transposed else m), d)
    pattern, order = block.pattern.transposed if transposed else (block.pattern, None)
    rows, cols, values, x_there = (part.to(DEVICE) for part in (pattern.rows, pattern.cols, values, x))
    order = None if order is None else order.to(DEVICE)
    expected = whole.T.matmul(x) if transposed else whole.matmul(x)
    for longest in (2, 1000):
        schedule = spmm.RowSchedule.of(rows, longest)
        torch.testing.assert_close(spmm.spmm(schedule, cols, values, x_there, RUNS, order).cpu(), expected)


def test_long_rows_come_first_and_have_a_program_each():
    rows = torch.tensor([0, 2, 2, 70, 73, 173], dtype=torch.int32)
    schedule = spmm.RowSchedule.of(rows)
    assert (schedule.row_order.tolist(), schedule.long, schedule.merge) == ([4, 2, 3, 0, 1], 2, None)


def test_very_long_rows_are_cut_and_their_pieces_merged():
    schedule = spmm.RowSchedule.of(torch.tensor([0, 5, 5, 7], dtype=torch.int32), 2)
    assert schedule.rows.tolist() == [0, 2, 4, 5, 5, 7]
    assert schedule.merge.rows.tolist() == [0, 3, 4, 5]


def test_empty_rows_give_zeros():
    block = Sparse.of(sp.csr_array((4, 5), dtype=np.float32))
    rows = block.pattern.rows.to(DEVICE)
    parts = (part.to(DEVICE) for part in (block.pattern.cols, block.values, torch.ones(5, 3)))
    assert torch.equal(spmm.spmm(spmm.RowSchedule.of(rows), *parts, 1).cpu(), torch.zeros(4, 3))


@pytest.mark.parametrize(("nodes", "a", "b"), [(5, 3, 2), (600, 20, 7), (257, 130, 17)])
def test_a_tall_product_is_the_sum_over_its_lines(nodes, a, b):
    left, right = torch.randn(RUNS, nodes, a), torch.randn(RUNS, nodes, b)
    ours = spmm.tall_matmul(left.to(DEVICE), right.to(DEVICE)).cpu()
    torch.testing.assert_close(ours, left.transpose(1, 2) @ right, rtol=1e-4, atol=1e-4)


def test_adam_takes_the_steps_that_torch_takes():
    theirs = [torch.nn.Parameter(torch.randn(RUNS, 40, 30)), torch.nn.Parameter(torch.randn(RUNS, 1, 7))]
    ours = [torch.nn.Parameter(weight.detach().clone().to(DEVICE)) for weight in theirs]
    groups = [{"params": [weight], "weight_decay": decay} for weight, decay in zip(theirs, (5e-4, 0.1), strict=True)]
    plain = torch.optim.Adam(groups, lr=0.01)
    fast = adam.Adam(ours, 0.01, [5e-4, 0.1], torch.ones(RUNS, dtype=torch.bool, device=DEVICE))
    start = [weight.detach().clone() for weight in ours]
    for again in range(2):
        if again:
            plain = torch.optim.Adam(groups, lr=0.01)
            fast.restart()
        for number in range(20):
            for own_weight, other in zip(ours, theirs, strict=True):
                other.grad = torch.randn_like(other) * 10.0 ** (number % 5 - 3)
                own_weight.grad = other.grad.to(DEVICE)
            plain.step()
            fast.step()
    for own_weight, other, before in zip(ours, theirs, start, strict=True):
        torch.testing.assert_close(own_weight.detach().cpu(), other.detach(), rtol=1e-5, atol=1e-6)
        assert not torch.equal(own_weight, before)


def test_inactive_runs_are_skipped():
    active = torch.tensor([True, False, True], device=DEVICE)
    weight = torch.nn.Parameter(torch.ones(RUNS, 5, 4, device=DEVICE))
    weight.grad = torch.ones_like(weight)
    adam.Adam([weight], 0.01, [0.0], active).step()
    assert (weight < 1).flatten(1).all(1).tolist() == [True, False, True]
    block = Sparse.of(sp.random_array((70, 90), density=0.3, format="csr", dtype=np.float32, rng=1), DEVICE)
    x = torch.randn(RUNS * 90, 5, device=DEVICE)
    parts = (spmm.RowSchedule.of(block.pattern.rows), block.pattern.cols, block.values.repeat(RUNS), x, RUNS, None)
    some, all_ = (spmm.spmm(*parts, which).view(RUNS, 70, 5) for which in (active, None))
    assert torch.equal(some[active], all_[active])


@pytest.mark.parametrize("rate", [0.3, 0.5])
def test_an_activation_is_dropout_of_a_rectified_sum(rate):
    x, bias = torch.randn(RUNS, 33, 7, device=DEVICE), torch.randn(RUNS, 1, 7, device=DEVICE)
    x.requires_grad_(), bias.requires_grad_()
    ours = CounterMasks([5, 6, 7], torch.device(DEVICE)).activate(x, bias, rate)
    factors = CounterMasks([5, 6, 7], torch.device(DEVICE)).factors((33, 7), rate)
    expected = (x + bias).relu() * factors
    torch.testing.assert_close(ours, expected)
    grad_output = torch.randn_like(x)
    for gradient, theirs in zip(
        torch.autograd.grad((ours * grad_output).sum(), (x, bias)),
        torch.autograd.grad((expected * grad_output).sum(), (x, bias)),
        strict=True,
    ):
        torch.testing.assert_close(gradient, theirs)


def test_only_runs_that_improved_are_kept():
    best, weight = torch.zeros(RUNS, 50, 30, device=DEVICE), torch.ones(RUNS, 50, 30, device=DEVICE)
    early_stopping.copy_improved(torch.tensor([True, False, True], device=DEVICE), weight, best)
    assert best.mean((1, 2)).tolist() == [1, 0, 1]


def masks(numbers: list[int], clock: int, count: int, rate: float) -> torch.Tensor:
    return dropout.mask(torch.tensor(numbers, device=DEVICE), torch.tensor(clock, device=DEVICE), count, rate).cpu()


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_a_mask_meets_its_rate_and_keeps_the_mean(rate):
    drawn = masks([5, 2**62 + 3], 7, 20_000, rate)
    assert (drawn == 0).float().mean(1).tolist() == pytest.approx(
        [rate, rate], abs=5 * (rate * (1 - rate) / 2e4) ** 0.5
    )
    assert drawn.unique().tolist() == pytest.approx([0, 1 / (1 - rate)])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 1023, 1025])
def test_a_mask_belongs_to_its_run_and_its_turn(count):
    together = masks([11, 22, 33], 4, count, 0.5)
    assert together.shape == (3, count)
    assert torch.equal(together[1], masks([22], 4, count, 0.5)[0])
    assert count < 100 or not torch.equal(together[1], masks([22], 5, count, 0.5)[0])


class Bare(EagerSession):
    """A session with nothing but its early-stopping state."""

    def __init__(self, part, settings):
        self.val_nodes, self.settings = part, settings
        self.accuracy = torch.full((RUNS,), -1.0, dtype=torch.float64)
        self.nll = torch.full((RUNS,), torch.inf, dtype=torch.float64)
        self.last_progress, self.best_epoch, self.epoch_count = (torch.zeros(RUNS, dtype=torch.long) for _ in range(3))
        self.unfinished = torch.ones(RUNS, dtype=torch.bool)

    @property
    def state(self):
        return (self.accuracy, self.nll, self.last_progress, self.best_epoch, self.epoch_count, self.unfinished)


def test_a_mask_does_not_depend_on_how_many_are_drawn():
    assert torch.equal(masks([11], 4, 5000, 0.5)[:, :1700], masks([11], 4, 1700, 0.5))


@pytest.mark.parametrize("monitor", ["accuracy", "loss"])
@pytest.mark.parametrize(("nodes", "classes"), [(30, 7), (700, 3), (5, 18)])
def test_a_session_keeps_the_same_best_epochs_with_either_code(monitor, nodes, classes):
    from types import SimpleNamespace

    generator = torch.Generator().manual_seed(0)
    target = torch.randint(-1, classes, (RUNS, nodes), generator=generator)
    target[:, 0] = 0
    part = SimpleNamespace(target=target, counts=(target >= 0).sum(1))
    plain = Bare(SimpleNamespace(targets=part), SimpleNamespace(patience=3, monitor=monitor))
    ours = [tensor.clone().to(DEVICE) for tensor in plain.state]
    for number in range(12):
        logits = torch.randn(RUNS, nodes, classes, generator=generator)
        logits[:, 0, 1] += 100 * (number == 5)
        logits[1] = torch.nan if number == 2 else logits[1]
        expected = plain._update_best(logits)
        improved = early_stopping.update_best(
            logits.to(DEVICE), target.to(DEVICE), part.counts.to(DEVICE), tuple(ours), 3, monitor
        )
        assert torch.equal(improved.cpu(), expected)
        for value, theirs in zip(ours, plain.state, strict=True):
            torch.testing.assert_close(value.cpu(), theirs, rtol=1e-6, atol=1e-6)
    assert not plain.unfinished.all()


@pytest.mark.parametrize(("n", "a", "b"), [(40, 64, 70), (300, 32, 128), (150, 96, 64)])
def test_dense_products_and_gradients_are_those_of_torch(n, a, b):
    x, weight, pull = (torch.randn(RUNS, *shape) for shape in ((n, a), (a, b), (n, b)))
    here, there = x.to(DEVICE), weight.to(DEVICE)
    torch.testing.assert_close(matmul.matmul(here, there).cpu(), x @ weight, **DIGITS)
    summed = matmul.matmul_gradient(here, pull.to(DEVICE)).cpu()
    torch.testing.assert_close(summed, x.transpose(1, 2) @ pull, **DIGITS)


@pytest.mark.parametrize(
    ("a", "b", "supported"), [(32, 64, True), (64, 96, True), (50, 64, False), (64, 70, False), (64, 32, False)]
)
def test_dense_kernels_serve_whole_tiles_only_since_gradients_swap_the_widths(a, b, supported):
    assert matmul.supports(torch.zeros(RUNS, 4, a), torch.zeros(RUNS, a, b)) is supported
    assert not matmul.supports(torch.zeros(1, 4, a), torch.zeros(RUNS, a, b))


def test_a_dense_product_adds_and_takes_a_transpose():
    x, weight, plus = torch.randn(RUNS, 200, 64), torch.randn(RUNS, 80, 64), torch.randn(RUNS, 200, 80)
    actual = matmul.matmul(x.to(DEVICE), weight.to(DEVICE).transpose(1, 2), plus=plus.to(DEVICE))
    torch.testing.assert_close(actual.cpu(), x @ weight.transpose(1, 2) + plus, **DIGITS)


def test_dense_products_of_inactive_runs_are_skipped():
    x, weight, active = torch.randn(RUNS, 40, 32), torch.randn(RUNS, 32, 64), torch.tensor([True, False, True])
    expected = x @ weight
    x[1] = torch.nan
    actual = matmul.matmul(x.to(DEVICE), weight.to(DEVICE), active=active.to(DEVICE)).cpu()
    torch.testing.assert_close(actual[active], expected[active], **DIGITS)
    summed = matmul.matmul_gradient(x.to(DEVICE), expected.to(DEVICE), active=active.to(DEVICE)).cpu()
    torch.testing.assert_close(summed[active], (x.transpose(1, 2) @ expected)[active], **DIGITS)


@pytest.mark.skipif(DEVICE == "cpu", reason="Triton's interpreter has no tensor cores")
def test_dense_products_have_the_digits_of_float32():
    x, weight = torch.randn(2, 500, 1024, device=DEVICE), torch.randn(2, 1024, 128, device=DEVICE)
    true = x.double() @ weight.double()
    ours, theirs = ((actual - true).abs().max() for actual in (matmul.matmul(x, weight), x @ weight))
    assert ours <= 2 * theirs
    pull = torch.randn(2, 500, 128, device=DEVICE)
    true = x.double().transpose(1, 2) @ pull.double()
    actual = (matmul.matmul_gradient(x, pull), x.transpose(1, 2) @ pull)
    ours, theirs = ((one - true).abs().max() for one in actual)
    assert ours <= 2 * theirs
