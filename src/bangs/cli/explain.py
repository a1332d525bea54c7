"""`bangs explain`: why a node has its label, in words and numbers."""

from typing import Annotated

import typer

from bangs.cli import options
from bangs.cli.console import Output


def explain(
    folder: options.FittedFolder,
    node: Annotated[
        str, typer.Argument(help="the id of a node of the fitted graph; write -- before an id that begins with a dash")
    ],
    top: Annotated[int, typer.Option(min=1, max=100, help="how many neighbours and influences to list")] = 5,
    store: options.FittedStore = None,
    as_json: options.Json = False,
) -> None:
    """Say why a node has its label: its probabilities, neighbours, influences and rounds.

    Example: bangs explain out/library R-0616
    """
    from bangs.utils.garbage_collection import gc_paused

    with gc_paused():
        from bangs.estimator.model_file import read_saved_run

    explanation = read_saved_run(folder, store).explain(node, top)
    Output(as_json=as_json).result(explanation.to_dict(), explanation.text)
