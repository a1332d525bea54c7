"""Output of commands: a live table in a terminal, lines in a pipe, one JSON object with --json."""

import json
import sys
from collections.abc import Iterable
from statistics import fmean
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from bangs.utils.text import escape_controls

if TYPE_CHECKING:
    from bangs.selftraining.loop import State


class Output:
    """The output of a command on stdout: text for users, or one JSON object and nothing else."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False):
        self.as_json, self.quiet = as_json, quiet
        # names and paths may contain brackets and colons, which are not markup or emoji
        piped = sys.stdout is None or not sys.stdout.isatty()  # None if stdout was closed
        self.console = Console(markup=False, emoji=False, highlight=False, soft_wrap=piped)

    @property
    def silent(self) -> bool:
        return self.as_json or self.quiet

    def say(self, message: Any) -> None:
        """Print a message or table, unless silent."""
        if not self.silent:
            self.console.print(_escape_text(message))

    def notes(self, notes: Iterable[str]) -> None:
        """Print notes, one per line."""
        for note in notes:
            self.say(f"· {note}")

    def result(self, fact: dict[str, Any], message: Any) -> None:
        """Print the result: `fact` with --json, else the message, even with --quiet."""
        if self.as_json:
            print(json.dumps(fact, allow_nan=False))
        else:
            self.console.print(_escape_text(message))


class Rounds:
    """A table of rounds: live in a terminal, one line per round in a pipe."""

    def __init__(self, output: Output, title: str, rounds: int):
        self.output, self.title, self.rounds = output, title, rounds
        self.lines: list[dict[str, str]] = []  # cells by their headings, the same in every line
        self.live = Live(console=output.console, refresh_per_second=4, transient=False)

    def __enter__(self) -> Self:
        if self._animated:
            self.live.__enter__()
        else:
            self.output.say(self.title)
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._animated:
            self.live.__exit__(*exception)

    def __call__(self, state: "State", row: dict[str, Any]) -> None:
        has_test = "test" in row  # not in a blind run
        shares = [value for value in row.get("pseudo_accuracy", ()) if value is not None]
        cells = {
            "round": f"{row['round']}",
            "validation %": f"{100 * fmean(row['validation']):.2f}",
            "test %": f"{100 * fmean(row['test']):.2f}" if has_test else "",
            "pseudo-labels": f"{float(state.labels.adopted.sum(1).double().mean()):.0f}",
            "right %": f"{100 * fmean(shares):.1f}" if shares else "–" if has_test else "",
            "epochs": f"{fmean(row['epochs']):.0f}",
            "seconds": f"{sum(row['seconds'].values()):.2f}",
        }
        self.tell({name: cell for name, cell in cells.items() if cell})

    def tell(self, line: dict[str, str]) -> None:
        """Add a line: cells by heading."""
        self.lines.append(line)
        if self._animated:
            self.live.update(self._table())
        else:
            if len(self.lines) == 1:
                self.output.say("  ".join(f"{name:>13}" for name in line))
            self.output.say("  ".join(f"{cell:>13}" for cell in line.values()))

    @property
    def _animated(self) -> bool:
        return self.output.console.is_terminal and not self.output.silent

    def _table(self) -> Table:
        table = Table(
            title=escape_controls(self.title),
            title_justify="left",
            caption=f"round {self.lines[-1]['round']} of {self.rounds}",
        )
        narrow = self.output.console.width < sum(len(name) + 3 for name in self.lines[0]) + 1
        if narrow:  # no borders, and headings are folded to the width of the numbers
            table.box, table.padding = None, (0, 1, 0, 0)
        for name in self.lines[0]:
            widest = max(4, *(len(line[name]) for line in self.lines))
            table.add_column(name, justify="right", overflow="fold", width=widest if narrow else None)
        for line in self.lines:
            table.add_row(*line.values())
        return table


def _escape_text(message: Any) -> Any:
    return escape_controls(message) if isinstance(message, str) else message
