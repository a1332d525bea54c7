"""Cross-validation on one graph, which hides labels and removes no node."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import sklearn.model_selection
import torch
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.estimator.edge_inputs import as_pandas, count_rows, named_nodes, row_names
from bangs.estimator.folds import Folds
from bangs.estimator.label_inputs import as_labels, label_rows, labelled
from bangs.estimator.node_rows import NodeRows

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LabelMask:
    """A stratified splitter for scikit-learn that hides each label once.

    Nodes without a label are in no part. A class with one label is never hidden. Give scikit-learn `NodeRows` as X:
    then a node with a hidden label stays in the graph.
    """

    n_splits: int = 5
    random_state: int = 0

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """For every part, the rows whose labels are seen and the rows whose labels are hidden."""
        if y is None:
            raise InvalidInput("LabelMask hides labels; give y, -1 or None where a label is unknown")
        if isinstance(self.n_splits, bool) or not isinstance(self.n_splits, int | np.integer) or self.n_splits < 2:
            raise InvalidInput(f"LabelMask hides labels in a whole number of parts from 2, got {self.n_splits!r}")
        target, _ = as_labels(y, count_rows(y, "y"))
        known = target >= 0
        repeated = known & (target[known].bincount()[target] > 1)
        if (count := int(repeated.sum())) < self.n_splits:
            raise InvalidInput(
                f"LabelMask({self.n_splits}) needs {self.n_splits} labels in classes of two or more, got {count}; "
                "give more labels, or hide them in fewer parts"
            )
        for held in Folds.of(torch.where(repeated, target, -1), self.n_splits, self.random_state).held >= 0:
            yield (known & ~held).nonzero().flatten().numpy(), held.nonzero().flatten().numpy()

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of parts."""
        return self.n_splits


def cross_validate(
    model: Any,
    X: Any,
    edge_index: Any = None,
    y: Any = None,
    *,
    cv: Any = 5,
    scoring: Any = None,
    edge_weight: Any = None,
    n_jobs: int | None = None,
    return_estimator: bool = False,
) -> dict[str, Any]:
    """Scores on hidden labels, one fit per part: the result of scikit-learn's `cross_validate`, and `hidden`.

    `cv`, a number of parts or a splitter, hides labels in turns; the graph stays whole. `scoring` is as in
    scikit-learn; None = accuracy. `hidden` has the numbers of the nodes each fit was scored on. Of a `Data` with
    masks, labels of test nodes are neither learned nor scored.
    """
    X = pd.DataFrame(index=named_nodes(edge_index, y)) if X is None and edge_index is not None else X
    rows = X if isinstance(X, NodeRows) else NodeRows(X, edge_index, edge_weight)
    frame = as_pandas(X)
    y = X.in_order(y) if isinstance(X, NodeRows) else y
    in_graph = None if isinstance(X, NodeRows | Data | pd.DataFrame) else row_names(edge_index, len(rows))
    source = frame if isinstance(frame, Data) else label_rows(frame, y, len(rows), in_graph)
    target, classes, _ = labelled(source, y, len(rows))
    known = (target >= 0).nonzero().flatten()
    if isinstance(cv, int | np.integer):
        cv = LabelMask(int(cv))
    result = sklearn.model_selection.cross_validate(
        model,
        rows[known.numpy()],
        classes[target[known].numpy()],
        cv=cv,
        scoring=scoring,
        n_jobs=n_jobs,
        return_estimator=return_estimator,
        return_indices=True,
        error_score="raise",
    )
    result["hidden"] = [
        rows.rows[known[torch.from_numpy(np.asarray(test))].numpy()] for test in result.pop("indices")["test"]
    ]
    return dict(result)
