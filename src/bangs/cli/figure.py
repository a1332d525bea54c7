"""`bangs figure`: draw a sweep with error bands."""

from pathlib import Path
from typing import Annotated

import typer

from bangs.cli import options
from bangs.cli.console import Output
from bangs.errors import InvalidInput


def figure(
    place: options.Results,
    suite: options.SuiteName = None,
    protocol: options.Protocol = None,
    out: Annotated[Path | None, typer.Option(help="folder for the pictures; beside the runs if left out")] = None,
    as_json: options.Json = False,
) -> None:
    """Draw the results of a suite as curves with bands of one standard deviation (SVG, PNG, CSV).

    Example: bangs figure out/reproduce --suite figure-k
    """
    from bangs.cli.parsing import parse_names
    from bangs.cli.result_paths import results_of, suites_of
    from bangs.experiments.suites.suite import FIGURES
    from bangs.experiments.tables.figure import draw
    from bangs.experiments.tables.table import tabulate

    results = results_of(place)
    chosen = [item for item in suites_of(place, suite) if item.kind in FIGURES or suite is not None]
    if not chosen:
        raise InvalidInput(f"'{place}' holds no suite that is a figure; use bangs table")
    folder = out or (place if place.is_dir() else place.parent) / "figures"
    rules = parse_names("--protocol", protocol)
    written = [path for item in chosen for path in draw(tabulate(item, results, rules), folder)]
    Output(as_json=as_json).result({"files": [str(path) for path in written]}, "\n".join(map(str, written)))
