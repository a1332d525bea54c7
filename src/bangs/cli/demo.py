"""`bangs demo`: soft self-training, the default of `bangs run`, on the synthetic graph."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from bangs.cli import options
from bangs.cli.console import Output, Rounds
from bangs.errors import InvalidInput

SETTINGS: dict[str, Any] = {
    "dataset": "synthetic",
    "method": "soft-aligned",
    "seeds": tuple(range(5)),
    "rounds": 3,
    "changes": {"lr": 0.02, "epochs": 200, "patience": 60},
}


def demo(
    out: Annotated[Path, typer.Option(help="folder for the files")] = Path("runs/demo"),
    device: options.Device = "auto",
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a GCN with and without self-training on a synthetic graph; under a minute on two cores.

    Example: bangs demo
    """
    from bangs.experiments.experiment import Experiment, compact
    from bangs.graphs.datasets import loading
    from bangs.report.page_observer import PageObserver
    from bangs.runs import RunFolder, config_hash, read_run
    from bangs.utils.devices import choose_device

    torch_device, experiment = choose_device(device), Experiment(**SETTINGS)
    output, config = Output(as_json=as_json, quiet=quiet), experiment.config()
    earlier = read_run(out) if (out / "config.json").exists() else None
    if earlier is not None and config_hash(earlier.config) != config_hash(config):
        raise InvalidInput(f"'{out}' holds another run than the demo; choose another folder with --out")
    # an earlier demo is discarded
    with RunFolder.create_or_resume(out, config, resume=False, overwrite="same", device=torch_device) as folder:
        output.say(
            "A citation network of 2,708 papers in 7 fields, 20 labels a field. A GCN learns\n"
            "it. In every round after that, its probabilities become the labels of all other papers,\n"
            f"and it learns again from them ({experiment.method}). {len(experiment.seeds)} seeds at once.\n"
        )
        with Rounds(output, f"{experiment.method}, mean over seeds", experiment.most_rounds) as view:
            data = loading.load(experiment.dataset)
            page_observer = PageObserver(experiment.self_trainer().method.calibrate, data.y)
            result = experiment.run(data=data, device=device, observers=[view, page_observer], run_folder=folder)
        page = page_observer.write(out)
    comparison = compare(result)
    output.result({**compact(result), "comparison": comparison}, _table(result, comparison))
    output.say(f"Look at {page}; the numbers are in {out / 'result.json'} and {out / 'history.jsonl'}")


def compare(result: dict[str, Any]) -> dict[str, float | None]:
    """The method minus Raw over the same seeds, with a one-sided paired t-test; p is None if all gains are equal."""
    from scipy import stats

    ours, raw = result["validation"]["per_seed"], result["raw"]["per_seed"]
    gains = [a - b for a, b in zip(ours, raw, strict=True)]
    p = float(stats.ttest_rel(ours, raw, alternative="greater").pvalue) if len(set(gains)) > 1 else None
    return {"difference": sum(gains) / len(gains), "p": p, "wins": sum(gain > 0 for gain in gains)}


def _table(result: dict[str, Any], comparison: dict[str, float | None]) -> Table:
    table = Table(
        title=f"Test accuracy, {len(result['seeds'])} seeds",
        title_justify="left",
        caption="Self-training at the round with the best validation accuracy; test labels choose nothing.",
    )
    for name in ("method", "accuracy %"):
        table.add_column(name)
    table.add_row("Raw GCN", f"{result['raw']['mean']:.2f} ± {result['raw']['std']:.2f}")
    ours = result["validation"]
    table.add_row(f"GCN, {SETTINGS['method']}", f"{ours['mean']:.2f} ± {ours['std']:.2f}")
    chance = "" if comparison["p"] is None else f"  (paired t-test, one-sided p = {comparison['p']:.2g})"
    table.add_row("difference", f"{comparison['difference']:+.2f}{chance}")
    return table
