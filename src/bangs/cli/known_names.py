"""Every name a command understands, by kind, with a sentence on each; read from source files, without torch."""

import ast
import tomllib
from functools import cache
from pathlib import Path

import bangs
from bangs.experiments.suites.files import suite_files, suite_text

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
        return {name: str(tomllib.loads(suite_text(path))["title"]) for name, path in suite_files().items()}
    module, name = _TABLES[kind]
    table = _table(module, name)
    if kind == "datasets":
        return dict(filter(None, (_described(module, node) for node in ast.walk(table))))
    assert isinstance(table, ast.Dict)
    keys = [ast.literal_eval(key) for key in table.keys if key is not None]
    return {key: _sentence(module, value) for key, value in zip(keys, table.values, strict=True)}


def _sentence(module: str, node: ast.AST) -> str:
    """The first line of the docstring of a function or class, or of what a lambda makes."""
    if isinstance(node, ast.Lambda):
        return _sentence(module, node.body)
    if isinstance(node, ast.Call):
        return _sentence(module, node.func)
    assert isinstance(node, ast.Name)
    for part in _tree(module).body:
        if isinstance(part, ast.FunctionDef | ast.ClassDef) and part.name == node.id:
            return (ast.get_docstring(part) or "").split("\n")[0]
        if isinstance(part, ast.ImportFrom) and any(alias.name == node.id for alias in part.names):
            return _sentence(str(part.module).removeprefix("bangs."), node)
    raise LookupError(f"{node.id} is not defined in bangs.{module}")


def _described(module: str, node: ast.AST) -> tuple[str, str] | None:
    """The name and the description that a call gives; None where it gives none."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    given = dict(zip(_parameters(module, node.func.id), node.args, strict=False))
    given |= {str(word.arg): word.value for word in node.keywords}
    if not given.keys() >= {"name", "description"}:
        return None
    return ast.literal_eval(given["name"]), ast.literal_eval(given["description"])


def _parameters(module: str, name: str) -> list[str]:
    """The parameters of a function of the module."""
    for part in _tree(module).body:
        if isinstance(part, ast.FunctionDef) and part.name == name:
            return [own.arg for own in part.args.args]
    return []


def _table(module: str, name: str) -> ast.expr:
    """The value of an annotated assignment."""
    for part in _tree(module).body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and part.target.id == name:
            assert part.value is not None
            return part.value
    raise LookupError(f"{name} is not in bangs.{module}")


@cache
def _tree(module: str) -> ast.Module:
    path = Path(bangs.__file__).parent.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))
