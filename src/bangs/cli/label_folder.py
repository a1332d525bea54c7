"""A labelling folder: the page that is served from it, and the fits that fill its queue."""

import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bangs.cli.console import Output
from bangs.cli.fit_folder import fit_in, set_by_tables
from bangs.cli.fitted_tables import FILE as TABLES
from bangs.cli.fitted_tables import FittedTables, read_fitted_tables
from bangs.cli.interrupts import stoppable
from bangs.errors import BangsError, InvalidInput
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.estimator.model_file import FILE as MODEL
from bangs.estimator.saved_run import read_saved_run
from bangs.graphs.store import Store
from bangs.labelling.answers import FILE, read_answers, standing
from bangs.labelling.cards import PROGRESS, QUEUE, make_cards, read_progress, read_queue, table_rows, write_queue
from bangs.labelling.refit import Refits
from bangs.labelling.server import LabelServer
from bangs.labelling.session import Session
from bangs.report.run_data import read_truth
from bangs.runs.lock import Lock, acquire, is_lock
from bangs.utils.files import explain_write_errors, make_folder
from bangs.utils.signals import Stopped, check, graceful

FIT = "fit"  # the folder of the newest fit, below the labelling folder
PATIENCE = 600.0  # seconds that a fit waits for one that was left behind
_OURS = {FILE, QUEUE, PROGRESS, FIT, "lock", ".DS_Store"}


def serve(
    folder: Path, name: str, batch: int, port: int, read_only: bool, command: Sequence[str], output: Output
) -> None:
    """Serve the page until Ctrl-C or SIGTERM; fits run beside it."""
    lock = _held(folder, read_only)
    try:
        session = Session(folder, batch=batch, read_only=read_only)
        refits = Refits(command, session, lambda words: print(f"bangs: {words}", file=sys.stderr, flush=True))
        server = LabelServer(session, name, port)
        if not read_only:
            session.refit = refits
            if read_queue(folder) is None or session.waiting >= batch:
                refits()
        _until_stopped(server, output)
        refits.close()
        session.close()
        output.say(f"{session.state()['labelled']:,} answers in {folder / FILE}; the newest fit is in {folder / FIT}")
    finally:
        if lock is not None:
            lock.release()


def prepare_queue(
    folder: Path,
    tables: FittedTables,
    learner: SelfTrainingClassifier,
    count: int,
    strategy: str | None,
    output: Output,
) -> None:
    """Fit with the labels of the graph and all answers, and write the queue of nodes to label next."""
    make_folder(folder)
    _refuse_strangers(folder)
    make_folder(folder / FIT)
    answers = read_answers(folder / FILE) if (folder / FILE).exists() else []
    if answers:
        tables = tables.also({}, folder / FILE)
    own = tables.read()
    if isinstance(own.data, Store):
        raise InvalidInput("a graph that stays on disk cannot be labelled on a page yet; use `bangs suggest`")
    set_by_tables(learner, own)
    with stoppable():
        acquire(folder / FIT, PATIENCE).release()  # a fit whose server was killed may still be at work
        done = fit_in(folder / FIT, own, learner, tables, output, resume=False, overwrite=True)
    judged = done["validation"]
    low, high = judged["interval"] or (None, None)
    saved = read_saved_run(folder / FIT)
    truth = read_truth(folder / FIT)
    skipped = {answer.node for answer in standing(answers) if answer.action == "skip"}
    exclude = (saved.snapshot.given < -1) if truth is None else truth >= 0
    for node, name in enumerate(saved.names):
        if str(name) in skipped:
            exclude[node] = True
    queue = make_cards(saved, count, strategy, exclude)
    wanted = [card["node"] for card in queue["cards"]]
    cells = table_rows(tables.path, own.columns.role("id"), wanted)
    for card in queue["cards"]:
        card["cells"] = [list(cell) for cell in cells.get(card["node"], []) if cell[0] != own.columns.role("label")]
    row = {
        "answers": len(standing(answers)),
        "labels": int((own.data.y >= 0).sum()) if own.split is None else done["given"],
        "accuracy": judged["accuracy"],
        "low": low,
        "high": high,
        "judged": judged["nodes"],
    }
    write_queue(folder, queue, row)
    output.say(f"{len(wanted):,} nodes wait in {folder / QUEUE}")


def origin(graph: Path) -> tuple[FittedTables, SelfTrainingClassifier]:
    """The tables to label, and how they are fitted: as in a fit that is given in their place."""
    fit = _fit_of(graph)
    if fit is not None:
        tables, params = read_fitted_tables(fit)
        return tables, SelfTrainingClassifier(**params)
    if not graph.exists():
        raise InvalidInput(f"'{graph}' does not exist; give a folder with edges.csv and nodes.csv, or one .npz file")
    return FittedTables.of(graph, {}), SelfTrainingClassifier()


def default_folder(graph: Path) -> Path:
    """Where labels go if none is given: the folder a fit is the newest of, else GRAPH-labels beside the graph."""
    fit = _fit_of(graph)
    if fit is not None and (fit.parent / FILE).exists() and (fit.parent / QUEUE).exists():
        return fit.parent
    return graph.with_name(f"{graph.resolve().stem}-labels")


def _fit_of(graph: Path) -> Path | None:
    """The folder of the fit that is given in place of tables, itself or as that of its labelling; else None."""
    return next((own for own in (graph, graph / FIT) if any((own / name).exists() for name in (MODEL, TABLES))), None)


def _held(folder: Path, read_only: bool) -> Lock | None:
    """The lock of the folder, which is made if it is not there; None for a look."""
    if read_only:
        if not folder.is_dir():
            raise InvalidInput(f"'{folder}' is not a folder; name one that `bangs label` wrote")
        return None
    make_folder(folder)
    _refuse_strangers(folder)
    return acquire(folder)


def _refuse_strangers(folder: Path) -> None:
    """Refuse a folder with files of others, also under our names, before anything is written into it."""
    with explain_write_errors(folder):
        strangers = sorted({path.name for path in folder.iterdir() if not path.name.startswith(".")} - _OURS)
    if os.path.lexists(folder / "lock") and not is_lock(folder / "lock"):
        strangers.append("lock")
    if strangers:
        raise InvalidInput(
            f"'{folder}' holds other files (such as {strangers[0]!a}), and labels go to a folder of their own; "
            "choose another with --out"
        )
    if (folder / FILE).exists() and (folder / FILE).stat().st_size:
        read_answers(folder / FILE)
    read_queue(folder)
    read_progress(folder)


def _until_stopped(server: LabelServer, output: Output) -> None:
    """Answer requests until a signal comes."""
    worker = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    with suppress(Stopped), graceful():
        worker.start()
        try:
            # to stdout even if quiet: without the address there is no page
            print(f"open {server.address}", flush=True)
            output.say("only this computer can open it; Ctrl-C ends it, and nothing is lost")
            while True:
                check()
                time.sleep(0.1)
        finally:
            with suppress(BangsError):
                server.shutdown()
                server.server_close()
            worker.join(5)
            sys.stdout.flush()
