"""Page: the labelling page as one file, with the look of the report."""

from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined

from bangs.report.page import asset


def label_page(name: str) -> str:
    """The text of the page; `name` is the graph's."""
    style = asset("page.css") + _own("label.css")
    script = asset("tools.js") + _own("label.js")
    facts = {"name": name, "classes": []}
    text: str = _environment().get_template("label.html").render(facts=facts, style=style, script=script)
    return text


@cache
def _environment() -> Environment:
    # every text is escaped, as HTML or as JSON in a script
    return Environment(loader=PackageLoader("bangs.labelling", "assets"), autoescape=True, undefined=StrictUndefined)


@cache
def _own(name: str) -> str:
    return (resources.files("bangs.labelling") / "assets" / name).read_text(encoding="utf-8")
