"""User code: a Python file that is run first and adds methods, calibrators, estimators or models by name."""

import functools
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bangs.calibration.calibrators import CALIBRATORS
from bangs.errors import InvalidInput
from bangs.nn.models import MODELS
from bangs.selftraining.loop import Method
from bangs.selftraining.methods import METHODS, Budget
from bangs.valuation.banzhaf import ESTIMATORS

# what the file may add to, what an entry is given and must make, and how to know that it did
_NAMES: dict[str, tuple[dict[str, Any], tuple[Any, ...], str, Callable[[Any], bool]]] = {
    "METHODS": (METHODS, (Budget(),), "a function from a Budget to a Method", lambda made: isinstance(made, Method)),
    "CALIBRATORS": (CALIBRATORS, (), "a class of calibrators that needs no arguments", callable),
    "ESTIMATORS": (ESTIMATORS, (None,), "a function from a number of samples, or None, to an estimator", callable),
    "MODELS": (MODELS, (), "a class of architectures that needs no arguments", lambda made: hasattr(made, "build")),
}


@functools.cache
def run_code(path: Path) -> None:
    """Run the file as a module, once a process; what fails in it is a sentence with the line."""
    name = f"bangs_code_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve()) if path.is_file() else None
    if spec is None or spec.loader is None:
        what = "is no Python file (.py)" if path.is_file() else "does not exist"
        raise InvalidInput(f"--code '{path}' {what}; name the file that adds your parts to {', '.join(_NAMES)}")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # where dataclasses look for their module
    before = {known: dict(parts) for known, (parts, *_) in _NAMES.items()}
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidInput(f"--code '{path}' failed{_told(error, path)}") from error
    for known, (parts, *_) in _NAMES.items():
        for word in parts:
            if parts[word] is not before[known].get(word):
                _check(path, known, word)


def _check(path: Path, known: str, word: str) -> None:
    """Raises where an entry of the file's does not make what its name will be taken for."""
    parts, given, rule, right = _NAMES[known]
    place = f"--code '{path}': {known}['{word}'] must be {rule}"
    try:
        made = parts[word](*given)
    except Exception as error:
        raise InvalidInput(f"{place}; it failed{_told(error, path)}") from error
    if not right(made):
        raise InvalidInput(f"{place}; it gave {type(made).__name__}")


def _told(error: Exception, path: Path) -> str:
    """The error in words, with the line of the file where there is one."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path.resolve())
    ]
    return f"{f' in line {lines[-1]}' if lines else ''}: {type(error).__name__}: {error}"
