"""Pages of the site that are not in docs/: the files at the root of the repository, the notebooks and the commands."""

import json
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
AT_ROOT = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "reporting.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of docs/, those at the root, the notebooks, and a page of all commands."""
    for name, page in AT_ROOT.items():
        files.append(File.generated(config, page, content=_linked((ROOT / name).read_text(), "")))
    for path in sorted((ROOT / "examples" / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebook-{path.stem}.md", content=notebook(path)))
    files.append(File.generated(config, "commands.md", content=commands()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with links that lead out of docs/ turned to pages of the site, or to plain names."""
    return _linked(markdown, "../" * (1 + page.file.src_uri.count("/"))) if page.file.abs_src_path else markdown


def _linked(text: str, up: str) -> str:
    """`up` leads from the folder of the page to the root of the repository."""
    for name, page in AT_ROOT.items():
        text = text.replace(f"]({up}{name}", f"]({up.removesuffix('../')}{page}")
    if not up:  # a file at the root says docs/page.md
        return text.replace("](docs/", "](")
    return re.sub(rf"\[`?([^\]`]+)`?\]\({re.escape(up)}[^)]+\)", r"`\1`", text)


def notebook(path: Path) -> str:
    """A notebook with its stored outputs as Markdown."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(f'<img alt="A figure of the notebook" src="data:image/png;base64,{data["image/png"]}">')
            elif shown := "".join(output.get("text", data.get("text/plain", ""))).rstrip():
                parts.append(f"```text\n{shown}\n```")
    return "\n\n".join([*parts, f"This page is the notebook `examples/notebooks/{path.name}`."])


def commands() -> str:
    """Every command with its arguments and options, as its help has them."""
    sys.path.insert(0, str(ROOT / "src"))
    from bangs.cli.commands import NAMES, load

    parts = ["# Commands\n", "`bangs COMMAND --help` prints the same in a terminal.\n"]
    for name in NAMES:
        command = load(name)
        about, *examples = re.sub(r"\[/?[a-z]+\]", "", command.help or "").split("\n\n")
        parts += [f"## bangs {name}\n", _one_line(about) + "\n"]
        parts += [f"`{_one_line(words).removeprefix('Example: ')}`\n" for words in examples if "Example" in words]
        parts += ["| option | meaning | default |", "|---|---|---|"]
        parts += [_row(param) for param in command.params if param.name != "help"]
        parts.append("")
    return "\n".join(parts)


def _row(param: Any) -> str:
    option = param.param_type_name == "option"
    names = ", ".join(f"`{own}`" for own in sorted(param.opts, key=len, reverse=True)) if option else f"`{param.name}`"
    default = "required" if param.required else "" if param.default in (None, False, ()) else f"`{param.default}`"
    help = _one_line((param.help or "").replace("\\[", "[")).replace("|", "\\|")
    return f"| {names} | {help} | {default} |"


def _one_line(text: str) -> str:
    return " ".join(text.split())
