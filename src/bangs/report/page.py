"""Write the report page of a run: one HTML file without other files or network access."""

from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from bangs.errors import BangsError, InvalidInput
from bangs.report.page_data import page_data
from bangs.report.run_data import RunData, gather
from bangs.utils.files import write_atomic
from bangs.utils.threads import thread_count, threads

PAGE = "report.html"


def write_page(folder: str | Path, result: dict[str, Any] | None = None, store: Path | None = None) -> Path:
    """Write report.html into the folder of a run; `result` replaces a result.json that is not written yet.

    `store` is the new path of the store that the model was fitted on, if it was moved.
    """
    path = Path(folder) / PAGE
    write_atomic(path, page_of(folder, store) if result is None else render(gather(folder, result)))
    return path


def page_of(folder: str | Path, store: Path | None = None) -> str:
    """The HTML of the page of a finished run; raises if the files of the folder do not fit together."""
    try:
        return render(gather(folder, store=store))
    except BangsError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"the files in '{folder}' do not fit together ({type(error).__name__}: {str(error)[:200]}); "
            "put the originals back, or make the run again"
        ) from error


def render(run_data: RunData) -> str:
    """The HTML of the page of a run."""
    nodes = 0 if run_data.snapshot is None else run_data.snapshot.nodes
    with threads(thread_count(nodes)):
        facts = page_data(run_data)
    return assemble("page.html", facts, ("charts.js", "tables.js", "nodes.js", "page.js"))


def assemble(template: str, facts: dict[str, Any], scripts: Sequence[str]) -> str:
    """The HTML from a template, facts and scripts; every text is escaped, as HTML or as JSON in a script."""
    script = "\n".join(asset(name) for name in ("elements.js", *scripts, "contents.js"))
    text: str = environment().get_template(template).render(facts=facts, style=asset("page.css"), script=script)
    return text


def page_begin() -> bytes:
    """The bytes at the start of every page, up to its title."""
    return assemble("base.html", {"name": "", "headline": {"lead": ""}}, ()).partition("<title>")[0].encode()


@cache
def environment(package: str = "bangs.report") -> Environment:
    """The templates of a package, and those of the report."""
    # autoescape for every name; `tojson` writes <, >, & and ' as \u003c …, so that no text can end the script
    return Environment(
        loader=ChoiceLoader([PackageLoader(name, "assets") for name in dict.fromkeys((package, "bangs.report"))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def asset(name: str, package: str = "bangs.report") -> str:
    """The text of an asset file."""
    return (resources.files(package) / "assets" / name).read_text(encoding="utf-8")
