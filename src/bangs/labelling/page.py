"""The labelling page as one HTML text, in the style of the report."""

from bangs.report.page import asset, environment


def label_page(name: str) -> str:
    """The HTML of the page for the graph `name`."""
    style = asset("page.css") + asset("label.css", "bangs.labelling")
    script = asset("tools.js") + asset("label.js", "bangs.labelling")
    facts = {"name": name, "classes": []}
    text: str = (
        environment("bangs.labelling").get_template("label.html").render(facts=facts, style=style, script=script)
    )
    return text
