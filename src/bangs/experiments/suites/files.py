"""Suite files: where they are, and their text."""

from collections.abc import Mapping
from pathlib import Path

from bangs.errors import InvalidInput, UnknownName
from bangs.utils.files import read_regular_file

LARGEST = 1 << 18  # bytes of a suite file


def suite_path(name: str, beside: Mapping[str, Path] | None = None) -> Path:
    """The file of a suite: of a name, or itself."""
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return path
    known = {**suite_files(), **(beside or {})}
    if name not in known:
        raise UnknownName("suite", name, known)
    return known[name]


def suite_files() -> dict[str, Path]:
    """The suites that come with bangs, by name."""
    package = Path(__file__).parents[2]
    for folder in (package / "suites", package.parents[1] / "suites"):  # installed; in a checkout
        if folder.is_dir():
            return {file.stem: file for file in sorted(folder.glob("*.toml"))}
    return {}


def suite_text(path: Path) -> str:
    """The text of a suite file, which must be regular and not too large."""
    try:
        return read_regular_file(path, LARGEST, follow=True).decode()
    except FileNotFoundError as error:
        raise InvalidInput(f"the suite {path} could not be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the suite {path} could not be read: {error}") from error
