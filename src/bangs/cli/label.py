"""`bangs label`: a web page for labelling nodes, the most useful ones first."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bangs.cli import options
from bangs.cli.console import Output
from bangs.utils.limits import MAX_COUNT


@options.reads_tables(options.TABLES)
def label(
    graph: Annotated[
        Path,
        typer.Argument(
            help="a folder with edges.csv and nodes.csv (or .tsv, .parquet), one .npz, or a folder of `bangs fit`"
        ),
    ],
    tables: dict[str, Any],
    out: Annotated[
        Path | None, typer.Option(help="folder for labels.csv and the fits; GRAPH-labels beside it if left out")
    ] = None,
    batch: Annotated[
        int, typer.Option(min=1, max=MAX_COUNT, help="answers after which the model is fitted again")
    ] = 10,
    strategy: options.Strategy = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="port of the page; 0 = any free one")] = 0,
    read_only: Annotated[bool, typer.Option("--read-only", help="show the page, accept no answers")] = False,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="fit with the answers so far, write the queue, and end without a page")
    ] = False,
    time_limit: options.TimeLimit = None,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
) -> None:
    """Open a page to label nodes on; the most useful come first, and answers go to labels.csv.

    Example: bangs label examples/own-graph --out out/labels
    """
    from bangs.cli.label_folder import default_folder, origin, prepare_queue, serve
    from bangs.errors import InvalidInput
    from bangs.suggestion.strategies import DEFAULT
    from bangs.suggestion.strategies import strategy as by_name

    by_name(strategy or DEFAULT)
    if read_only and prepare:
        raise InvalidInput("a folder is either looked at or prepared; give one of --read-only and --prepare")
    output = Output(quiet=quiet)
    folder = out or default_folder(graph)
    if not prepare:
        name = graph.resolve().name if read_only else origin(graph)[0].path.name
        command = [sys.executable, "-m", "bangs", *sys.argv[1:], "--prepare", "--quiet"]  # this one, for the queue
        serve(folder, name, batch, port, read_only, command, output)
        return
    fitted, classifier = origin(graph)
    classifier.set_params(time_limit=time_limit, device=device)
    prepare_queue(folder, fitted.also(tables), classifier, 3 * batch, strategy, output)
