"""Run an experiment in its folder, from the last checkpoint if there is one, and show its scores."""

from pathlib import Path
from typing import Any

from bangs.cli.console import Output, Rounds
from bangs.distributed import ranks
from bangs.experiments.experiment import Experiment
from bangs.runs import RunFolder
from bangs.utils.devices import choose_device

LOCK_TIMEOUT = 60.0  # seconds; the lock of a first rank that died may outlast it


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
    """Run an experiment in a run folder, which only the first rank writes; returns the result."""
    if not ranks.is_first():
        finished: dict[str, Any] | None = ranks.broadcast_object(None)
        return experiment.run(data, device, blind=blind) if finished is None else finished
    torch_device = choose_device(device)
    patience = LOCK_TIMEOUT if ranks.restarted() else 0.0
    with RunFolder.create_or_resume(
        out, experiment.config(), resume=resume, overwrite=overwrite, device=torch_device, patience=patience
    ) as folder:
        done = ranks.broadcast_object(folder.result)
        if done is not None:
            folder.forget()  # a killed run may have left checkpoints after its result
            output.say(f"'{out}' holds the finished run; nothing is left to do")
            return done
        latest = folder.latest()
        if latest is not None:
            output.say(f"continuing after round {latest.round}")
        with Rounds(output, title, experiment.most_rounds) as view:
            return experiment.run(data, device, [view], run_folder=folder, blind=blind)


def scores(result: dict[str, Any]) -> str:
    """The scores of a run, each with the protocol that chose the round."""
    if result.get("blind"):
        accuracy = result["validation_accuracy"]
        return (
            "blind: no test label was opened; `bangs unblind FOLDER` opens them\n"
            f"  validation accuracy {accuracy['mean']:6.2f} ± {accuracy['std']:.2f} at the round it chose, over seeds\n"
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
