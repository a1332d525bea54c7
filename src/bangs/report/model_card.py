"""Model card: MODEL_CARD.md, the description of a model beside its weights."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bangs.core.intervals import in_percent
from bangs.report.headline import accuracy_bias
from bangs.report.leaderboard import HEAD, averaged, leaderboard
from bangs.report.page import environment as templates
from bangs.utils.text import percent


def model_card(config: Mapping[str, Any], result: Mapping[str, Any], environment: Mapping[str, Any]) -> str:
    """The text of MODEL_CARD.md, from the three JSON files of a fit."""
    board = result.get("leaderboard", [])
    template = templates().overlay(autoescape=False).get_template("model_card.md")
    text: str = template.render(
        config=config,
        graph=config["graph"],
        result=result,
        environment=environment,
        board=board,
        averaged=averaged(board),
        head=HEAD,
        rows=[map(escape, row) for row in leaderboard(board)],
        measured=any(line.get("accuracy") for line in board),
        features=_features(config["columns"]),
        bias=accuracy_bias(result),
        count="{:,}".format,
        share=percent,
        in_percent=in_percent,
        escape=escape,
        join=_join,
        code=_code,
    )
    return text


def escape(text: str) -> str:
    """Escape Markdown in a text, and put it on one line."""
    return re.sub(r"([\\`*_{}\[\]<>#|!~])", r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    return " ".join(str(text).split()).replace("`", "'")


def _join(names: Sequence[str]) -> str:
    shown = [escape(name) for name in names[:12]]
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return ", ".join(shown) + more


def _features(columns: Mapping[str, Any]) -> str:
    names = [column["name"] for column in columns["columns"]]
    parts = [_join(names)] if names else []
    if columns["array"]:
        parts.append(f"an array of {columns['array']:,} columns")
    if columns["structural"] is not None:
        parts.append("degree and position in the graph, made from the edges")
    return "; ".join(parts)
