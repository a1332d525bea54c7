"""Reproduce: do all runs of some suites, each once, and export their rows to one file."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bangs.errors import InvalidInput, UnknownName
from bangs.experiments.jobs import Job, Outcome
from bangs.experiments.process_workers import Engine, InProcess, Tell
from bangs.experiments.results import ASKED, ASKED_BEGIN, ROWS, json_lines, requested, results_in, rows_in, rows_in_file
from bangs.experiments.suites.files import suite_path, suite_text
from bangs.experiments.suites.read import read_suite
from bangs.experiments.suites.suite import Suite
from bangs.experiments.user_code import run_code
from bangs.utils.files import check_replaceable, make_folder, write_atomic
from bangs.utils.text import plain_name


@dataclass(frozen=True)
class Only:
    """The part of a suite to run; None = all of it."""

    datasets: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    models: Sequence[str] | None = None
    seeds: Sequence[int] | None = None

    @property
    def wanted(self) -> dict[str, Sequence[str] | None]:
        """The values of each setting."""
        return {"dataset": self.datasets, "method": self.methods, "model": self.models}

    def check(self, suites: Sequence[Suite]) -> None:
        """Refuse names that none of the suites has."""
        for setting, names in self.wanted.items():
            known = set().union(*(suite.values(setting) for suite in suites))
            for name in names or ():
                if plain_name(name) not in known:
                    raise UnknownName(f"{setting} of {', '.join(suite.name for suite in suites)}", name, known)


@dataclass(frozen=True)
class Plan:
    """The runs of some suites, in a folder that keeps them."""

    out: Path
    suites: tuple[Suite, ...]
    jobs: tuple[Job, ...]
    files: tuple[Path, ...] = field(repr=False, default=())  # of the suites
    known: frozenset[str] = frozenset()  # runs that need not be done: their rows are elsewhere
    elsewhere: Path | None = None  # the folder or file of those rows

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
        """The plan of suites by name or file; a run that is in two suites is done once.

        Runs of which `known`, a folder or file of exported rows, has the results are not done again. A file of `code`
        is run first, here and wherever a job is done.
        """
        if code is not None:
            run_code(code)
        only = only or Only()
        files = tuple(suite_path(name) for name in names)
        _check_names(files)
        suites = tuple(read_suite(path, data) for path in files)
        only.check(suites)
        cells = [(cell, suite.blind) for suite in suites for cell in suite.cells(only.wanted, only.seeds)]
        if not cells:
            raise InvalidInput("no run has all that --datasets, --methods and --models ask for; ask for less at a time")
        jobs: dict[str, Job] = {}
        for cell, blind in cells:
            job = Job(cell.experiment, out / "runs", data, device, code, blind)
            if job.name not in jobs or not blind:  # a run that any suite wants open is open
                jobs[job.name] = job
        found = () if known is None else results_in(known)
        runs = frozenset(result.run for result in found if result.rows)
        return cls(out, suites, tuple(jobs.values()), files, runs, known)

    def left(self) -> list[Job]:
        """The runs that are not finished."""
        return [job for job in self.jobs if job.name not in self.known and not job.done]

    def do(self, engine: Engine, tell: Tell) -> None:
        """Do what is left; the folder keeps the suites and the names of the runs, so that it alone makes a table."""
        kept = {self.out / "suites" / f"{path.stem}.toml": suite_text(path) for path in self.files}
        self._refuse_strangers(kept)
        make_folder(self.out / "suites")
        for place, text in kept.items():
            write_atomic(place, text)
        names = dict.fromkeys(job.name for job in self.jobs)
        former = [name for name in requested(self.out) if name not in names]
        write_atomic(self.out / ASKED, "".join(f"{name}\n" for name in [*former, *names]))
        engine(self.left(), tell)

    def _refuse_strangers(self, kept: Mapping[Path, str]) -> None:
        """Raise where the folder has files of others under our names; it is ours if it lists our runs."""
        check_replaceable(self.out / ASKED, ASKED_BEGIN, "reproduce")
        if (self.out / ASKED).exists():
            return
        for place, text in kept.items():
            if os.path.lexists(place) and suite_text(place) != text:
                raise InvalidInput(
                    f"'{place}' exists and is another suite than the one asked for; move it away, or choose another "
                    "folder with --out"
                )

    def export(self, path: Path, *, complete: bool = True) -> int:
        """Write the rows of all runs that ended, well or not, to one file; returns how many rows there are.

        The file's earlier rows of other runs stay if the runs are not `complete`, since some were stopped or failed,
        or if the file is one by which runs are known. Earlier scores of a run that now failed stay too.
        """
        rows = [row for job in self.jobs for row in rows_in(job.folder)]
        check_export(path)
        if not complete or (
            self.elsewhere is not None and self.elsewhere.resolve() in (path.resolve(), path.resolve().parent)
        ):
            here = {row["run"] for row in rows if "error" not in row}
            earlier = [row for row in (rows_in_file(path) if path.exists() else ()) if row["run"] not in here]
            scored = {row["run"] for row in earlier if "error" not in row}
            failed = {row["run"] for row in rows if "error" in row} - scored
            earlier = [row for row in earlier if row["run"] not in failed]
            rows = earlier + [row for row in rows if row["run"] not in scored]
        if rows or not path.exists():
            make_folder(path.parent)
            write_atomic(path, json_lines(rows))
        return len(rows)


def check_export(path: Path) -> None:
    """Raise if an export to the path would replace a file that is no export."""
    check_replaceable(path, ROWS, "reproduce --export")


def _check_names(files: Sequence[Path]) -> None:
    """Refuse two files that the folder could not keep both, as they have one name."""
    named: dict[str, Path] = {}
    for path in files:
        if (other := named.setdefault(path.stem, path)).resolve() != path.resolve():
            raise InvalidInput(f"two suites are called '{path.stem}', {other} and {path}; rename one of the files")


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
    """Do all runs of the suites one after the other, from a script; what went wrong, a sentence each.

    The rows are exported after every run, so that whatever ends the process, they are there.
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
