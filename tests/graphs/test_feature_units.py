"""Columns of different units are distinguished from embeddings, words and constant columns."""

import numpy as np
import pytest

from bangs.graphs.feature_units import median_ratios, units_differ


@pytest.mark.parametrize(
    ("deviations", "zeros", "expected"),
    [
        ([0.1, 3.0, 170.0], [0, 0, 0], True),  # as crime rate, rooms and tax
        ([1.0, 1.0, 8.0], [0, 0, 0], False),
        (np.linspace(1, 9, 300), np.zeros(300), False),  # principal directions
        ([*np.ones(299), 500.0], np.zeros(300), False),  # an embedding with one outlying column
        ([0.01, 5.0, 5.0, 5.0], [0.9, 0, 0, 0], False),  # a rare word beside measures
        ([0.0, 5.0, 5.0, 5.0], [0, 0, 0, 0], False),  # a constant column
        ([3.0], [0], False),
        ([], [], False),
    ],
)
def test_units_differ_where_deviations_do(deviations: list[float], zeros: list[float], expected: bool) -> None:
    assert units_differ(np.array(deviations, dtype=float), np.array(zeros, dtype=float)) is expected


def test_a_column_of_another_unit_than_most_is_found_by_its_ratio_to_the_median() -> None:
    deviations, zeros = np.full(64, 0.05), np.zeros(64)
    assert median_ratios(deviations, zeros).tolist() == [1.0] * 64
    deviations[[3, 5, 9]] = 15_000.0, 1e-6, 0.2
    ratios = median_ratios(deviations, zeros)
    assert np.flatnonzero(ratios != 1).tolist() == [3, 5]
    assert np.allclose(deviations[[3, 5]] / ratios[[3, 5]], 0.05)
    zeros[3] = 0.9  # a rare word
    assert np.flatnonzero(median_ratios(deviations, zeros) != 1).tolist() == [5]
    assert median_ratios(np.zeros(3), np.zeros(3)).tolist() == [1.0] * 3
