"""`bangs predict`: apply a saved model to a grown graph, or to another one with the same columns."""

import warnings
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from bangs.cli import options
from bangs.cli.console import Output
from bangs.errors import InvalidInput
from bangs.utils.files import check_replaceable, make_folder, write_atomic

HEADER_START = "id,known,predicted,confidence,new,"


@options.reads_tables(options.COLUMNS)
def predict(
    folder: options.FittedFolder,
    graph: Annotated[
        Path, typer.Argument(help="a folder of tables, one .npz or a store, with the columns of the fitted graph")
    ],
    tables: dict[str, Any],
    out: Annotated[
        Path | None, typer.Option(help="a CSV file; GRAPH-predictions.csv in the model's folder if left out")
    ] = None,
    store: options.FittedStore = None,
    fill: Annotated[str | None, typer.Option(help="mean: the fitted graph's mean where a number is missing")] = None,
    device: options.Device = "auto",
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Label the nodes of another graph: the fitted one with new nodes, or one with the same columns.

    Columns are found by their names in the fitted graph; only a renamed column needs an option.

    Example: bangs predict out/library examples/own-graph-grown
    """
    from bangs.estimator.classifier import SelfTrainingClassifier
    from bangs.graphs.store import are_node_names, read_user_graph
    from bangs.graphs.tables import Encoding
    from bangs.report.predictions_csv import new_predictions
    from bangs.runs import read_run
    from bangs.utils.devices import choose_device

    output = Output(as_json=as_json, quiet=quiet)
    choose_device(device)
    path = folder / f"{graph.resolve().stem}-predictions.csv" if out is None else out
    check_replaceable(path, HEADER_START.encode(), "predict")
    if folder.is_file():
        raise InvalidInput(f"'{folder}' is a file; name the folder that `bangs fit` wrote")
    model = SelfTrainingClassifier.load(folder, store=store).set_params(device=device)
    columns = read_run(folder).config.get("columns")
    if not isinstance(columns, dict):
        raise InvalidInput(f"'{folder}' does not say how columns became features; make it with `bangs fit`")
    encoding = Encoding.from_dict(columns)
    own_graph = read_user_graph(graph, **tables, fill=fill, encoding=encoding)
    output.notes(own_graph.notes)
    new = ~are_node_names(own_graph.ids, model.node_names_)  # first, as it raises if the store of the fit was moved
    with warnings.catch_warnings(record=True) as caught:
        probs = model.predict_proba(own_graph.data, names=own_graph.ids)
    output.notes(str(warning.message) for warning in caught)
    classes = [str(name) for name in model.classes_]
    known = [own_graph.classes[label] if label >= 0 else "" for label in own_graph.data.y.tolist()]
    make_folder(path.parent)
    write_atomic(path, new_predictions(own_graph.ids, known, probs, classes, new.tolist()))
    counts = Counter(probs.argmax(1)[new].tolist())
    result = {
        "nodes": len(probs),
        "new": int(new.sum()),
        "new_by_class": {name: counts[number] for number, name in enumerate(classes)},
        "confidence": float(probs.max(1).mean()),
        "labelled": sum(bool(label) for label in known),
        "file": path.name,
    }
    by_class = ", ".join(f"{counts[number]} {name}" for number, name in enumerate(classes) if counts[number])
    message = f"{result['nodes']:,} nodes, {result['new']:,} of them new" + (f": {by_class}" if by_class else "")
    message += f"\nmean confidence {result['confidence']:.1%} over all nodes; written to {path}"
    output.result(result, message)
