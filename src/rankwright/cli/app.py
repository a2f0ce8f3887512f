"""The command line application: errors, warnings, progress, and options that commands share."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer

from rankwright.basics.version import __version__
from rankwright.cli.metavars import set_metavars, simplify_argument
from rankwright.cli.output import replace_unencodable_characters

if TYPE_CHECKING:
    from rankwright.rankers import Ranker

app = typer.Typer(
    name="rankwright",
    help="Train rankers on the measure they are judged by.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

MeasureOption = Annotated[
    str, typer.Option(metavar="MEASURE", help="The measure to optimise and select by, such as ndcg@10, map or err@20.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_PERIOD = 600.0  # seconds, from whose steps the time left is estimated
_is_quiet: ContextVar[bool] = ContextVar("_is_quiet", default=False)


def _print_version(is_asked: bool) -> None:
    """Print the version and end the program, if that is asked for."""
    if is_asked:
        print(f"rankwright {__version__}")
        raise typer.Exit


def _silence(is_asked: bool) -> None:
    """Print no notes and no progress bars from here on, if that is asked for."""
    if is_asked:
        _is_quiet.set(True)


@app.callback()
def _take_common_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            callback=_silence,
            expose_value=False,
            help="Print no notes and no progress bars; warnings and errors remain.",
        ),
    ] = False,
) -> None:
    """Train rankers on the measure they are judged by."""


def make_command() -> Any:
    """Return the parser of the command line: every command takes --quiet, and metavars say what a value is."""
    for each in app.registered_commands:
        if each.callback is not None:
            set_metavars(each.callback)
    group: Any = typer.main.get_command(app)
    quiet = next(each for each in group.params if each.name == "quiet")
    for command in group.commands.values():
        command.params.append(quiet)
        for param in command.params:
            if param.param_type_name == "argument":
                simplify_argument(param)
    return group


class _EscapedOutput:
    """A standard output that escapes control characters, because names in files may contain them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        from rankwright.basics.errors import make_printable

        self._stream.write(make_printable(text, keep="\n\t"))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit status; for wrong input, print one line on standard error and return 2."""
    replace_unencodable_characters()
    before = _is_quiet.set(False)
    try:
        command = make_command()
        with _print_warnings_as_lines(), _print_log(), redirect_stdout(cast(TextIO, _EscapedOutput(sys.stdout))):
            # without arguments it prints the help; an interruption returns status 130
            result = command.main(args=list(arguments) or ["--help"], prog_name="rankwright", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except Exception as error:
        message = _format_error(error)
        if message is None:
            raise
        print_error(message)
        return 2
    finally:
        _is_quiet.reset(before)


@contextmanager
def _print_warnings_as_lines() -> Iterator[None]:
    """Print each warning that is issued within this context as one line on standard error."""

    def show(message: Warning | str, *rest: Any, **others: Any) -> None:
        print_error(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        if not sys.warnoptions:
            warnings.simplefilter(
                "default", UserWarning
            )  # those of Rankwright and scikit-learn, whatever the caller's filters
        yield


class _LineHandler(logging.Handler):
    """A log handler that prints each message once, as a line on standard error."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in self._printed:
            self._printed.add(message)
            print_note(message)


@contextmanager
def _print_log() -> Iterator[None]:
    """Print what the library logs within this context, such as the columns that it chose, on standard error."""
    logger, rounds = logging.getLogger("rankwright"), logging.getLogger("rankwright.training")
    handler, levels = _LineHandler(), (logger.level, rounds.level)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    rounds.setLevel(logging.WARNING)  # the progress bar shows the rounds
    try:
        yield
    finally:
        logger.removeHandler(handler)
        for each, level in zip((logger, rounds), levels, strict=True):
            each.setLevel(level)


def _format_error(error: Exception) -> str | None:
    """Return one line of text for an error that the user can correct; None for a bug."""
    if hasattr(error, "format_message"):  # the argument parser's own errors
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "rankwright"
        return f"{error.format_message().removesuffix('.')}{_suggest_parameter(error)} (see {command} --help)"
    if isinstance(error, FileExistsError | NotADirectoryError) and error.filename:
        return f"{error.filename}: a file; expected a folder, which may be new"
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    if type(error) is ImportError:  # a missing extra; a broken installation is a ModuleNotFoundError
        return str(error)
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}"
    from rankwright.basics.errors import InputError

    return str(error) if isinstance(error, InputError) else None


def _suggest_parameter(error: Exception) -> str:
    """Return a hint if an option that is not there is the name of a ranker's parameter; else nothing."""
    name = str(getattr(error, "option_name", "")).lstrip("-").replace("-", "_")
    command: Any = getattr(getattr(error, "ctx", None), "command", None)
    if not name or command is None or not any("--set" in each.opts for each in command.params):
        return ""
    from rankwright.rankers import RANKERS

    is_parameter = any(name in list_parameters(each) for each in RANKERS)
    return f"; a parameter of a ranker is given by --set {name}=VALUE" if is_parameter else ""


def print_error(message: str) -> None:
    """Print a message as one line on standard error, after ``rankwright:``, with control characters escaped."""
    from rankwright.basics.errors import make_printable

    print("rankwright: " + make_printable(" ".join(message.split())), file=sys.stderr)


def print_note(message: str) -> None:
    """Print a message as :func:`print_error` does, unless the command line has --quiet."""
    if not _is_quiet.get():
        print_error(message)


def print_json(value: Any) -> None:
    """Print a value as JSON on one line."""
    from rankwright.models.model import to_json_value

    print(json.dumps(to_json_value(value), allow_nan=False))


class ProgressBar:
    """A progress bar on a terminal: a line for each kind of work, its time and the time left, and values beside it.

    Parameters
    ----------
    bar : rich.progress.Progress
        The lines.
    """

    def __init__(self, bar: Any) -> None:
        self._bar, self._tasks, self._note = bar, dict[str, Any](), ""

    def show_progress(self, what: str, done: int, total: int) -> None:
        """Show how much of some work is done, as a listener of progress."""
        if what not in self._tasks and done < total:
            self._tasks[what] = self._bar.add_task(what, total=total, note=self._note)
        if done < total:
            self._bar.update(self._tasks[what], completed=done, total=total)
        elif what in self._tasks:
            self._bar.remove_task(self._tasks.pop(what))

    def show_values(self, row: Mapping[str, Any]) -> None:
        """Show the loss and the measure of a round."""
        from rankwright.rankers.training_display import SHOWN, format_round

        self.show_note(format_round(row, SHOWN))

    def show_note(self, note: str) -> None:
        """Show a note beside all work."""
        self._note = note
        for task in self._tasks.values():
            self._bar.update(task, note=note)


@contextmanager
def progress_bar() -> Iterator[ProgressBar | None]:
    """Show a progress bar for the work within this context, on a terminal and without --quiet; else yield None."""
    if _is_quiet.get() or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from rankwright.basics import progress

    times = TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()
    note = TextColumn("{task.fields[note]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *times, note)
    # one step may take minutes, and the time left is estimated from several
    with Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=_PERIOD) as bar:
        shown = ProgressBar(bar)
        with progress.listen(shown.show_progress):
            yield shown


def get_command_name() -> str:
    """Return the command that runs this program: the path it was called by, or ``PYTHON -m rankwright``."""
    called = Path(sys.argv[0])
    return str(called) if called.name == "rankwright" else f"{sys.executable} -m rankwright"


def list_parameters(ranker: type[Ranker]) -> dict[str, Any]:
    """Return the names of a ranker's parameters with their default values."""
    return dict(ranker().get_params(deep=False))
