"""Read the results in a folder or a file of rows, and find their suites."""

from pathlib import Path

from bangs.errors import InvalidInput
from bangs.experiments.results import Result, results_in
from bangs.experiments.suites.find_suite import suite_files, suite_path
from bangs.experiments.suites.read_suite import read_suite
from bangs.experiments.suites.suite import Suite


def results_of(path: Path) -> list[Result]:
    """The results at a path; raises if a file has no rows."""
    results = results_in(path)
    if path.is_file() and not results:
        raise InvalidInput(f"'{path}' holds no rows; write it again with --export")
    return results


def suites_of(path: Path, name: str | None) -> list[Suite]:
    """The suite of that name, else the suites of the folder, else the suite with the name of the file of rows."""
    suite_paths = sorted((path / "suites").glob("*.toml")) if path.is_dir() else []
    if name is not None:
        return [read_suite(suite_path(name, {file.stem: file for file in suite_paths}), names="any")]
    if suite_paths:
        return [read_suite(file, names="any") for file in suite_paths]
    if path.suffix == ".jsonl" and path.stem in suite_files():
        return [read_suite(suite_path(path.stem))]
    raise InvalidInput(f"'{path}' does not say which suite it holds; add --suite NAME")
