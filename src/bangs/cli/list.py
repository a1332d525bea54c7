"""`bangs list`: the names that commands accept."""

from typing import Annotated

import typer

from bangs.cli import options
from bangs.cli.console import Output
from bangs.errors import UnknownName


def list(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="datasets, methods, models, calibrators, suites, estimators or strategies; all if left out"
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """List the names of datasets, methods, models and other parts.

    Example: bangs list methods
    """
    from bangs.cli.known_names import KINDS, names_of

    if kind is not None and kind not in KINDS:
        raise UnknownName("kind of names", kind, KINDS)
    names_by_kind = {name: names_of(name) for name in (KINDS if kind is None else [kind])}
    lines = []
    for title, names in names_by_kind.items():
        width = max(map(len, names))
        lines += [f"{title}:"] if kind is None else []
        lines += [f"{name:<{width}}  {words}" for name, words in names.items()]
        lines += ["and every NAME.npz in the folder that BANGS_DATA names"] if title == "datasets" else []
    Output(as_json=as_json).result(names_by_kind, "\n".join(lines))
