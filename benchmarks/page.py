"""The page of all benchmarks, from the rows in `rows/measured` and the words in `page.toml`.

    python benchmarks/page.py

Every file of rows is what a script prints with `--json`, with any remark besides. To measure one again, write what
`python benchmarks/NAME.py --json` prints to `benchmarks/rows/measured/NAME.json`. A part of `page.toml` names its file,
and the columns of each of its tables, where not all of them are shown.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

from measuring import page, table

HERE = Path(__file__).parent
ROWS, WORDS = HERE / "rows" / "measured", HERE / "page.toml"
PAGE = HERE.parent / "docs" / "results" / "benchmarks.md"


def written() -> str:
    """The page of the documentation."""
    words = tomllib.loads(WORDS.read_text())
    return page("Benchmarks", "python benchmarks/page.py", words["about"].strip(), *map(section, words["part"]))


def section(part: dict[str, Any]) -> str:
    """A heading and its words; of a part with rows the command, the tables and the other facts too."""
    about = part.get("about", "").strip()
    if "file" not in part:
        return f"{part['title']}\n\n{about}"
    measured = json.loads((ROWS / f"{part['file']}.json").read_text())
    command = f"```text\n{measured.pop('command')}\n```"
    tables = [shown(measured[key], columns) for key, columns in part.get("tables", {"rows": []}).items()]
    facts = "; ".join(f"{name}: {fact}" for name, fact in measured.items() if isinstance(fact, str | float | int))
    return "\n\n".join(filter(None, [part["title"], command, about, *tables, facts]))


def shown(rows: list[dict[str, Any]], columns: list[str]) -> str:
    """Those columns of the rows as a table, or all."""
    chosen = [{name: row.get(name) for name in columns} if columns else row for row in rows]
    head, *lines = table(chosen).splitlines()
    return "\n".join([head.replace("_", " "), *lines])


if __name__ == "__main__":
    PAGE.write_text(written())
