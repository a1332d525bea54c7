"""`bangs report`: the page of a run, made again."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from bangs.cli.console import Voice
from bangs.report.page import write_page


def report(
    folder: Annotated[Path, typer.Argument(help="a folder that `bangs fit`, `bangs run --out` or `bangs demo` wrote")],
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object to stdout and nothing else")] = False,
) -> None:
    """One self-contained HTML page about a finished run, written into its folder.

    Example: bangs report out/library
    """
    path = write_page(folder)
    Voice(as_json=as_json).result({"page": str(path)}, escape(f"look at {path}"))
