"""`bangs suggest`: list the nodes to label next, each with a reason."""

import json
from pathlib import Path
from typing import Annotated

import typer

from bangs.cli import options
from bangs.cli.console import Output
from bangs.utils.limits import MAX_COUNT


def suggest(
    folder: options.FittedFolder,
    count: Annotated[int, typer.Option(min=1, max=MAX_COUNT, help="how many nodes")] = 20,
    strategy: options.Strategy = None,
    out: Annotated[Path | None, typer.Option(help="a .csv or .json file to write")] = None,
    store: options.FittedStore = None,
    as_json: options.Json = False,
) -> None:
    """List the nodes to label next, those that would help the model most, with a reason each.

    Example: bangs suggest out/library --count 10
    """
    from bangs.errors import InvalidInput
    from bangs.estimator.model_file import read_saved_run
    from bangs.report.run_data import read_truth
    from bangs.utils.files import check_replaceable, write_atomic

    if out is not None and out.suffix not in (".csv", ".json"):
        raise InvalidInput(f"--out must end in .csv or .json, got '{out}'")
    truth = read_truth(folder)
    suggestions = read_saved_run(folder, store).suggest(count, strategy, exclude=None if truth is None else truth >= 0)
    if out is not None:
        begin = b"rank,id," if out.suffix == ".csv" else b'{"strategy": '
        check_replaceable(out, begin, "suggest")
        write_atomic(out, suggestions.to_csv() if out.suffix == ".csv" else json.dumps(suggestions.to_dict()) + "\n")
    text = str(suggestions) if out is None else "\n".join([f"{len(suggestions):,} nodes in {out}", *suggestions.notes])
    Output(as_json=as_json).result(suggestions.to_dict(), text)
