"""The command line: `bangs COMMAND`; each command has a file of its own."""

import sys

import typer

from bangs.cli import convert, demo, explain, figure, fit, listing, predict, report, reproduce, run, table
from bangs.errors import BangsError, ran_out_of_memory

app = typer.Typer(
    name="bangs",
    help="Graph self-training: few labels in, calibrated predictions and a reason for every pseudo-label out.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("fit")(fit.fit)
app.command("predict")(predict.predict)
app.command("explain")(explain.explain)
app.command("report")(report.report)
app.command("run")(run.run)
app.command("convert")(convert.convert)
app.command("reproduce")(reproduce.reproduce)
app.command("table")(table.table)
app.command("figure")(figure.figure)
app.command("list")(listing.listing)


def main() -> None:
    """The console script: a user's mistake is one sentence and exit code 2, never a traceback."""
    try:
        app()
    except BangsError as error:
        print(f"bangs: {error}", file=sys.stderr)
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
        way = "lower --seeds (runs trained at once), --candidates or the model's size, or use another --device"
        print(f"bangs: memory ran out; {way}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("bangs: interrupted", file=sys.stderr)
        sys.exit(130)
