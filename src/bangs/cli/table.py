"""`bangs table`: the results of a suite beside the published numbers."""

from pathlib import Path
from typing import Annotated

import typer

from bangs.cli import options
from bangs.errors import UnknownName
from bangs.utils.text import escape_controls


def table(
    place: options.Results,
    suite: options.SuiteName = None,
    form: Annotated[str, typer.Option("--format", help="markdown, latex, csv or json")] = "markdown",
    protocol: options.Protocol = None,
    page: Annotated[
        Path | None, typer.Option(help="write one page of all suites of bangs with their figures to this .md instead")
    ] = None,
) -> None:
    """Print the results of a suite as a table: mean ± std, tests, and the published numbers.

    Example: bangs table out/reproduce --suite table-main --protocol validation
    """
    from bangs.cli.parsing import parse_names
    from bangs.cli.result_paths import results_of, suites_of
    from bangs.experiments.suites.find_suite import suite_files
    from bangs.experiments.suites.read_suite import read_suite
    from bangs.experiments.tables.page import write_page
    from bangs.experiments.tables.render import FORMATS
    from bangs.experiments.tables.reruns import spread_in
    from bangs.experiments.tables.table import tabulate

    if form not in FORMATS:
        raise UnknownName("format", form, FORMATS)
    results = results_of(place)
    spread = spread_in(place, results)
    if page is not None:
        suites = [read_suite(path) for path in suite_files().values()]
        for path in write_page(suites, results, page, f"bangs table {place} --page {page}", spread):
            print(escape_controls(str(path)))
        return
    rules = parse_names("--protocol", protocol)
    texts = [FORMATS[form](tabulate(chosen, results, rules, spread)) for chosen in suites_of(place, suite)]
    print(escape_controls(joined(texts, form)), end="")


def joined(texts: list[str], form: str) -> str:
    """Join several tables into one document of their format."""
    if form == "json" and len(texts) > 1:
        return "[" + ",\n".join(text.strip() for text in texts) + "]\n"
    if form == "csv":
        return "".join(text if number == 0 else text.split("\n", 1)[1] for number, text in enumerate(texts))
    return "\n".join(texts)
