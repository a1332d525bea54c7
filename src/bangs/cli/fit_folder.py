"""A fit in its folder: gone on with where it was left, and every file that comes of it."""

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
from bangs.cli.fitted_tables import FittedTables
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.estimator.keeper import Keeper
from bangs.estimator.model_file import save
from bangs.estimator.saved_parameters import to_json
from bangs.graphs import splits, tables
from bangs.graphs.fingerprint import fingerprint
from bangs.graphs.store import Store
from bangs.report.model_card import model_card
from bangs.report.outcome import exam, outcome
from bangs.report.page import write_page
from bangs.report.predictions_csv import predictions, pseudo_labels
from bangs.report.run_data import EXAM
from bangs.runs import RunFolder, read_run
from bangs.utils.devices import choose_device
from bangs.utils.files import write_atomic
from bangs.utils.text import counted


def set_by_tables(learner: SelfTrainingClassifier, own: tables.UserGraph) -> None:
    """Set the parameters that the tables decide."""
    learner.set_params(directed=own.columns.directed)
    if learner.features == "auto" and own.columns.structural is not None and not isinstance(own.data, Store):
        learner.set_params(features="features")  # they are structure already


def fit_in(
    out: Path,
    own: tables.UserGraph,
    learner: SelfTrainingClassifier,
    tables_read: FittedTables,
    output: Output,
    *,
    resume: bool,
    overwrite: bool,
) -> dict[str, Any]:
    """The result of a fit whose rounds and files are kept in a folder, beside where its tables are."""
    place = choose_device(learner.device)
    with RunFolder.create_or_resume(
        out, _config(tables_read.path.name, own, learner), resume=resume, overwrite=overwrite, device=place
    ) as folder:
        tables_read.write(out, learner)
        done = folder.result
        if done is None:
            done = _fit(folder, own, learner, output)
        else:
            output.say(f"'{out}' holds the finished fit; nothing is left to do")
        folder.forget()
        return done


def _fit(folder: RunFolder, own: tables.UserGraph, learner: SelfTrainingClassifier, output: Output) -> dict[str, Any]:
    """Learn, from wherever an earlier attempt left off, and write every file."""
    keeper = Keeper(folder)
    if keeper.round is not None:
        output.say(f"continuing after round {keeper.round}")
    data, split = own.data, own.split
    if split is not None and not isinstance(data, Store):  # a store has its own
        data = splits.mark(data.clone(), split)
    if not isinstance(data, Store):
        data = copy(data).update({"class_names": own.classes})  # for notes that name classes
    test = torch.zeros(data.num_nodes, dtype=torch.bool) if split is None else split.test[0]
    if len(learner.recipe(store=data if isinstance(data, Store) else None)) > 1:
        learner.fit(data, names=own.ids, keeper=keeper, tell=partial(tell_candidate, output))
    else:
        with Rounds(output, "round by round", learner.rounds or 0) as view:
            learner.fit(data, names=own.ids, observers=[lambda state: view.tell(round_line(state))], keeper=keeper)
    learner.classes_ = np.array(own.classes)[learner.classes_]
    output.notes([*learner.notes_, f"trained with {counted(learner.threads_, 'thread')}"])
    truth = exam(own.data.y, own.classes, learner, test)
    result = outcome(learner, truth, keeper.seconds)
    output.say("writing predictions, reasons and the page")
    _write(folder, learner, truth, result)
    return result


def _write(folder: RunFolder, learner: SelfTrainingClassifier, truth: Tensor, result: dict[str, Any]) -> None:
    """Every file of a fit; result.json comes last and says that all the others are there."""
    names, classes = learner.node_names_, result["classes"]
    path, snapshot = folder.path, learner.snapshot_
    learner.save(path)
    if (truth >= 0).any():
        save(path / EXAM, {"truth": truth}, {})
    write_atomic(path / "predictions.csv", predictions(snapshot, names, classes))
    write_atomic(path / "pseudo_labels.csv", pseudo_labels(snapshot, names, classes))
    write_atomic(path / "history.jsonl", "".join(json.dumps(row) + "\n" for row in snapshot.rows))
    write_atomic(path / "MODEL_CARD.md", model_card(folder.config, result, read_run(path).environment))
    write_page(path, result=result)
    folder.finish(result)


def _config(name: str, own: tables.UserGraph, learner: SelfTrainingClassifier) -> dict[str, Any]:
    """Everything the result depends on; names no path beyond the folder itself."""
    params = learner.get_params(deep=False)
    recipe = {"model", "method", "features", "selector", "calibrator"}
    stored = isinstance(own.data, Store)
    return {
        "command": "fit",
        "graph": {
            "name": name,
            "nodes": int(own.data.num_nodes or 0),
            "edges": own.data.manifest.edges if stored else int(own.data.edge_index.shape[1]),
            "sha256": fingerprint(own.data),
            "notes": own.notes,
            **({"stored": True} if stored else {}),
        },
        "parts": {name: str(params[name]) for name in sorted(recipe)},
        "settings": {
            name: to_json(value) for name, value in params.items() if name not in recipe | {"random_state", "device"}
        },
        "seed": learner.random_state,
        "columns": own.columns.to_dict(),
        "split": own.split is not None,
    }
