"""Run an experiment in its folder, from the last checkpoint if there is one, and show its scores."""

from pathlib import Path
from typing import Any

from bangs.cli.console import Output, Rounds
from bangs.distributed import ranks
from bangs.experiments.experiment import Experiment
from bangs.runs import RunFolder
from bangs.utils.devices import choose_device

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
    blind: bool = False,
) -> dict[str, Any]:
    """The result of an experiment whose rounds are kept in a run folder, by the first rank where there are several."""
    if not ranks.is_first():
        finished: dict[str, Any] | None = ranks.broadcast_object(None)
        return experiment.run(data, device, blind=blind) if finished is None else finished
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
            output.say(f"continuing after round {latest.round}")
        with Rounds(output, title, experiment.most_rounds) as view:
            return experiment.run(data, device, [view], run_folder=folder, blind=blind)


def scores(result: dict[str, Any]) -> str:
    """The figures of a run, each with the rule that chose the round."""
    if result.get("blind"):
        found = result["validation_accuracy"]
        return (
            "blind: no test label was opened; `bangs unblind FOLDER` opens them\n"
            f"  validation accuracy {found['mean']:6.2f} ± {found['std']:.2f} at the round it chose, over seeds\n"
            f"  {result['seconds']['total']:.1f} s in all"
        )
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
