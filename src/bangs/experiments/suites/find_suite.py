"""Find and read suite files."""

from collections.abc import Mapping
from pathlib import Path

from bangs.errors import InvalidInput, UnknownName
from bangs.utils.files import read_regular_file

MAX_BYTES = 1 << 18  # bytes of a suite file


def suite_path(name: str, extra: Mapping[str, Path] | None = None) -> Path:
    """The file of a suite, from its name or path; suites in `extra` take precedence over those of bangs."""
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return path
    known = {**suite_files(), **(extra or {})}
    if name not in known:
        raise UnknownName("suite", name, known)
    return known[name]


def suite_files() -> dict[str, Path]:
    """The files of the suites that come with bangs, by name."""
    package = Path(__file__).parents[2]
    for folder in (package / "suites", package.parents[1] / "suites"):  # installed; in a checkout
        if folder.is_dir():
            return {file.stem: file for file in sorted(folder.glob("*.toml"))}
    return {}


def suite_text(path: Path) -> str:
    """The text of a suite file; it must be a regular file of at most `MAX_BYTES`."""
    try:
        return read_regular_file(path, MAX_BYTES, follow=True).decode()
    except (FileNotFoundError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, FileNotFoundError) else error
        raise InvalidInput(f"the suite {path} could not be read: {reason}") from error
