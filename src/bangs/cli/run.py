"""`bangs run`: one method on one dataset."""

from contextlib import ExitStack, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from bangs.cli import options
from bangs.cli.console import Output, Rounds
from bangs.cli.interrupts import command_line, stoppable
from bangs.cli.parsing import parse_fanout, parse_seeds
from bangs.errors import InvalidInput
from bangs.selftraining.defaults import POOL, ROUNDS, SOFT_ROUNDS, TEACHER
from bangs.utils.limits import MAX_COUNT

LOCK_TIMEOUT = 60.0  # seconds; the lock of a first rank that died may outlast it


def run(
    dataset: Annotated[
        str, typer.Option(help="a name from `bangs list datasets`, or a path to an .npz or a store")
    ] = "synthetic",
    method: Annotated[str, typer.Option(help="a name from `bangs list methods`")] = "soft-aligned",
    model: Annotated[str, typer.Option(help="a name from `bangs list models`")] = "gcn",
    preset: Annotated[str, typer.Option(help="training settings: paper or tuned")] = "tuned",
    seeds: Annotated[
        str, typer.Option(help="how many seeds (0, 1, …), a list such as 910,911 or a range such as 910-919")
    ] = "10",
    rounds: Annotated[
        int | None,
        typer.Option(
            help=f"maximum number of rounds of self-training; if left out {SOFT_ROUNDS} with soft labels, "
            f"{ROUNDS} with hard ones"
        ),
    ] = None,
    k: Annotated[int, typer.Option(help="nodes labelled in a round")] = 100,
    candidates: Annotated[
        int | None,
        typer.Option(
            help="how many of the most confident nodes get a Banzhaf value (K); if left out k + 100 (paper) or 5 k "
            "(tuned)"
        ),
    ] = None,
    normalise: Annotated[
        str | None,
        typer.Option(
            help="mass: divide estimated logits by the influence on a node; if left out none (paper) or mass (tuned)"
        ),
    ] = None,
    push: Annotated[
        float | None,
        typer.Option(
            help="find the influence of candidates by forward push, with at most this error; if left out, 1e-4 for a "
            "store or a graph of more than 200,000 nodes"
        ),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="how many coalitions the estimator draws; its own default if left out")
    ] = None,
    estimator: Annotated[str, typer.Option(help="a name from `bangs list estimators`")] = "marginals",
    calibrator: options.Calibrator = "ets",
    teacher: Annotated[
        str | None,
        typer.Option(
            help=f"the round whose model labels the next round: {options.TEACHERS}; if left out {TEACHER}, or latest "
            "where a method makes all labels anew"
        ),
    ] = None,
    pool: Annotated[
        str,
        typer.Option(
            help="nodes that may get a pseudo-label: free (all but validation nodes), open (all) or unused (neither "
            "validation nor test nodes)"
        ),
    ] = POOL,
    noise: Annotated[float, typer.Option(help="share of training and validation labels to make wrong")] = 0.0,
    share: Annotated[
        float | None, typer.Option(help="draw this share of the nodes for training, instead of the split")
    ] = None,
    per_class: Annotated[
        int | None, typer.Option(help="draw this many nodes of each class for training, instead of the split")
    ] = None,
    validation_nodes: Annotated[
        int | None, typer.Option(help="nodes held for validation, with --per-class; 500 if left out")
    ] = None,
    blind: Annotated[
        bool, typer.Option("--blind", help="compute no test accuracy; `bangs unblind` does it later, once")
    ] = False,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_COUNT, help="maximum number of training epochs; the preset's if left out"),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_COUNT, help="stop after this many epochs without a better validation accuracy"),
    ] = None,
    batch_size: options.BatchSize = None,
    fanout: options.Fanout = None,
    pieces: Annotated[
        int | None,
        typer.Option(help="parts of a training step for the processes of torchrun; one for each if left out"),
    ] = None,
    device: options.Device = "auto",
    precision: Annotated[
        str | None,
        typer.Option(help="precision of matrix products on a GPU: float32 (if left out), or tf32 (faster, less exact)"),
    ] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="the same result for any number of threads; slower")
    ] = False,
    data: options.DataFolder = None,
    code: options.Code = None,
    out: Annotated[Path | None, typer.Option(help="folder for the rounds and the result")] = None,
    resume: options.Resume = False,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run one method on one dataset; print test accuracy at the round chosen by validation, the last and the best.

    Example: bangs run --dataset synthetic --method bangs --seeds 3 --rounds 5
    """
    arguments = locals()
    from bangs.distributed import ranks
    from bangs.experiments.experiment import Experiment, compact
    from bangs.experiments.user_code import run_code
    from bangs.runs import RunFolder
    from bangs.utils.devices import choose_device
    from bangs.utils.text import counted
    from bangs.utils.threads import deterministic_kernels

    if code is not None:
        run_code(code)
    subgraph = "whole" if deterministic else None
    given = (("epochs", epochs), ("patience", patience), ("precision", precision), ("subgraph", subgraph))
    changes: dict[str, float | int | str] = {name: value for name, value in given if value is not None}
    shared = pieces if pieces or not (batch_size or fanout) or ranks.launched() == 1 else ranks.launched()
    parsed = {"seeds": parse_seeds(seeds), "fanout": parse_fanout(fanout), "pieces": shared, "changes": changes}
    settings = {setting.name: arguments[setting.name] for setting in fields(Experiment) if setting.name in arguments}
    experiment = Experiment(**{**settings, **parsed})
    title = f"{method} on {dataset} ({model}, {preset}), {counted(len(experiment.seeds), 'seed')}"
    arithmetic = deterministic_kernels() if deterministic else nullcontext()
    if out is None and (resume or overwrite):
        raise InvalidInput("--resume and --overwrite need the run's folder; add --out DIR")
    torch_device = choose_device(device)
    with ranks.process_group(torch_device), arithmetic:
        output = Output(as_json=as_json, quiet=quiet or not ranks.is_first())
        output.notes(f"--{name} makes no difference to this run of '{method}'" for name in experiment.idle())
        again = command_line("--resume") if ranks.world_size() == 1 else "the same torchrun command, with --resume"
        with stoppable(None if out is None else again), ExitStack() as stack:
            folder: RunFolder | None = None
            if out is not None and ranks.is_first():  # the other ranks write nothing
                restarted = ranks.restarted()
                folder = RunFolder.create_or_resume(
                    out,
                    experiment.config(),
                    resume=resume or restarted,
                    overwrite=overwrite and not restarted,
                    device=torch_device,
                    patience=LOCK_TIMEOUT if restarted else 0.0,
                )
                stack.enter_context(folder)
            result = None if out is None else ranks.broadcast_object(None if folder is None else folder.result)
            if result is None:
                latest = None if folder is None else folder.latest()
                if latest is not None:
                    output.say(f"continuing after round {latest.round}")
                with Rounds(output, title, experiment.most_rounds) as view:
                    result = experiment.run(data, device, [view], run_folder=folder, blind=blind)
            elif folder is not None:
                folder.forget()  # a killed run may have left checkpoints after its result
                output.say(f"'{out}' holds the finished run; nothing is left to do")
        if out is not None:
            output.say(f"written: {out / 'result.json'}, {out / 'history.jsonl'}")
        if ranks.is_first():
            output.result(compact(result), scores(result))


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
