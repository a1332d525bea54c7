"""Headline: the figures a person reads first, each with the rule it was found by."""

from typing import Any

from bangs.report.run_data import RunData


def headline(run_data: RunData) -> dict[str, Any]:
    """A lead sentence, the protocol, and figures of label, value and note."""
    return _of_fit(run_data) if run_data.kind == "fit" else _of_run(run_data)


def _of_fit(run_data: RunData) -> dict[str, Any]:
    result = run_data.result
    validation, test = result["validation"], result["test"]
    unused = result["adopted_in_all"] - result["adopted"]
    figures = []
    if test is not None:
        figures.append(
            {
                "label": "Test accuracy",
                "value": f"{_percent(test['accuracy'])}",
                "note": f"{test['nodes']:,} nodes that chose nothing; {_percent(test['raw'])} without pseudo-labels",
            }
        )
    figures += [
        {
            "label": "Validation accuracy",
            "value": f"{_percent(validation['accuracy'])}",
            "note": f"{_nodes(result['held'])} held back; {_percent(validation['raw'])} without pseudo-labels",
        },
        {
            "label": "Pseudo-labels",
            "value": f"{result['adopted']:,}",
            "note": f"adopted in {_rounds(result['chosen'])}"
            + (f"; {unused:,} of later rounds not used" if unused else ""),
        },
        {
            "label": "Calibration error",
            "value": f"{validation['error_after']:.3f}",
            "note": f"{validation['error_before']:.3f} before; on the validation nodes it was fitted to",
        },
    ]
    return {
        "lead": (
            f"{result['nodes']:,} nodes in {len(result['classes'])} classes, {result['given']:,} labels to learn from. "
            + (
                f"The model then labelled {result['adopted']:,} more nodes itself, those that teach it most, "
                "and learned again."
                if result["adopted"]
                else "No round of self-training did better than these alone, so the model learned from them only."
            )
        ),
        "protocol": (
            f"The model is the one of round {result['chosen']} of {result['rounds']}, which did best on the validation "
            "nodes. Since they chose the round, their accuracy is optimistic"
            + (
                "; test nodes chose nothing."
                if test is not None
                else ". A column named split, with the word test in some rows, would give an accuracy that is not."
            )
        ),
        "figures": figures,
    }


def _of_run(run_data: RunData) -> dict[str, Any]:
    result = run_data.result
    rules = [
        ("raw", "Without self-training", "test accuracy of round 0"),
        ("validation", "At the chosen round", "test accuracy at the round with the best validation accuracy"),
        ("last", "At the last round", "test accuracy"),
        ("best_test", "At the best round", "of rounds after 0, chosen by test labels: an oracle, not a fair figure"),
    ]
    figures = [
        {
            "label": label,
            "value": f"{result[name]['mean']:.2f}\N{NO-BREAK SPACE}%",
            "spread": f"± {result[name]['std']:.2f}" if len(result[name]["per_seed"]) > 1 else "",
            "note": note,
        }
        for name, label, note in rules
        if isinstance(result.get(name), dict)
    ]
    seeds = len(run_data.rows[0]["validation"])
    return {
        "lead": (
            f"{result.get('method', 'A method')} on {result.get('dataset', 'a graph')} "
            f"with {result.get('model', 'a model')}: {seeds} seed{'s' if seeds > 1 else ''}, "
            f"{_rounds(len(run_data.rows) - 1)} of self-training."
        ),
        "protocol": (
            "Mean and standard deviation over seeds. The round is chosen by validation labels; test labels only mark."
        ),
        "figures": figures,
    }


def _nodes(count: int) -> str:
    return f"{count:,} node{'s' if count != 1 else ''}"


def _rounds(count: int) -> str:
    return f"{count} round{'s' if count != 1 else ''}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"
