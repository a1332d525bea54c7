"""NodeRows: rows of X that keep the whole graph, for functions of scikit-learn that select rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
from torch import Tensor
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.estimator.edge_inputs import as_pandas, count_rows, named_nodes
from bangs.estimator.label_inputs import in_order, label_array, label_rows

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class NodeRows:
    """Nodes of a graph as rows; a selection of rows keeps the whole graph.

    scikit-learn selects some rows for training and others for testing. With an array X this would remove nodes from
    the graph. With `NodeRows` it only hides labels: `fit(rows, y)` learns from the labels y of these rows on the whole
    graph, and `predict(rows)` predicts these rows. For other estimators the rows are an array of features [n, F].

    X and the edges are what `SelfTrainingClassifier.fit` takes; X may be None, or a `Data` with its edges. Without
    X the nodes are those that the edges name; a frame without columns names others too.
    """

    X: Any
    edge_index: Any = None
    edge_weight: Any = None
    rows: Any = None  # long [n], numbers of nodes; None = all

    def __post_init__(self) -> None:
        if self.X is None:
            object.__setattr__(self, "X", pd.DataFrame(index=named_nodes(self.edge_index)))
        if self.rows is None:
            object.__setattr__(self, "rows", np.arange(self.nodes))

    @property
    def nodes(self) -> int:
        """The number of nodes of the graph."""
        if isinstance(self.X, Data):
            return int(self.X.num_nodes or 0)
        return count_rows(self.X, "X")

    @property
    def shape(self) -> tuple[int, int]:
        X = self.X.get("x") if isinstance(self.X, Data) else self.X
        width = 0 if X is None else int(X.shape[1]) if hasattr(X, "shape") else len(X[0])
        return len(self.rows), width

    def __repr__(self) -> str:
        return f"NodeRows({len(self):,} of {self.nodes:,} nodes)"

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Any) -> "NodeRows":
        """Some of the rows, by number, slice or mask."""
        key = key[0] if isinstance(key, tuple) and len(key) else key  # scikit-learn writes rows[key, ...]
        try:
            rows = np.atleast_1d(self.rows[key if isinstance(key, slice) else np.asarray(key)])
        except (IndexError, ValueError, OverflowError) as error:
            raise IndexError(f"rows are chosen by numbers, a slice or a mask of {len(self):,}: {error}") from error
        return NodeRows(self.X, self.edge_index, self.edge_weight, rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """The features of the rows [n, F], for estimators that use no graph."""
        X = self.X.get("x") if isinstance(self.X, Data) else self.X
        if X is None or self.shape[1] == 0:
            raise InvalidInput("these rows have no features, only edges; an estimator that knows no graph needs some")
        X = as_pandas(X)
        if isinstance(X, Tensor):
            X = X.to_dense().numpy()
        elif sp.issparse(X):
            matrix: Any = X
            X = matrix.toarray()
        try:
            return np.asarray(np.asarray(X, dtype=dtype)[self.rows])
        except ValueError as error:
            raise InvalidInput(
                f"an estimator that knows no graph needs numbers, and X holds others ({error}); encode its words first"
            ) from error

    def in_order(self, y: Any) -> Any:
        """Labels of the rows in their order: a series whose index names nodes of the frame X is matched by names."""
        X = as_pandas(self.X)
        if not isinstance(X, pd.DataFrame) or not isinstance(y, pd.Series | pd.DataFrame) or not y.index.is_unique:
            return y
        named = label_rows(None, y, self.nodes, X.index) is not None
        return in_order(X.iloc[self.rows, :0], y) if named else y

    def spread(self, y: Any) -> npt.NDArray[Any]:
        """Labels of the rows [n] as labels of all nodes [N], None where a node is not among the rows."""
        y = label_array(self.in_order(y))
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.shape != (len(self),):
            raise InvalidInput(f"y must hold one label per row [{len(self)}], got shape {list(y.shape)}")
        out = np.full(self.nodes, None, dtype=object)
        out[self.rows] = y
        return out
