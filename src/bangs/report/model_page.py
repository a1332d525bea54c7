"""The report page of a classifier that was fitted in Python."""

from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from bangs.errors import InvalidInput
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.estimator.label_inputs import as_labels, in_order
from bangs.report.fit_result import fit_result, labels_of_test_nodes
from bangs.report.page import page_begin, render
from bangs.report.run_data import RunData
from bangs.runs.history_rows import seconds_by_stage
from bangs.utils.files import check_replaceable, write_atomic


def write_report(
    model: SelfTrainingClassifier, path: str | Path, *, y: Any = None, name: str = "a graph in Python"
) -> Path:
    """Write the page of `bangs fit` for a fitted classifier to an HTML file.

    `y` are true labels in any form that `fit` takes; the page compares them with the predictions of nodes that had no
    label. `name` is the title of the page.
    """
    if not isinstance(model, SelfTrainingClassifier):
        raise InvalidInput(f"write_report needs a SelfTrainingClassifier, got {type(model).__name__}")
    check_is_fitted(model)
    path = Path(path) if isinstance(path, str | PathLike) else Path()
    if path.suffix != ".html":
        raise InvalidInput(f"a page is an .html file, got '{path}'; name one such as 'report.html'")
    check_replaceable(path, page_begin(), "report")
    snapshot, classes = model.snapshot_, [str(name) for name in model.classes_]
    truth = None
    if y is not None:  # only nodes that had no label are compared
        rows = pd.DataFrame(index=pd.Index(list(model.node_names_)))
        target, names = as_labels(in_order(rows, y), len(rows))
        truth = labels_of_test_nodes(target, [str(name) for name in names.tolist()], model, snapshot.known < 0)
    result = fit_result(model, truth, sum(seconds_by_stage(snapshot.rows).values()))
    settings = {key: str(value) for key, value in model.get_params(deep=False).items()}
    data = RunData(
        kind="fit",
        name=name,
        rows=snapshot.rows,
        result=result,
        config={"settings": settings, "seed": model.seed_},
        snapshot=snapshot,
        truth=truth,
        names=model.node_names_,
        classes=classes,
    )
    write_atomic(path, render(data))
    return path
