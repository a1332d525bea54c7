"""Feature units: which columns of a feature matrix are measured on different scales."""

import numpy as np
import numpy.typing as npt

UNIT_RATIO = 10.0  # of standard deviations; columns that differ more have different units

Column = npt.NDArray[np.float64]


def units_differ(deviations: Column, zeros: Column) -> bool:
    """Whether F columns have different units, by their standard deviations and their shares of zeros [F].

    They have if the 95 % quantile of the deviations is more than `UNIT_RATIO` times the 5 % quantile. Embeddings stay
    below that: there, the deviation of a column says how much it matters. Columns that are mostly zeros do not count,
    as for words, since their deviations follow from how rare they are. Constant columns do not count either.
    """
    measured = deviations[_measured(deviations, zeros)]
    if len(measured) < 2:
        return False
    low, high = np.quantile(measured, (0.05, 0.95))
    return bool(high > UNIT_RATIO * low)


def median_ratios(deviations: Column, zeros: Column) -> Column:
    """The deviation of a column over the median deviation if it has another unit than most, else 1: [F].

    Dividing by it gives a measure beside an embedding, such as an income, the weight of one column.
    """
    measured = _measured(deviations, zeros)
    if not measured.any():
        return np.ones_like(deviations)
    ratios = deviations / np.median(deviations[measured])
    other_unit = measured & ((ratios > UNIT_RATIO) | (ratios < 1 / UNIT_RATIO))
    return np.where(other_unit, ratios, 1.0)


def _measured(deviations: Column, zeros: Column) -> npt.NDArray[np.bool_]:
    return (deviations > 0) & (zeros < 0.5)
