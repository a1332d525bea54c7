"""A run in its folder: gone on with where it was left, and what is written and told of it."""

import json
from pathlib import Path
from typing import Any

from bangs.cli.console import Output, Rounds
from bangs.distributed import ranks
from bangs.experiments.experiment import Experiment, compact
from bangs.runs import RunFolder
from bangs.utils.devices import choose_device
from bangs.utils.files import write_atomic

RELEASE = 60.0  # seconds that the hold of a first rank which was lost may outlast it


def run_in(
    out: Path,
    experiment: Experiment,
    output: Output,
    title: str,
    data: Path | None,
    device: str,
    *,
    resume: bool,
    overwrite: bool,
) -> dict[str, Any]:
    """The result of an experiment whose rounds are kept in a run folder, by the first rank where there are several."""
    if not ranks.is_first():
        finished: dict[str, Any] | None = ranks.broadcast_object(None)
        return experiment.run(data, device) if finished is None else finished
    place = choose_device(device)
    patience = RELEASE if ranks.restarted() else 0.0
    with RunFolder.create_or_resume(
        out, experiment.config(), resume=resume, overwrite=overwrite, device=place, patience=patience
    ) as folder:
        done = ranks.broadcast_object(folder.result)
        if done is not None:
            folder.forget()  # a kill may have come between the result and this
            output.say(f"'{out}' holds the finished run; nothing is left to do")
            return done
        latest = folder.latest()
        if latest is not None:
            output.say(f"going on after round {latest.round}")
        with Rounds(output, title, experiment.rounds) as view:
            result = experiment.run(data, device, [view], run_folder=folder)
        folder.finish(compact(result))
        folder.forget()
        return result


def save(result: dict[str, Any], folder: RunFolder) -> None:
    """Write history.jsonl, the rows with every adopted node, and result.json."""
    write_atomic(folder.path / "history.jsonl", "".join(json.dumps(row) + "\n" for row in result["rounds"]))
    folder.finish(compact(result))


def scores(result: dict[str, Any]) -> str:
    """The three figures of a run, each with the rule that chose the round."""
    lines = [
        ("raw", "round 0"),
        ("validation", "round chosen by validation accuracy"),
        ("best_test", "best round after round 0 by test accuracy (an oracle, as in the paper's main table)"),
        ("last", "last round"),
    ]
    spread = max(len(f"{result[name]['std']:.2f}") for name, _ in lines)
    figures = [
        f"  {name:<11}{result[name]['mean']:6.2f} ± {result[name]['std']:<{spread}.2f}  {rule}" for name, rule in lines
    ]
    return "\n".join(["test accuracy, mean ± std over seeds", *figures, f"  {result['seconds']['total']:.1f} s in all"])
