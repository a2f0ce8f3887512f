"""The command line application: errors, warnings, progress, and options that commands share."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer

from rankwright.cli.output import replace_unencodable_characters

if TYPE_CHECKING:
    from rankwright.rankers import Ranker

app = typer.Typer(
    name="rankwright",
    help="Train rankers on the measure they are judged by.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

MeasureOption = Annotated[
    str, typer.Option(help="The measure to optimise and select by, such as ndcg@10, map or err@20.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


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
    try:
        command = typer.main.get_command(app)
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
            print_error(message)


@contextmanager
def _print_log() -> Iterator[None]:
    """Print what the library logs within this context, such as the columns that it chose, on standard error."""
    logger, handler = logging.getLogger("rankwright"), _LineHandler()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _format_error(error: Exception) -> str | None:
    """Return one line of text for an error that the user can correct; None for a bug."""
    if hasattr(error, "format_message"):  # the argument parser's own errors
        context = getattr(error, "ctx", None)
        return f"{error.format_message()} (see {context.command_path if context else 'rankwright'} --help)"
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    if type(error) is ImportError:  # a missing extra; a broken installation is a ModuleNotFoundError
        return str(error)
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}"
    from rankwright.basics.errors import InputError

    return str(error) if isinstance(error, InputError) else None


def print_error(message: str) -> None:
    """Print a message as one line on standard error, after ``rankwright:``, with control characters escaped."""
    from rankwright.basics.errors import make_printable

    print("rankwright: " + make_printable(" ".join(message.split())), file=sys.stderr)


def print_json(value: Any) -> None:
    """Print a value as JSON on one line."""
    from rankwright.models.model import to_json_value

    print(json.dumps(to_json_value(value), allow_nan=False))


@contextmanager
def progress_bar() -> Iterator[None]:
    """Show a progress bar for the work within this context, if the output is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from rankwright.basics import progress

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks and done < total:
                tasks[what] = bar.add_task(what, total=total)
            if done < total:
                bar.update(tasks[what], completed=done, total=total)
            elif what in tasks:
                bar.remove_task(tasks.pop(what))

        with progress.listen(show):
            yield


def get_command_name() -> str:
    """Return the command that runs this program: the path it was called by, or ``PYTHON -m rankwright``."""
    called = Path(sys.argv[0])
    return str(called) if called.name == "rankwright" else f"{sys.executable} -m rankwright"


def list_parameters(ranker: type[Ranker]) -> dict[str, Any]:
    """Return the names of a ranker's parameters with their default values."""
    return dict(ranker().get_params(deep=False))
