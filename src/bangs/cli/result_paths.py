"""The results in a folder or a file of rows, and the suites they belong to."""

from pathlib import Path

from bangs.errors import InvalidInput
from bangs.experiments.results import Result, results_in
from bangs.experiments.suites.files import suite_files
from bangs.experiments.suites.read import find_suite, read_suite
from bangs.experiments.suites.suite import Suite


def results_of(place: Path) -> list[Result]:
    """The results there, of which there must be some in a file of rows."""
    results = results_in(place)
    if place.is_file() and not results:
        raise InvalidInput(f"'{place}' holds no rows; write it again with --export")
    return results


def suites_of(place: Path, name: str | None) -> list[Suite]:
    """The suite of that name, else those that were run into the folder, else the one a file of rows is named after."""
    kept = sorted((place / "suites").glob("*.toml")) if place.is_dir() else []
    if name is not None:
        return [find_suite(name, names="any", extra={path.stem: path for path in kept})]
    if kept:
        return [read_suite(path, names="any") for path in kept]
    if place.suffix == ".jsonl" and place.stem in suite_files():
        return [find_suite(place.stem)]
    raise InvalidInput(f"'{place}' does not say which suite it holds; add --suite NAME")
