"""Places with results: which suites a folder or a file of rows holds."""

from pathlib import Path

from bangs.errors import InvalidInput
from bangs.experiments.suite import Suite
from bangs.experiments.suite_file import find_suite, read_suite


def suites_of(place: Path, name: str | None) -> list[Suite]:
    """The suite asked for, else those that were run into the folder, else the one a file of rows is named after."""
    if name is not None:
        return [find_suite(name)]
    kept = sorted((place / "suites").glob("*.toml")) if place.is_dir() else []
    if kept:
        return [read_suite(path) for path in kept]
    if place.suffix == ".jsonl":
        return [find_suite(place.stem)]
    raise InvalidInput(f"'{place}' does not say which suite it holds; add --suite NAME")
