"""`bangs explain`: why a node has its label, in words and numbers."""

from typing import Annotated

import typer

from bangs.cli import options
from bangs.cli.console import Output


def explain(
    folder: options.FittedFolder,
    node: Annotated[
        str, typer.Argument(help="the id of a node of the fitted graph; one with a dash in front comes after --")
    ],
    top: Annotated[int, typer.Option(min=1, max=100, help="how many neighbours and influences to name")] = 5,
    store: options.FittedStore = None,
    as_json: options.Json = False,
) -> None:
    """Why this label: neighbours, influences, value, confidence, and how the prediction changed over rounds.

    Example: bangs explain out/library R-0616
    """
    from bangs.cli.explain_text import in_words, named
    from bangs.estimator.classifier import SelfTrainingClassifier

    model = SelfTrainingClassifier.load(folder, store=store)
    reasons = model.explain(node, top)
    names, classes = model.node_names_, [str(name) for name in model.classes_]
    words = in_words(reasons, names, classes, model.selector)
    Output(as_json=as_json).result(named(reasons, names, classes), words)
