"""Notebooks run without Jupyter: code cells in order, with what they print, return and draw.

python -m tests.helpers.notebooks        # run the notebooks of examples/notebooks and store their outputs
"""

import ast
import base64
import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from tests import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def run(path: Path) -> dict[str, Any]:
    """The notebook with fresh outputs; its code runs in the folder it lies in."""
    notebook: dict[str, Any] = json.loads(path.read_text())
    space: dict[str, Any] = {"__name__": "__main__"}
    plt.switch_backend("agg")
    with contextlib.chdir(path.parent):
        for number, cell in enumerate(cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
            cell |= {"outputs": _run("".join(cell["source"]), space, f"{path.name}[{number}]")}
            cell["execution_count"] = number + 1
    return notebook


def _run(code: str, space: dict[str, Any], name: str) -> list[dict[str, Any]]:
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), space)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(True)})
    if value is not None and not code.rstrip().endswith(";"):
        outputs.append(_shown({"text/plain": repr(value)}))
    for figure in map(plt.figure, plt.get_fignums()):
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=80, bbox_inches="tight", metadata={"Software": None})
        outputs.append(_shown({"image/png": base64.b64encode(picture.getvalue()).decode()}))
    plt.close("all")
    return outputs


def _shown(data: dict[str, str]) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data, "metadata": {}}


def main() -> None:
    for path in NOTEBOOKS:
        path.write_text(json.dumps(run(path), indent=1, ensure_ascii=False) + "\n")
        print(path.relative_to(ROOT), os.path.getsize(path))


if __name__ == "__main__":
    main()
