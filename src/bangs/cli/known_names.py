"""All names that commands accept, by kind, with descriptions; read from the source files without importing torch."""

import ast
from functools import lru_cache
from pathlib import Path
from typing import Any

import bangs

# the module and the name of the registry of each kind
_TABLES = {
    "datasets": ("graphs.datasets.urls", "DATASETS"),
    "methods": ("selftraining.methods", "METHODS"),
    "models": ("nn.models", "MODELS"),
    "calibrators": ("calibration.calibrators", "CALIBRATORS"),
    "estimators": ("valuation.banzhaf", "ESTIMATORS"),
    "strategies": ("suggestion.strategies", "STRATEGIES"),
}
KINDS = ("datasets", "methods", "models", "calibrators", "suites", "estimators", "strategies")


def names_of(kind: str) -> dict[str, str]:
    """The names of a kind with their descriptions."""
    if kind == "suites":
        import tomllib

        from bangs.experiments.suites.find_suite import suite_files, suite_text

        return {name: str(tomllib.loads(suite_text(path))["title"]) for name, path in suite_files().items()}
    module, name = _TABLES[kind]
    table = _defined(module, name).value
    if kind == "datasets":
        return dict(filter(None, (_described(module, node) for node in ast.walk(table))))
    return {
        ast.literal_eval(key): _sentence(module, value) for key, value in zip(table.keys, table.values, strict=True)
    }


def _sentence(module: str, node: Any) -> str:
    """The first line of the docstring of a function or class, or of the one that a lambda calls."""
    while not isinstance(node, ast.Name):
        node = node.body if isinstance(node, ast.Lambda | ast.IfExp) else node.func
    return (ast.get_docstring(_defined(module, node.id)) or "").split("\n")[0]


def _described(module: str, node: ast.AST) -> tuple[str, str] | None:
    """The arguments `name` and `description` of a call; None if it does not have them."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    called = _defined(module, node.func.id)
    names = [argument.arg for argument in called.args.args] if isinstance(called, ast.FunctionDef) else []
    given = dict(zip(names, node.args, strict=False)) | {str(keyword.arg): keyword.value for keyword in node.keywords}
    if not given.keys() >= {"name", "description"}:
        return None
    return ast.literal_eval(given["name"]), ast.literal_eval(given["description"])


def _defined(module: str, name: str) -> Any:
    """The function, class or annotated assignment of that name, in the module or where it is imported from."""
    for part in _tree(module).body:
        if isinstance(part, ast.ImportFrom) and any(alias.name == name for alias in part.names):
            return _defined(str(part.module).removeprefix("bangs."), name)
        target = part.target if isinstance(part, ast.AnnAssign) else part
        if name in (getattr(target, "name", None), getattr(target, "id", None)):
            return part
    raise LookupError(f"{name} is not defined in bangs.{module}")


@lru_cache(maxsize=2)  # more cached trees would slow down the garbage collector
def _tree(module: str) -> ast.Module:
    path = Path(bangs.__file__).parent.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))
