"""Own code: a person's Python file, run first, so that the methods it names are known."""

import functools
import importlib.util
import sys
import traceback
from pathlib import Path

from bangs.errors import InvalidInput


@functools.cache
def run_code(path: Path) -> None:
    """Run the file as a module, once a process; what fails in it is a sentence with the line."""
    name = f"bangs_code_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve()) if path.is_file() else None
    if spec is None or spec.loader is None:
        what = "is no Python file (.py)" if path.is_file() else "does not exist"
        raise InvalidInput(f"--code '{path}' {what}; name the file in which your method is added to METHODS")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # where dataclasses look for their module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidInput(f"--code '{path}' failed{_where(error, path)}: {type(error).__name__}: {error}") from error


def _where(error: Exception, path: Path) -> str:
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path.resolve())
    ]
    return f" in line {lines[-1]}" if lines else ""
