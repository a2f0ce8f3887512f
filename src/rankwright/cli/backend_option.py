"""The option --backend: where the work of a fit runs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rankwright.runtime.backends import Backend

BackendOption = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE",
        help="Where the work runs: serial, threads:N, or the address of a Dask scheduler, such as "
        "tcp://scheduler:8786 (default: threads on all cores).",
    ),
]
_LOGGERS = (
    *("distributed", "distributed.client", "distributed.core", "distributed.comm"),
    *("tornado", "tornado.application", "asyncio"),
)


def parse_backend(text: str | None) -> Backend | None:
    """Return the backend that the option describes, connected to if it is a cluster; None without the option."""
    from rankwright.basics.errors import InputError
    from rankwright.runtime.backends import Serial, Threads
    from rankwright.runtime.dask_backend import Dask

    kind, colon, rest = (text or "").partition(":")
    if text is None:
        return None
    if text == "serial":
        return Serial()
    if kind == "threads" and rest.isdecimal():
        return Threads(int(rest))
    if colon and rest.startswith("//"):
        silence_dask()
        return Dask(text).connect()
    raise InputError(f"--backend {text}: expected serial, threads:N, or an address such as tcp://scheduler:8786")


def silence_dask() -> None:
    """Keep the logs of Dask's connections from the terminal: errors are printed in one line."""
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
