"""`bangs report`: write the page of a run or a suite."""

from pathlib import Path
from typing import Annotated

import typer

from bangs.cli import options
from bangs.cli.console import Output


def report(
    folder: Annotated[
        Path, typer.Argument(help="the --out folder of `bangs fit`, `run`, `demo` or `reproduce`, or a file of rows")
    ],
    suite: options.SuiteName = None,
    store: options.FittedStore = None,
    as_json: options.Json = False,
) -> None:
    """Write one HTML page about a finished fit, run or suite into its folder.

    Example: bangs report out/library
    """
    from bangs.utils.garbage_collection import gc_paused

    with gc_paused():
        from bangs.report.page import PAGE, page_begin, write_page
        from bangs.utils.files import check_replaceable

    path = folder.with_suffix(".html") if folder.suffix == ".jsonl" else folder / PAGE
    check_replaceable(path, page_begin(), "report")
    if suite is not None or folder.suffix == ".jsonl" or (folder / "suites").is_dir():
        # slow imports, which the page of a single run does not need
        from bangs.cli.result_paths import results_of, suites_of
        from bangs.report.suite_page import write_suite_page

        results = results_of(folder)  # before the suites: a missing file has none
        write_suite_page(suites_of(folder, suite), results, path)
    else:
        write_page(folder, store=store)
    Output(as_json=as_json).result({"page": str(path)}, f"look at {path}")
