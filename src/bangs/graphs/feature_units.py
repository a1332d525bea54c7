"""Feature units: whether the columns of a feature matrix are measured on different scales."""

import numpy as np
import numpy.typing as npt

UNIT_RATIO = 10.0  # of large to small standard deviations; columns that differ more have different units

Column = npt.NDArray[np.float64]


def units_differ(deviations: Column, zeros: Column) -> bool:
    """Whether F columns have different units, by their standard deviations and their shares of zeros [F].

    They have if the 95 % quantile of the deviations is more than `UNIT_RATIO` times the 5 % quantile. Embeddings stay
    below that: there, the deviation of a column says how much it matters. Columns that are mostly zeros do not count,
    as for words, since their deviations follow from how rare they are. Constant columns do not count either.
    """
    measured = deviations[(deviations > 0) & (zeros < 0.5)]
    if len(measured) < 2:
        return False
    low, high = np.quantile(measured, (0.05, 0.95))
    return bool(high > UNIT_RATIO * low)
