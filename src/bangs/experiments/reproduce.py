"""Reproduce: run all experiments of some suites, each once, and export their rows to one file."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bangs.errors import InvalidInput, UnknownName
from bangs.experiments.jobs import Job, Outcome
from bangs.experiments.process_workers import Engine, InProcess, Tell
from bangs.experiments.results import (
    ROWS_FILE_START,
    RUN_LIST,
    RUN_LIST_START,
    json_lines,
    requested,
    results_in,
    rows_in,
    rows_in_file,
)
from bangs.experiments.suites.find_suite import suite_path, suite_text
from bangs.experiments.suites.read_suite import read_suite
from bangs.experiments.suites.suite import Suite
from bangs.experiments.user_code import run_code
from bangs.utils.files import check_replaceable, make_folder, write_atomic
from bangs.utils.text import plain_name


@dataclass(frozen=True)
class Only:
    """The part of the suites to run; None = all."""

    datasets: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    models: Sequence[str] | None = None
    seeds: Sequence[int] | None = None

    @property
    def wanted(self) -> dict[str, Sequence[str] | None]:
        """The wanted values by setting."""
        return {"dataset": self.datasets, "method": self.methods, "model": self.models}

    def check(self, suites: Sequence[Suite]) -> None:
        """Raise if none of the suites has a name."""
        for setting, names in self.wanted.items():
            known = set().union(*(suite.values(setting) for suite in suites))
            for name in names or ():
                if plain_name(name) not in known:
                    raise UnknownName(f"{setting} of {', '.join(suite.name for suite in suites)}", name, known)


@dataclass(frozen=True)
class Plan:
    """The runs of some suites, and the folder for them."""

    out: Path
    suites: tuple[Suite, ...]
    jobs: tuple[Job, ...]
    files: tuple[Path, ...] = field(repr=False, default=())  # of the suites
    known: frozenset[str] = frozenset()  # names of runs that `known_path` has rows of; they are not run
    known_path: Path | None = None  # a folder or file of exported rows

    @classmethod
    def of(
        cls,
        names: Iterable[str],
        out: Path,
        only: Only | None = None,
        data: Path | None = None,
        device: str = "auto",
        known: Path | None = None,
        code: Path | None = None,
    ) -> "Plan":
        """The plan for suites, given by name or file; a run that is in two suites is run once.

        Runs with results in `known`, a folder or file of exported rows, are not run again. The Python file `code` is
        run first, here and in every worker.
        """
        if code is not None:
            run_code(code)
        only = only or Only()
        files = tuple(suite_path(name) for name in names)
        by_name: dict[str, Path] = {}
        for path in files:
            if (other := by_name.setdefault(path.stem, path)).resolve() != path.resolve():
                raise InvalidInput(f"two suites are called '{path.stem}', {other} and {path}; rename one of the files")
        suites = tuple(read_suite(path, data) for path in files)
        only.check(suites)
        cells = [(cell, suite.blind) for suite in suites for cell in suite.cells(only.wanted, only.seeds)]
        if not cells:
            raise InvalidInput("no run has all that --datasets, --methods and --models ask for; ask for less at a time")
        jobs: dict[str, Job] = {}
        for cell, blind in cells:
            job = Job(cell.experiment, out / "runs", data, device, code, blind)
            if job.name not in jobs or not blind:  # a run is blind only if all its suites are
                jobs[job.name] = job
        known_results = () if known is None else results_in(known)
        known_runs = frozenset(result.run for result in known_results if result.rows)
        return cls(out, suites, tuple(jobs.values()), files, known_runs, known)

    def left(self) -> list[Job]:
        """The jobs that are not finished."""
        return [job for job in self.jobs if job.name not in self.known and not job.done]

    def do(self, engine: Engine, tell: Tell) -> None:
        """Run all jobs that are left, and save the suites and the run names, so that the folder alone makes a table."""
        suite_texts = {self.out / "suites" / f"{path.stem}.toml": suite_text(path) for path in self.files}
        check_replaceable(self.out / RUN_LIST, RUN_LIST_START, "reproduce")
        is_ours = (self.out / RUN_LIST).exists()
        for path, text in suite_texts.items():
            if not is_ours and os.path.lexists(path) and suite_text(path) != text:
                raise InvalidInput(
                    f"'{path}' exists and is another suite than the one asked for; move it away, or choose another "
                    "folder with --out"
                )
        make_folder(self.out / "suites")
        for path, text in suite_texts.items():
            write_atomic(path, text)
        names = dict.fromkeys(job.name for job in self.jobs)
        earlier = [name for name in requested(self.out) if name not in names]
        write_atomic(self.out / RUN_LIST, "".join(f"{name}\n" for name in [*earlier, *names]))
        engine(self.left(), tell)

    def export(self, path: Path, *, complete: bool = True) -> int:
        """Write the rows of all finished and failed runs to one file; returns the number of rows.

        Rows of other runs stay in the file if the runs are not `complete` (some were stopped or failed), or if `known`
        includes the file. Earlier scores of a run that now failed stay too.
        """
        rows = [row for job in self.jobs for row in rows_in(job.folder)]
        check_export(path)
        if not complete or (
            self.known_path is not None and self.known_path.resolve() in (path.resolve(), path.resolve().parent)
        ):
            earlier = list(rows_in_file(path)) if path.exists() else []
            scored = {row["run"] for row in earlier if "error" not in row}
            rows = [row for row in rows if "error" not in row or row["run"] not in scored]
            replaced = {row["run"] for row in rows}
            rows = [*(row for row in earlier if row["run"] not in replaced), *rows]
        if rows or not path.exists():
            make_folder(path.parent)
            write_atomic(path, json_lines(rows))
        return len(rows)


def check_export(path: Path) -> None:
    """Raise if an export would replace a file that is not an export."""
    check_replaceable(path, ROWS_FILE_START, "reproduce --export")


def reproduce(
    suites: str | Sequence[str],
    out: str | Path,
    export: str | Path | None = None,
    only: Only | None = None,
    data: str | Path | None = None,
    device: str = "auto",
    known: str | Path | None = None,
    say: Callable[[str], None] = print,
) -> list[str]:
    """Run all experiments of the suites one after the other; returns one message per failed run.

    The rows are exported after every run, so that they survive a crash.
    """
    names = [suites] if isinstance(suites, str) else suites
    plan = Plan.of(
        names, Path(out), only, None if data is None else Path(data), device, None if known is None else Path(known)
    )
    failures: list[str] = []

    def tell(job: Job, outcome: Outcome) -> None:
        say(f"{job.describe()}: {outcome.error or f'{outcome.seconds:.1f} s'}")
        if outcome.kind == "failed":
            failures.append(f"{job.describe()}: {outcome.error}")
        if export is not None:
            plan.export(Path(export), complete=False)

    if export is not None:
        check_export(Path(export))
    plan.do(InProcess(), tell)
    if export is not None:
        plan.export(Path(export), complete=not failures)
    return failures
