"""A pandas frame becomes features, whatever its columns hold."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bangs.graphs.tables import BadTables
from bangs.graphs.tables.fitted_encoding import Categorical
from bangs.graphs.tables.frames import encode_frame


def test_the_intervals_of_cut_are_categories() -> None:
    frame = pd.DataFrame({"age": pd.cut([1.0, 5.0, 9.0, 2.0, np.nan], [0, 3, 6, 10])})
    features, encoding = encode_frame(frame, None, [])
    assert encoding.columns == (Categorical("age", ("(0, 3]", "(3, 6]", "(6, 10]")),)
    assert features.argmax(axis=1).tolist() == [0, 1, 2, 0, 0]
    assert features.sum(axis=1).tolist() == [1, 1, 1, 1, 0]
    assert (encode_frame(frame.iloc[1:3], encoding, [])[0] == features[1:3]).all()


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical([1, "a"]),
        pd.Categorical(pd.Index([(1, 2), (3, 4)], tupleize_cols=False)),
        pd.Categorical([1j, 2j]),
        np.arange(2, dtype=np.longdouble),
        pd.Series(["\ud800", "b"], dtype=object),
    ],
    ids=["mixed", "tuples", "complex", "longdouble", "half a character"],
)
def test_a_column_that_arrow_cannot_hold_is_reported(column: Any) -> None:
    with pytest.raises(BadTables, match=r"column 'c' holds .*, which is neither number, word nor date\n.*X\.drop"):
        encode_frame(pd.DataFrame({"c": column}), None, [])
