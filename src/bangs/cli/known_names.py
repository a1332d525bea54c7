"""Every name a command understands, by kind, with a sentence on each; read from source files, without torch."""

import ast
from functools import lru_cache
from pathlib import Path
from typing import Any

import bangs

# the table of a kind: its module and its name there
_TABLES = {
    "datasets": ("graphs.datasets.by_name", "DATASETS"),
    "methods": ("selftraining.methods", "METHODS"),
    "models": ("nn.models", "MODELS"),
    "calibrators": ("calibration.calibrators", "CALIBRATORS"),
    "estimators": ("valuation.banzhaf", "ESTIMATORS"),
    "strategies": ("suggestion.strategies", "STRATEGIES"),
}
KINDS = ("datasets", "methods", "models", "calibrators", "suites", "estimators", "strategies")


def names_of(kind: str) -> dict[str, str]:
    """The names of a kind, each with a sentence."""
    if kind == "suites":
        import tomllib

        from bangs.experiments.suites.files import suite_files, suite_text

        return {name: str(tomllib.loads(suite_text(path))["title"]) for name, path in suite_files().items()}
    module, name = _TABLES[kind]
    table = _defined(module, name).value
    if kind == "datasets":
        return dict(filter(None, (_described(module, node) for node in ast.walk(table))))
    return {ast.literal_eval(key): _sentence(module, own) for key, own in zip(table.keys, table.values, strict=True)}


def docstring(module: str, name: str) -> str:
    """The docstring of a function or class of a module of bangs, such as `cli.fit`."""
    return ast.get_docstring(_defined(module, name)) or ""


def _sentence(module: str, node: Any) -> str:
    """The first line of the docstring of a function or class, or of what a lambda makes."""
    while not isinstance(node, ast.Name):
        node = node.body if isinstance(node, ast.Lambda | ast.IfExp) else node.func
    return docstring(module, node.id).split("\n")[0]


def _described(module: str, node: ast.AST) -> tuple[str, str] | None:
    """The name and the description that a call gives; None where it gives none."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    called = _defined(module, node.func.id)
    names = [own.arg for own in called.args.args] if isinstance(called, ast.FunctionDef) else []
    given = dict(zip(names, node.args, strict=False)) | {str(word.arg): word.value for word in node.keywords}
    if not given.keys() >= {"name", "description"}:
        return None
    return ast.literal_eval(given["name"]), ast.literal_eval(given["description"])


def _defined(module: str, name: str) -> Any:
    """The function, class or annotated assignment of that name, in the module or where it is imported from."""
    for part in _tree(module).body:
        if isinstance(part, ast.ImportFrom) and any(alias.name == name for alias in part.names):
            return _defined(str(part.module).removeprefix("bangs."), name)
        own = part.target if isinstance(part, ast.AnnAssign) else part
        if name in (getattr(own, "name", None), getattr(own, "id", None)):
            return part
    raise LookupError(f"{name} is not defined in bangs.{module}")


@lru_cache(maxsize=2)  # trees kept would slow the garbage collector down
def _tree(module: str) -> ast.Module:
    path = Path(bangs.__file__).parent.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))
