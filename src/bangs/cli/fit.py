"""`bangs fit`: a person's own tables, to predictions with reasons."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
import typer
from torch import Tensor

from bangs.classifier import SelfTrainingClassifier
from bangs.cli import options
from bangs.cli.console import Rounds, Voice
from bangs.cli.run import parse_fanout
from bangs.cli.stopping import again, stoppable
from bangs.devices import choose_device
from bangs.errors import InvalidInput
from bangs.graphs import custom
from bangs.graphs.fingerprint import fingerprint
from bangs.graphs.store import read_own
from bangs.keeping import Keeper
from bangs.learners.sampling import sampling
from bangs.loop import State
from bangs.report.card import model_card
from bangs.report.outcome import exam, outcome
from bangs.report.page import write_page
from bangs.report.story import EXAM
from bangs.report.tables import predictions, pseudo_labels
from bangs.runs import RunFolder, read_run, write_atomic
from bangs.saving import save, spell


def fit(
    graph: Annotated[
        Path, typer.Argument(help="a folder with edges.csv and nodes.csv (or .tsv, .parquet), one .npz, or a store")
    ],
    out: Annotated[Path, typer.Option(help="folder for everything that is found")],
    id: options.Id = None,
    label: options.Label = None,
    split: options.SplitColumn = None,
    source: options.Source = None,
    target: options.Target = None,
    weight: options.Weight = None,
    directed: options.Directed = False,
    ignore: options.Ignore = None,
    categorical: options.Categorical = None,
    fill: options.Fill = None,
    unknown: options.Unknown = None,
    model: options.Model = "gcn",
    selector: Annotated[str, typer.Option(help="banzhaf, confidence, agreement or random")] = "banzhaf",
    calibrator: options.Calibrator = "ets",
    k: Annotated[
        int | None, typer.Option(help="nodes adopted a round; half the pool over all rounds if left out")
    ] = None,
    rounds: options.Rounds = 10,
    teacher: options.Teacher = "best",
    validation: Annotated[float, typer.Option(help="share of labels held back, where the tables name none")] = 0.25,
    epochs: Annotated[int | None, typer.Option(help="epochs of training at most; 300 if left out")] = None,
    batch_size: options.BatchSize = None,
    fanout: options.Fanout = None,
    seed: Annotated[int, typer.Option(help="the same seed gives the same result")] = 0,
    device: options.Device = "auto",
    resume: options.Resume = False,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Your own graph: reads two tables, learns, and writes predictions, reasons, a model and a page to look at.

    Example: bangs fit examples/own-graph --out out/library
    """
    voice = Voice(as_json=as_json, quiet=quiet)
    own = read_own(
        graph,
        id=id,
        label=label,
        source=source,
        target=target,
        weight=weight,
        split=split,
        directed=directed,
        ignore=ignore or (),
        categorical=categorical or (),
        fill=filling(fill),
        unknown=unknown,
        seed=seed,
    )
    for note in own.notes:
        voice.say(f"· {note}")
    learner = SelfTrainingClassifier(
        model,
        selector,
        calibrator,
        k=k,
        rounds=rounds,
        teacher=teacher,  # type: ignore[arg-type]  # checked by fit
        validation=validation,
        epochs=epochs,
        batches=sampling(batch_size, parse_fanout(fanout)),
        device=device,
        random_state=seed,
    )
    learner.recipe(_pool(own))  # a wrong setting is told before a folder is touched
    config = _config(graph, own, learner, seed)
    with (
        stoppable(again("--resume")),
        RunFolder.create_or_resume(
            out, config, resume=resume, overwrite=overwrite, device=choose_device(device)
        ) as folder,
    ):
        done = folder.result
        if done is None:
            done = _fit(folder, own, learner, voice)
        else:
            voice.say(f"'{out}' holds the finished fit; nothing is left to do")
        folder.forget()
    voice.result({**done, "out": out.name}, _told(done, out))


