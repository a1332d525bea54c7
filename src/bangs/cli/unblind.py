"""`bangs unblind`: open the test labels of finished blind runs, once."""

from pathlib import Path
from typing import Annotated

import typer

from bangs.cli import options
from bangs.cli.console import Output


def unblind(
    runs: Annotated[
        list[Path],
        typer.Argument(help="folders of `bangs run --blind --out FOLDER`, or of `bangs reproduce` with blind suites"),
    ],
    data: options.DataFolder = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Open the test labels of finished blind runs, once.

    Test accuracies are computed from the predictions that the run kept, and written into its result.json; the folder's
    events say when.

    Example: bangs unblind out/cora-soft
    """
    from bangs.cli.run import scores
    from bangs.experiments.experiment import compact
    from bangs.experiments.unblind import runs_in
    from bangs.experiments.unblind import unblind as compute

    output = Output(as_json=as_json, quiet=quiet)
    results, lines = {}, []
    for run in (path for folder in runs for path in runs_in(folder)):
        result = compute(run, data)
        if result is None:
            lines.append(f"{run}: was opened before; nothing has changed")
            continue
        results[str(run)] = compact(result)
        lines.append(f"{run}\n{scores(result)}")
    output.result(results, "\n".join(lines))
