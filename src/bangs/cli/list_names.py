"""`bangs list`: the names a command understands."""

import json
from typing import Annotated

import typer

from bangs.cli import options
from bangs.cli.console import Output
from bangs.errors import UnknownName


def list_names(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="datasets, methods, models, calibrators, suites, estimators or strategies; all if left out"
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """The names the other commands understand.

    Example: bangs list methods
    """
    from bangs.cli.known_names import KINDS, names_of

    if kind is not None and kind not in KINDS:
        raise UnknownName("kind of names", kind, KINDS)
    found = {name: names_of(name) for name in (KINDS if kind is None else [kind])}
    if as_json:
        print(json.dumps(found))
        return
    output = Output()
    for title, names in found.items():
        if kind is None:
            output.say(f"{title}:")
        width = max(map(len, names))
        for name, words in names.items():
            output.say(f"{name:<{width}}  {words}")
