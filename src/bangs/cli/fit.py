"""`bangs fit`: fit a model on the user's tables, and write predictions with reasons."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bangs.cli import options
from bangs.cli.console import Output
from bangs.cli.interrupts import command_line, stoppable
from bangs.cli.parsing import parse_fanout
from bangs.selftraining.defaults import FIT_HARD_ROUNDS, FIT_SOFT_ROUNDS, TEACHER
from bangs.utils.limits import MAX_COUNT


@options.reads_tables(options.TABLES)
def fit(
    graph: Annotated[
        Path,
        typer.Argument(
            help="a folder with edges.csv and nodes.csv (or .tsv, .parquet), one .npz, or a store of any size"
        ),
    ],
    out: Annotated[Path, typer.Option(help="the folder to write")],
    tables: dict[str, Any],
    labels: Annotated[
        Path | None,
        typer.Option(
            help="the labels.csv of `bangs label`: its labels are added to those of the tables",
            rich_help_panel="Tables",
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            help="how numbers are scaled: standard, none, or auto (standard, except 0/1, small counts and many "
            "columns of one unit, such as embeddings)",
            rich_help_panel="Tables",
        ),
    ] = "auto",
    model: Annotated[
        str, typer.Option(help="auto (several kinds, averaged), or a name from `bangs list models`")
    ] = "auto",
    method: Annotated[
        str,
        typer.Option(
            help="how nodes without a label are used: auto, soft, soft-aligned, bangs-soft, hard (the paper's way: "
            "a few nodes in each round), raw (not at all)"
        ),
    ] = "auto",
    features: Annotated[
        str,
        typer.Option(help="what a model sees of a node: auto, features, structure (its position in the graph) or both"),
    ] = "auto",
    class_weight: Annotated[
        str,
        typer.Option(
            help="what counts alike: balanced (all classes), none (all labels), or auto (balanced, unless uneven "
            "labels look like a random sample of the nodes)"
        ),
    ] = "auto",
    folds: Annotated[
        int | None,
        typer.Option(help="folds of cross-validation: each tests a model that learned from the others; 4 if left out"),
    ] = None,
    time_limit: options.TimeLimit = None,
    selector: Annotated[
        str | None,
        typer.Option(
            help="with --method hard, how nodes are chosen: banzhaf (if left out), confidence, agreement or random"
        ),
    ] = None,
    calibrator: options.Calibrator = "proven",
    k: Annotated[
        int | None,
        typer.Option(
            help="with --method hard, nodes labelled in a round; if left out, half of the nodes over all rounds, at "
            "most 100 in each"
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help=f"maximum number of rounds of self-training; if left out {FIT_SOFT_ROUNDS}, or {FIT_HARD_ROUNDS} with "
            "--method hard"
        ),
    ] = None,
    teacher: options.Teacher = TEACHER,
    validation: Annotated[
        float | None, typer.Option(help="no folds: every model is trained once and tested on this share of the labels")
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_COUNT, help="maximum number of epochs of a neural network; 300 if left out"),
    ] = None,
    batch_size: options.BatchSize = None,
    fanout: options.Fanout = None,
    seed: Annotated[int, typer.Option(help="the same seed gives the same result")] = 0,
    device: options.Device = "auto",
    resume: options.Resume = False,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Label your own graph: read two tables, train, and write predictions, reasons, a model and a report page.

    Example: bangs fit examples/own-graph --out out/library
    """
    arguments = locals()
    from bangs.cli.fit_and_save import fit_and_save, set_by_tables
    from bangs.cli.fit_messages import final_summary
    from bangs.cli.table_paths import FittedTables
    from bangs.estimator.classifier import SelfTrainingClassifier
    from bangs.graphs.store import Store
    from bangs.training.neighbour_sampling import sampling
    from bangs.utils.setting_checks import check_name

    check_name("class weight", class_weight, ("auto", "balanced", "none"))
    output = Output(as_json=as_json, quiet=quiet)
    settings = {name: arguments[name] for name in SelfTrainingClassifier().get_params(deep=False) if name in arguments}
    settings["class_weight"] = None if class_weight == "none" else class_weight
    batches = sampling(batch_size, parse_fanout(fanout))
    classifier = SelfTrainingClassifier(**settings, batches=batches, random_state=seed)
    candidates = classifier.build_candidates()  # raises on a wrong setting before anything is read
    fitted_tables = FittedTables.of(
        graph,
        {**tables, "scale": scale, "two_labels": validation is not None, "seed": seed},
        *([] if labels is None else [labels]),
    )
    own_graph = fitted_tables.read()
    set_by_tables(classifier, own_graph)
    output.notes(own_graph.notes)
    if own_graph.columns.weighted and not all(getattr(one.trainer.model, "weighted", True) for one in candidates):
        output.say(f"· {model} ignores edge weights; only the choice of nodes uses them")
    if isinstance(own_graph.data, Store):
        # raises before anything is written if a store is not supported
        needed = classifier.build_candidates(store=own_graph.data)[0].trainer.batches
        if batches is None and needed is not None:
            classifier.set_params(batches=needed)
            hops = " and ".join("all" if bound < 0 else f"{bound:,}" for bound in needed.fanout)
            output.say(
                f"· trained from the disk in batches of {needed.size:,} labelled nodes, which see {hops} neighbours; "
                "--batch-size and --fanout say otherwise"
            )
    with stoppable(command_line("--resume")):
        done = fit_and_save(out, own_graph, classifier, fitted_tables, output, resume=resume, overwrite=overwrite)
    output.result({**done, "out": out.name}, final_summary(done, out))
