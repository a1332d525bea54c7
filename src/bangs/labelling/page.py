"""Page: the labelling page as one file, with the look of the report."""

from functools import cache
from importlib import resources

from bangs.report.page import asset, environment


def label_page(name: str) -> str:
    """The text of the page; `name` is the graph's."""
    style = asset("page.css") + _own("label.css")
    script = asset("tools.js") + _own("label.js")
    facts = {"name": name, "classes": []}
    text: str = (
        environment("bangs.labelling").get_template("label.html").render(facts=facts, style=style, script=script)
    )
    return text


@cache
def _own(name: str) -> str:
    return (resources.files("bangs.labelling") / "assets" / name).read_text(encoding="utf-8")
