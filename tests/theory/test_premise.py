"""The premise of the method: Û(S) forecasts what a student taught S would be worth."""

import numpy as np
import pytest
import torch

from tests.theory.measured_students import (
    CLASSES,
    DECAY,
    GRAPHS,
    TAKEN,
    Premise,
    case,
    learned,
    premises,
    rank_correlation,
)


@pytest.fixture(params=["most confident", "at random"])
def row(request: pytest.FixtureRequest) -> Premise:
    return next(own for own in premises() if own.candidates == request.param)


def test_every_student_has_learned_to_the_end() -> None:
    assert max(case(seed, confident).slope for seed in range(GRAPHS) for confident in (True, False)) < 1e-10


def test_a_student_is_where_the_slope_of_its_loss_vanishes() -> None:
    draw = torch.Generator().manual_seed(0)
    x, label = torch.randn(30, 4, generator=draw, dtype=torch.float64), torch.arange(30) % CLASSES
    taught = torch.rand(5, 30, generator=draw) < 0.5
    for logits, own in zip(learned(x, label, taught)[0], taught, strict=True):
        weight = torch.linalg.lstsq(x, logits).solution.requires_grad_()
        loss = torch.nn.functional.cross_entropy((x @ weight)[own], label[own], reduction="sum")
        (loss + DECAY / 2 * weight.square().sum()).backward()
        assert weight.grad.abs().max() < 1e-9


def test_the_forecast_orders_coalitions_worse_than_their_size_does(row: Premise) -> None:
    assert row.every[0] < row.size[0] - 0.1


def test_among_coalitions_of_one_size_it_is_no_better_than_chance(row: Premise) -> None:
    assert row.within[0] + row.within[1] < 0.1
    assert row.shared[0] + row.shared[1] < 0.6  # chance is a half


def test_that_nothing_changes_is_the_better_forecast_of_classes(row: Premise) -> None:
    assert row.same < 0.8 < 0.9 < row.unchanged


def test_its_error_is_beyond_what_the_theorem_allows_for(row: Premise) -> None:
    assert row.speaks == 0


def test_a_forecast_that_knew_the_students_would_pass() -> None:
    # so what is measured can tell a good forecast: the students' utility, off by a tenth of its spread
    rng = np.random.default_rng(0)
    for seed in range(GRAPHS):
        true = case(seed, True).worth
        spread = np.std([worth for S, worth in true.items() if len(S) == TAKEN])
        forecast = {S: worth + 0.1 * spread * rng.standard_normal() for S, worth in true.items()}
        assert rank_correlation(forecast, true, TAKEN) > 0.9
