"""Fit in a run folder, from the last checkpoint if there is one, and save all files of the fit."""

import json
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bangs.cli.console import Output, Rounds
from bangs.cli.fit_messages import round_line, tell_candidate
from bangs.cli.table_paths import FittedTables
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.estimator.fit_checkpoints import FitCheckpoints
from bangs.estimator.model_file import save
from bangs.estimator.saved_parameters import to_json
from bangs.graphs import splits, tables
from bangs.graphs.fingerprint import fingerprint
from bangs.graphs.store import Store
from bangs.report.fit_result import fit_result, labels_of_test_nodes
from bangs.report.model_card import model_card
from bangs.report.page import write_page
from bangs.report.predictions_csv import predictions, pseudo_labels
from bangs.report.run_data import EXAM
from bangs.runs import RunFolder, read_run
from bangs.utils.devices import choose_device
from bangs.utils.files import write_atomic
from bangs.utils.text import counted


def set_by_tables(classifier: SelfTrainingClassifier, graph: tables.UserGraph) -> None:
    """Set the parameters that depend on the tables."""
    classifier.set_params(directed=graph.columns.directed)
    if graph.columns.columns or graph.columns.structural is not None:
        classifier.set_params(scale="none")  # the reader has scaled the columns
    if classifier.features == "auto" and graph.columns.structural is not None and not isinstance(graph.data, Store):
        classifier.set_params(features="features")  # these were made from the edges, as the view "structure" is


def fit_and_save(
    out: Path,
    graph: tables.UserGraph,
    classifier: SelfTrainingClassifier,
    tables_read: FittedTables,
    output: Output,
    *,
    resume: bool,
    overwrite: bool,
) -> dict[str, Any]:
    """Fit in the folder `out`, which also records where the tables are; returns the result."""
    device = choose_device(classifier.device)
    with RunFolder.create_or_resume(
        out, _config(tables_read.path.name, graph, classifier), resume=resume, overwrite=overwrite, device=device
    ) as folder:
        tables_read.write(out, classifier)
        done = folder.result
        if done is None:
            done = _fit(folder, graph, classifier, output)
        else:
            output.say(f"'{out}' holds the finished fit; nothing is left to do")
        folder.forget()
        return done


def _fit(
    folder: RunFolder, graph: tables.UserGraph, classifier: SelfTrainingClassifier, output: Output
) -> dict[str, Any]:
    """Fit, from the last checkpoint of an earlier attempt, and write every file."""
    checkpoints = FitCheckpoints(folder)
    if checkpoints.round is not None:
        output.say(f"continuing after round {checkpoints.round}")
    data, split = graph.data, graph.split
    if not isinstance(data, Store):  # a store includes its split
        data = copy(data).update({"class_names": graph.classes})  # for notes that name classes
        data = data if split is None else splits.mark(data, split)
    test = torch.zeros(data.num_nodes, dtype=torch.bool) if split is None else split.test[0]
    if len(classifier.build_candidates(store=data if isinstance(data, Store) else None)) > 1:
        classifier.fit(data, names=graph.ids, checkpoints=checkpoints, tell=partial(tell_candidate, output))
    else:
        with Rounds(output, "round by round", classifier.rounds or 0) as view:
            classifier.fit(
                data, names=graph.ids, observers=[lambda state: view.tell(round_line(state))], checkpoints=checkpoints
            )
    classifier.classes_ = np.array(graph.classes)[classifier.classes_]
    output.notes([*classifier.notes_, f"trained with {counted(classifier.threads_, 'thread')}"])
    truth = labels_of_test_nodes(graph.data.y, graph.classes, classifier, test)
    result = fit_result(classifier, truth, checkpoints.seconds)
    output.say("writing predictions, reasons and the page")
    _write(folder, classifier, truth, result)
    return result


def _write(folder: RunFolder, classifier: SelfTrainingClassifier, truth: Tensor, result: dict[str, Any]) -> None:
    """Write every file of a fit; result.json comes last, so that it implies all others."""
    names, classes = classifier.node_names_, result["classes"]
    path, snapshot = folder.path, classifier.snapshot_
    classifier.save(path)
    if (truth >= 0).any():
        save(path / EXAM, {"truth": truth}, {})
    write_atomic(path / "predictions.csv", predictions(snapshot, names, classes))
    write_atomic(path / "pseudo_labels.csv", pseudo_labels(snapshot, names, classes))
    write_atomic(path / "history.jsonl", "".join(json.dumps(row) + "\n" for row in snapshot.rows))
    write_atomic(path / "MODEL_CARD.md", model_card(folder.config, result, read_run(path).environment))
    write_page(path, result=result)
    folder.finish(result)


def _config(name: str, graph: tables.UserGraph, classifier: SelfTrainingClassifier) -> dict[str, Any]:
    """Everything the result depends on; it contains no path, only the name of the folder."""
    params = classifier.get_params(deep=False)
    recipe = {"model", "method", "features", "selector", "calibrator"}
    stored = isinstance(graph.data, Store)
    left_out = recipe | {"random_state", "device"}
    if params["class_weight"] is None:  # fits of earlier versions did without it, and go on
        left_out.add("class_weight")
    return {
        "command": "fit",
        "graph": {
            "name": name,
            "nodes": int(graph.data.num_nodes or 0),
            "edges": graph.data.manifest.edges if stored else int(graph.data.edge_index.shape[1]),
            "sha256": fingerprint(graph.data),
            "notes": graph.notes,
            **({"stored": True} if stored else {}),
        },
        "parts": {name: str(params[name]) for name in sorted(recipe)},
        "settings": {name: to_json(value) for name, value in params.items() if name not in left_out},
        "seed": classifier.random_state,
        "columns": graph.columns.to_dict(),
        "split": graph.split is not None,
    }