def _fit(folder: RunFolder, own: custom.OwnGraph, learner: SelfTrainingClassifier, voice: Voice) -> dict[str, Any]:
    """Learn, from wherever an earlier attempt left off, and write every file."""
    keeper = Keeper(folder)
    if keeper.round is not None:
        voice.say(f"going on after round {keeper.round}")
    data, split = own.data.clone(), own.split
    test = torch.zeros(data.num_nodes, dtype=torch.bool)
    if split is not None:
        data.train_mask, data.val_mask, data.test_mask = split.train[0], split.val[0], split.test[0]
        if not split.val[0].any():
            del data.val_mask
        test = split.test[0]
    with _Lines(voice, "round by round", learner.rounds) as lines:
        learner.fit(data, observers=[lines.see], keeper=keeper)
    learner.classes_ = np.array(own.classes)[learner.classes_]
    learner.node_names_ = own.ids
    truth = exam(own.data.y, own.classes, learner, test)
    result = outcome(learner, truth, keeper.seconds)
    voice.say("writing predictions, reasons and the page")
    _write(folder, learner, truth, result)
    return result


def _write(folder: RunFolder, learner: SelfTrainingClassifier, truth: Tensor, result: dict[str, Any]) -> None:
    """Every file of a fit; result.json comes last and says that all the others are there."""
    names, classes = [str(name) for name in learner.node_names_], result["classes"]
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


def _pool(own: custom.OwnGraph) -> int:
    """How many nodes have no label to learn from or to validate on."""
    known = own.data.y >= 0 if own.split is None else (own.split.train | own.split.val)[0]
    return int((~known).sum())


def _config(graph: Path, own: custom.OwnGraph, learner: SelfTrainingClassifier, seed: int) -> dict[str, Any]:
    """Everything the result depends on; names no path beyond the folder itself."""
    params = learner.get_params(deep=False)
    recipe = {"model", "selector", "calibrator"}
    return {
        "command": "fit",
        "graph": {
            "name": graph.resolve().name,
            "nodes": int(own.data.num_nodes or 0),
            "edges": int(own.data.edge_index.shape[1]),
            "sha256": fingerprint(own.data),
            "notes": own.notes,
        },
        "parts": {name: str(params[name]) for name in sorted(recipe)},
        "settings": {
            name: spell(value) for name, value in params.items() if name not in recipe | {"random_state", "device"}
        },
        "seed": seed,
        "columns": own.columns.to_dict(),
        "split": own.split is not None,
    }


def filling(word: str | None) -> Literal["mean"] | None:
    """What --fill asks for."""
    if word not in (None, "mean"):
        raise InvalidInput(f"--fill knows one way, 'mean', got '{word}'")
    return "mean" if word else None


class _Lines(Rounds):
    """A line a round; there is no truth to tell right from wrong by."""

    HEADER = ("round", "validation %", "pseudo-labels", "epochs", "seconds")

    def see(self, state: State) -> None:
        line = (
            f"{state.index}",
            f"{100 * float(state.validation[0]):.1f}",
            f"{int(state.labels.adopted.sum())}",
            f"{int(state.student.epochs[0])}",
            f"{sum(state.seconds.values()):.2f}",
        )
        self.tell(line)


def _unused(result: dict[str, Any]) -> str:
    left = result["adopted_in_all"] - result["adopted"]
    return f" ({left:,} more after the chosen round, not used)" if left else ""


def _told(result: dict[str, Any], out: Path) -> str:
    """What a person wants to know first."""
    validation, test = result["validation"], result["test"]
    lines = [
        f"{result['nodes']:,} nodes: {result['given']:,} labels given, {result['held']:,} held for validation, "
        f"{result['adopted']:,} adopted{_unused(result)}",
        f"validation accuracy {validation['accuracy']:.1%} at round {result['chosen']} "
        f"(round 0: {validation['raw']:.1%}); it chose the round, so it is optimistic",
    ]
    if test is not None:
        lines.append(f"test accuracy {test['accuracy']:.1%} on {test['nodes']:,} nodes (round 0: {test['raw']:.1%})")
    lines += [
        f"calibration error {validation['error_before']:.3f} before, {validation['error_after']:.3f} after",
        f"look at {out / 'report.html'}; the rest lies beside it: predictions.csv, pseudo_labels.csv, MODEL_CARD.md",
    ]
    return "\n".join(lines)
