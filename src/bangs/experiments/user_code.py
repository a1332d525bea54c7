"""Run a user's Python file, which may register methods, calibrators, estimators or models."""

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
from bangs.selftraining.budget import Budget
from bangs.selftraining.loop import Method
from bangs.selftraining.methods import METHODS
from bangs.valuation.banzhaf import ESTIMATORS

# by name: the registry, the arguments of an entry, what an entry must be, and a check of what it returns
_REGISTRIES: dict[str, tuple[dict[str, Any], tuple[Any, ...], str, Callable[[Any], bool]]] = {
    "METHODS": (METHODS, (Budget(),), "a function from a Budget to a Method", lambda made: isinstance(made, Method)),
    "CALIBRATORS": (CALIBRATORS, (), "a class of calibrators that needs no arguments", callable),
    "ESTIMATORS": (ESTIMATORS, (None,), "a function from a number of samples, or None, to an estimator", callable),
    "MODELS": (MODELS, (), "a class of architectures that needs no arguments", lambda made: hasattr(made, "build")),
}


@functools.cache
def run_code(path: Path) -> None:
    """Run the file as a module, once per process; an error names the line of the file."""
    module_name = f"bangs_code_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path.resolve()) if path.is_file() else None
    if spec is None or spec.loader is None:
        problem = "is no Python file (.py)" if path.is_file() else "does not exist"
        raise InvalidInput(f"--code '{path}' {problem}; name the file that adds your parts to {', '.join(_REGISTRIES)}")
    module = sys.modules[module_name] = importlib.util.module_from_spec(spec)  # dataclasses look up their module here
    before = {registry: dict(parts) for registry, (parts, *_) in _REGISTRIES.items()}
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidInput(f"--code '{path}' failed{_describe(error, path)}") from error
    for registry, (parts, arguments, rule, is_valid) in _REGISTRIES.items():
        for name in (name for name in parts if parts[name] is not before[registry].get(name)):
            prefix = f"--code '{path}': {registry}['{name}'] must be {rule}"
            try:
                made = parts[name](*arguments)
            except Exception as error:
                raise InvalidInput(f"{prefix}; it failed{_describe(error, path)}") from error
            if not is_valid(made):
                raise InvalidInput(f"{prefix}; it gave {type(made).__name__}")


def _describe(error: Exception, path: Path) -> str:
    """The error as text, with the line of the file if there is one."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path.resolve())
    ]
    return f"{f' in line {lines[-1]}' if lines else ''}: {type(error).__name__}: {error}"
