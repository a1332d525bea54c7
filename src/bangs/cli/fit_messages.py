"""Messages of `bangs fit` on the terminal, during the fit and at its end."""

from pathlib import Path
from typing import Any

from bangs.cli.console import Output
from bangs.estimator.candidate_search import Progress
from bangs.report.headline import accuracy_bias
from bangs.selftraining.loop import State


def tell_candidate(output: Output, tried: Progress) -> None:
    """Print a line for the current candidate and the best one so far."""
    best = f"   best before: {tried.leader}, accuracy {tried.accuracy:.1%}" if tried.leader else ""
    output.say(f"{tried.number:>3} of {tried.count:<3} {tried.seconds:6.1f} s  {tried.name:<34}{best}")


def round_line(state: State) -> dict[str, str]:
    """The cells of a round by heading."""
    return {
        "round": f"{state.index}",
        "validation %": f"{100 * float(state.validation.mean()):.1f}",
        "pseudo-labels": f"{int(state.labels.adopted[0].sum())}",
        "epochs": f"{float(state.student.epochs.double().mean()):.0f}",
        "seconds": f"{sum(state.seconds.values()):.2f}",
    }


def final_summary(result: dict[str, Any], out: Path) -> str:
    """The main figures of a fit, and where its files are."""
    judged, test = result["validation"], result["test"]
    labels = f"{result['given']:,} labels given"
    labels += "" if result["folds"] else f", {result['held']:,} held for validation"
    if result["adopted"]:
        left = result["adopted_in_all"] - result["adopted"]
        labels += f", {result['adopted']:,} " + (
            "with soft labels" if result["soft"] else "labelled by the model itself"
        )
        labels += f" ({left:,} more after the chosen round, not used)" if left else ""
    lines = [f"{result['nodes']:,} nodes: {labels}"]
    if judged["nodes"]:
        low, high = judged["interval"]
        lines.append(
            f"accuracy {judged['accuracy']:.1%} on {judged['nodes']:,} held-out labels "
            f"(95 % interval {low:.1%} to {high:.1%}; largest class {result['largest_share']:.1%})"
            + ("" if result["folds"] else f"; {accuracy_bias(result)}")
        )
        if result["no_better_than_chance"]:
            lines.append(
                "warning: always predicting the largest class might be as good; "
                "label more nodes, or check features and edges"
            )
    else:
        lines.append("accuracy is not known: no class has two labels")
    if len(result["leaderboard"]) > 1:
        lines += _board(result["leaderboard"])
    if test is not None:
        lines.append(f"test accuracy {test['accuracy']:.1%} on {test['nodes']:,} nodes (round 0: {test['raw']:.1%})")
    if judged["nodes"]:
        low, high = judged["error_interval"]
        lines.append(
            f"calibration error {judged['error_after']:.3f} (95 % interval {low:.3f} to {high:.3f}), "
            f"{judged['error_before']:.3f} before calibration, on the same {judged['nodes']:,} labels"
        )
    lines.append(f"open {out / 'report.html'}; beside it are predictions.csv, pseudo_labels.csv, MODEL_CARD.md")
    return "\n".join(lines)


def _board(board: list[dict[str, Any]]) -> list[str]:
    """The candidates with the most weight."""
    weighted = [line for line in board if line["weight"] > 0]
    shown = weighted[:5]
    limit = f"; the {len(shown)} with the most weight" if len(weighted) > len(shown) else ""
    lines = [
        f"the prediction is the weighted mean of {len(weighted)} of {len(board)} models{limit} "
        "(weight, model, accuracy):"
    ]
    for line in shown:
        score = line.get("accuracy")
        accuracy = "" if score is None else f"  {score['value']:.1%} ({score['low']:.1%} to {score['high']:.1%})"
        lines.append(f"  {line['weight']:4.0%}  {line['model']} · {line['method']} · {line['features']}{accuracy}")
    return lines
