"""GraphParts: what was read of a graph, before its features are put together."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bangs.core.types import Split
from bangs.graphs.tables.edge_table import Edges
from bangs.graphs.tables.feature_encoding import Encoding


@dataclass(frozen=True, eq=False)
class GraphParts:
    """A graph in memory whose features are not yet put together."""

    file: str
    ids: npt.NDArray[np.object_]  # str [N]
    edges: Edges
    y: npt.NDArray[np.int64]  # [N], −1 = unknown
    split: Split | None  # bool [S, N]
    dense: npt.NDArray[np.float32]  # [N, F], from the table's columns
    array: Any  # [N, F] as it came, dense or scipy CSR; None where there is none
    encoding: Encoding  # its classes name the numbers in y
