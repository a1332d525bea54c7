"""The folder of `bangs label`: serve its page, and run the fits that fill its queue."""

import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from bangs.cli.console import Output
from bangs.cli.fit_and_save import fit_and_save, set_by_tables
from bangs.cli.interrupts import stoppable
from bangs.cli.table_paths import FILE as TABLES
from bangs.cli.table_paths import FittedTables, read_fitted_tables
from bangs.errors import BangsError, InvalidInput
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.estimator.model_file import FILE as MODEL
from bangs.estimator.model_file import read_saved_run
from bangs.graphs.store import Store
from bangs.labelling.answers import FILE, read_answers, valid_answers
from bangs.labelling.cards import PROGRESS, QUEUE, make_cards, read_progress, read_queue, table_rows, write_queue
from bangs.labelling.refit import Refits
from bangs.labelling.server import LabelServer
from bangs.labelling.session import Session
from bangs.report.run_data import read_truth
from bangs.runs.lock import acquire, is_lock
from bangs.utils.files import explain_write_errors, make_folder
from bangs.utils.signals import Stopped, check, graceful

FIT = "fit"  # the folder of the newest fit, below the labelling folder
LOCK_TIMEOUT = 600.0  # seconds that a fit waits for one whose server was killed
_OUR_FILES = {FILE, QUEUE, PROGRESS, FIT, "lock", ".DS_Store"}


def serve(
    folder: Path, name: str, batch: int, port: int, read_only: bool, command: Sequence[str], output: Output
) -> None:
    """Serve the page until Ctrl-C or SIGTERM; fits run in another process."""
    with ExitStack() as at_end:
        if not read_only:
            make_folder(folder)
            _refuse_other_files(folder)
            at_end.callback(acquire(folder).release)
        elif not folder.is_dir():
            raise InvalidInput(f"'{folder}' is not a folder; name one that `bangs label` wrote")
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


def prepare_queue(
    folder: Path,
    tables: FittedTables,
    classifier: SelfTrainingClassifier,
    count: int,
    strategy: str | None,
    output: Output,
) -> None:
    """Fit with the labels of the graph and all answers, and write the queue of nodes to label next."""
    make_folder(folder)
    _refuse_other_files(folder)
    make_folder(folder / FIT)
    answers = read_answers(folder / FILE) if (folder / FILE).exists() else []
    if answers:
        tables = tables.also({}, folder / FILE)
    graph = tables.read()
    if isinstance(graph.data, Store):
        raise InvalidInput("a graph that stays on disk cannot be labelled on a page yet; use `bangs suggest`")
    set_by_tables(classifier, graph)
    with stoppable():
        acquire(folder / FIT, LOCK_TIMEOUT).release()  # a fit whose server was killed may still be running
        result = fit_and_save(folder / FIT, graph, classifier, tables, output, resume=False, overwrite=True)
    judged = result["validation"]
    low, high = judged["interval"] or (None, None)
    saved = read_saved_run(folder / FIT)
    truth = read_truth(folder / FIT)
    skipped = {answer.node for answer in valid_answers(answers) if answer.action == "skip"}
    exclude = (saved.snapshot.given < -1) if truth is None else truth >= 0
    for node, name in enumerate(saved.names):
        if str(name) in skipped:
            exclude[node] = True
    queue = make_cards(saved, count, strategy, exclude)
    wanted = [card["node"] for card in queue["cards"]]
    cells = table_rows(tables.path, graph.columns.role("id"), wanted)
    for card in queue["cards"]:
        card["cells"] = [list(cell) for cell in cells.get(card["node"], []) if cell[0] != graph.columns.role("label")]
    row = {
        "answers": len(valid_answers(answers)),
        "labels": int((graph.data.y >= 0).sum()) if graph.split is None else result["given"],
        "accuracy": judged["accuracy"],
        "low": low,
        "high": high,
        "judged": judged["nodes"],
    }
    write_queue(folder, queue, row)
    output.say(f"{len(wanted):,} nodes wait in {folder / QUEUE}")


def origin(graph: Path) -> tuple[FittedTables, SelfTrainingClassifier]:
    """The tables to label and the classifier for them; from a folder of `bangs fit`, both are those of the fit."""
    fit = _fit_of(graph)
    if fit is not None:
        tables, params = read_fitted_tables(fit)
        return tables, SelfTrainingClassifier(**params)
    if not graph.exists():
        raise InvalidInput(f"'{graph}' does not exist; give a folder with edges.csv and nodes.csv, or one .npz file")
    return FittedTables.of(graph, {}), SelfTrainingClassifier()


def default_folder(graph: Path) -> Path:
    """The default labelling folder: the one that the given fit belongs to, else GRAPH-labels beside the graph."""
    fit = _fit_of(graph)
    if fit is not None and (fit.parent / FILE).exists() and (fit.parent / QUEUE).exists():
        return fit.parent
    return graph.with_name(f"{graph.resolve().stem}-labels")


def _fit_of(graph: Path) -> Path | None:
    """The folder of a fit, if one or its labelling folder is given instead of tables; else None."""
    return next((path for path in (graph, graph / FIT) if (path / MODEL).exists() or (path / TABLES).exists()), None)


def _refuse_other_files(folder: Path) -> None:
    """Raise if the folder has files of other programs, also under our names; nothing has been written into it yet."""
    with explain_write_errors(folder):
        others = sorted({path.name for path in folder.iterdir() if not path.name.startswith(".")} - _OUR_FILES)
    if os.path.lexists(folder / "lock") and not is_lock(folder / "lock"):
        others.append("lock")
    if others:
        raise InvalidInput(
            f"'{folder}' holds other files (such as {others[0]!a}), and labels go to a folder of their own; "
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
            # also with --quiet: without the address the page cannot be opened
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
