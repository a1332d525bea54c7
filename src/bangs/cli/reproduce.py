"""`bangs reproduce`: all runs of a table or figure."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from bangs.cli import options
from bangs.cli.console import Output
from bangs.cli.interrupts import command_line, stoppable
from bangs.cli.parsing import parse_names, parse_seeds
from bangs.errors import InvalidInput, UnknownName

ENGINES = ("local", "ray")


def reproduce(
    suites: Annotated[
        list[str], typer.Argument(help="names from `bangs list suites`, or .toml files of your own", metavar="SUITE…")
    ],
    datasets: Annotated[str | None, typer.Option(help="only these, such as cora,citeseer")] = None,
    methods: Annotated[str | None, typer.Option(help="only these, such as cpl,bangs")] = None,
    models: Annotated[str | None, typer.Option(help="only these, such as gcn,gat")] = None,
    seeds: Annotated[str | None, typer.Option(help="how many seeds, or a list; the suite's if left out")] = None,
    device: options.Device = "auto",
    jobs: Annotated[int, typer.Option(help="runs at the same time")] = 1,
    engine: Annotated[
        str, typer.Option(help=r"local, or ray: a cluster or a local Ray (pip install 'bangs\[ray]')")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(help="address of the Ray cluster; if left out RAY_ADDRESS, else a local Ray is started"),
    ] = None,
    gpu_share: Annotated[
        float, typer.Option(min=0, help="share of a GPU for one run on Ray; 0.25 puts four runs on one GPU")
    ] = 1.0,
    data: options.DataFolder = None,
    code: options.Code = None,
    out: Annotated[Path, typer.Option(help="folder of the runs; suites share them")] = Path("out/reproduce"),
    known: Annotated[
        Path | None, typer.Option(help="rows exported before: runs that are there are not done again")
    ] = None,
    export: Annotated[
        Path | None, typer.Option(help="write the rows of the suite's runs in --out to this file")
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Do all runs of a suite, such as a table of the paper; finished runs are kept.

    Example: bangs reproduce table-main --datasets cora --seeds 3 --device cuda
    """
    from bangs.cli.suite_progress import Progress
    from bangs.experiments.process_workers import Engine, InProcess, Processes
    from bangs.experiments.ray_workers import Ray
    from bangs.experiments.reproduce import Only, Plan, check_export
    from bangs.utils.devices import choose_device

    output = Output(as_json=as_json, quiet=quiet)
    if engine not in ENGINES:
        raise UnknownName("engine", engine, ENGINES)
    if engine == "local":
        choose_device(device)  # raises if it is missing; the machines of Ray may have other devices
    only = Only(
        parse_names("--datasets", datasets),
        parse_names("--methods", methods),
        parse_names("--models", models),
        None if seeds is None else parse_seeds(seeds),
    )
    plan = Plan.of(suites, out, only, data, device, known, None if code is None else code.resolve())
    if export is not None:
        check_export(export)
    progress, complete = Progress(output, plan), False
    try:
        with stoppable(command_line()):
            workers: Engine
            if engine == "ray":
                workers = Ray(None if jobs == 1 else jobs, address, gpu_share, progress.survey)
            elif address is not None:
                raise InvalidInput("--address names a Ray cluster; add --engine ray")
            else:
                workers = InProcess((progress.watch,)) if jobs == 1 else Processes(jobs)
            plan.do(workers, progress)
        complete = not progress.failures
    finally:
        progress.close()
        if export is not None:
            plan.export(export, complete=complete)
    lines = [f"{progress.total - len(progress.failures)} of {progress.total} runs are finished"]
    lines += [f"failed: {failure['what']}: {failure['error']}" for failure in progress.failures]
    lines += [f"see them with: {shlex.join(['bangs', 'table', str(out)])}"]
    names = [suite.name for suite in plan.suites]
    output.result({"suites": names, "out": str(out), **progress.facts}, "\n".join(lines))
    if progress.failures:
        raise typer.Exit(1)
