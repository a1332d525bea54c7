"""Model card: MODEL_CARD.md, the description of a model beside its weights."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bangs.core.intervals import in_percent
from bangs.report.headline import optimism
from bangs.report.leaderboard import HEAD, averaged, leaderboard


def model_card(config: Mapping[str, Any], result: Mapping[str, Any], environment: Mapping[str, Any]) -> str:
    """The text of MODEL_CARD.md, from the three sealed files of a fit."""
    graph, columns = config["graph"], config["columns"]
    return "\n".join(
        [
            f"# A node classifier for {escape(graph['name'])}",
            "",
            f"{_kind(config, result)} predicts one of "
            f"{len(result['classes'])} classes for every node: {_join(result['classes'])}. "
            f"It learned from {result['given']:,} labelled nodes"
            f"{_pseudo_labels(result)}.",
            "",
            "## Learned from",
            "",
            f"- {graph['nodes']:,} nodes and {graph['edges']:,} edges, "
            f"{'directed' if columns['directed'] else 'each undirected edge counted twice'}",
            f"- {result['given']:,} labels to learn from, {_judges(result)}",
            f"- features: {_features(columns)}",
            *(f"- {escape(note)}" for note in result.get("notes", [])),
            "",
            "## How good it is",
            "",
            *_scores(result),
            "",
            *_candidate_table(result.get("leaderboard", [])),
            "## How to use it",
            "",
            "`bangs predict FOLDER OTHER_GRAPH` labels the nodes of another graph with the same columns;",
            "`bangs explain FOLDER NODE` says why a node has its label. From Python:",
            "",
            "```python",
            "from bangs import SelfTrainingClassifier",
            "",
            'model = SelfTrainingClassifier.load("FOLDER")',
            "model.predict_proba()",
            "```",
            "",
            "## What it is not",
            "",
            "- It predicts these classes only; a node of another class gets one of them.",
            "- It expects a graph like the one it learned from: the same columns, and edges of the same kind.",
            _warning(result),
            f"- `model.safetensors` {_stored_data(graph)}; share it as you would share the data.",
            "",
            "## How it was made",
            "",
            *(f"- {name}: `{_code(value)}`" for name, value in config["parts"].items() if value != "None"),
            f"- seed {config['seed']}",
            *(f"- {name}: {escape(str(value))}" for name, value in environment.items() if value is not None),
            "",
        ]
    )


def _pseudo_labels(result: Mapping[str, Any]) -> str:
    if not result["adopted"]:
        # with several models, `adopted` is of the one with the most weight; others may have adopted labels
        return "" if averaged(result.get("leaderboard", [])) else " only"
    if result.get("soft"):
        return (
            f" and from soft labels of {result['adopted']:,} others: the probabilities that the model before round "
            f"{result['chosen']:,} predicted for them. Sure predictions count more than unsure ones"
        )
    return (
        f" and {result['adopted']:,} pseudo-labels, nodes it labelled itself in {result['chosen']:,} rounds of "
        "self-training"
    )


def _warning(result: Mapping[str, Any]) -> str:
    if result.get("soft"):
        return (
            "- Soft labels are the model's own predictions. `pseudo_labels.csv` lists every one with its probabilities "
            "and its weight."
        )
    return "- Pseudo-labels are the model's own predictions. `pseudo_labels.csv` lists every one with its reasons."


def _stored_data(graph: Mapping[str, Any]) -> str:
    if graph.get("stored"):
        return (
            "holds the labels of the graph and the path of its store, where `explain` and `report` read edges and node "
            "names"
        )
    return "holds the edges, the node names and the labels of the graph"


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


def _judges(result: Mapping[str, Any]) -> str:
    if result.get("folds"):
        return f"{result['held']:,} of which also judged models that had not learned them"
    return f"{result['held']:,} held for validation"


def _candidate_table(candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    """A table of the candidates."""
    rows = leaderboard(candidates)
    if not rows:
        return []
    note = (
        " Accuracy and log-likelihood are measured on labels that the model had not learned, with 95 % intervals."
        if any(candidate.get("accuracy") for candidate in candidates)
        else ""
    )
    lines = ["## What was tried", "", f"The prediction is the weighted mean of these models.{note}", ""]
    table = [HEAD, ("---",) * len(HEAD), *([escape(cell) for cell in row] for row in rows)]
    return [*lines, *(f"| {' | '.join(row)} |" for row in table), ""]


def _kind(config: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """What the model is."""
    board = result.get("leaderboard", [])
    if not averaged(board):
        name = str(board[0]["model"]) if board else config["parts"]["model"]
        return f"A model of the kind {escape(name)}. It"
    return f"The weighted mean of {averaged(board)} of {len(board)} models that were tried. It"


def _scores(result: Mapping[str, Any]) -> list[str]:
    validation = result["validation"]
    lines = [
        "- accuracy is not known: no class has two labels"
        if validation["accuracy"] is None
        else f"- validation accuracy {validation['accuracy']:.1%} on {result['held']:,} nodes, 95 % interval "
        f"{in_percent(validation['accuracy'], result['held'])}{_raw(validation, result)}; {optimism(result)}",
    ]
    before, after, test = validation["error_before"], validation["error_after"], result["test"]
    if after is not None:
        lines.append(f"- expected calibration error on them: {before:.3f} before calibration, {after:.3f} after")
    if test is not None:
        lines.append(
            f"- test accuracy {test['accuracy']:.1%} on {test['nodes']:,} nodes used for nothing else, 95 % interval "
            f"{in_percent(test['accuracy'], test['nodes'])}{_raw(test, result)}"
        )
    return lines


def _raw(scores: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    if not result["rounds"]:
        return ""
    source = " by the model with the most weight" if averaged(result.get("leaderboard", [])) else ""
    return f" ({scores['raw']:.1%} in round 0, without pseudo-labels{source})"
