"""Calls of a function on all parts of a data set on the workers, repeated where workers die."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any, TypeVar

from rankwright.basics.errors import InputError
from rankwright.basics.optional_imports import require
from rankwright.runtime.backends import BLOCKS_TOGETHER, Shards, enter_pool, sum_in_blocks
from rankwright.runtime.dask_groups import CallResults, Group, Message, list_groups, make_group, restore_groups
from rankwright.runtime.dask_session import ATTEMPTS
from rankwright.runtime.workers.base import WorkersLostError

R = TypeVar("R")


def start_call(fn: Callable[..., Any], shards: Shards[Any], arguments: Sequence[Any], n_summed: int = 1) -> list[Group]:
    """Begin to call a function on every part; arguments that are shards give it their corresponding parts.

    With ``n_summed`` the results of so many neighbours are added up on their worker.
    """
    of_shards = [position for position, argument in enumerate(arguments) if isinstance(argument, Shards)]
    plain = [None if isinstance(argument, Shards) else argument for argument in arguments]
    columns = [list_groups(each) for each in (shards, *(arguments[position] for position in of_shards))]
    if len({tuple(group.recipe.n_parts for group in column) for column in columns}) > 1:
        raise ValueError("shards that were cut differently cannot be used together")
    session = columns[0][0].session
    message = Message(pack(fn, plain, of_shards, n_summed))
    rows = zip(*columns, strict=True)
    groups = [
        make_group(session, CallResults(_call_on_group, message, [each.recipe for each in row]), row) for row in rows
    ]
    message.release()
    return groups


def pack(*message: Any) -> bytes:
    """Return a function and its arguments as bytes for workers; raise InputError if they cannot be pickled."""
    dumps = require("distributed.protocol.pickle").dumps
    try:
        packed: bytes = dumps(message)
    except Exception as error:
        raise InputError(
            f"{message[0]!r} cannot be sent to the workers of a cluster ({type(error).__name__}: {error}); define "
            "functions of your own without open files, locks and the like"
        ) from error
    return packed


def unpack(message: bytes) -> Any:
    """Return what ``pack`` packed, on a worker; raise InputError if a module is not there."""
    try:
        return require("distributed.protocol.pickle").loads(message)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"a worker of the cluster cannot import a function of yours ({error}); define it in the script that you "
            "run, or install its module on all workers"
        ) from error


def _call_on_group(message: bytes, *columns: Sequence[Any]) -> list[Any]:
    """Call a function on each part of a group, on a worker."""
    enter_pool()
    fn, arguments, of_shards, n_summed = unpack(message)
    results = []
    for parts in zip(*columns, strict=True):
        own = list(arguments)
        for position, part in zip(of_shards, parts[1:], strict=True):
            own[position] = part
        results.append(fn(parts[0], *own))
    return results if n_summed == 1 else sum_in_blocks(results, n_summed)


def add_up_blocks(groups: Sequence[Group], size: int) -> list[Group]:
    """Begin to add up the sums of neighbouring blocks of ``size`` parts, in tasks that fetch them from the workers.

    Which blocks are added up together depends on their number only, and not on the groups that they lie in.
    """
    session, taken = groups[0].session, list[tuple[Group, int]]()
    for group in groups:
        taken += [(group, place) for place in range(-(-group.recipe.n_parts // size))]
    made = []
    for start in range(0, len(taken), BLOCKS_TOGETHER):
        parents = list(dict.fromkeys(group for group, _ in taken[start : start + BLOCKS_TOGETHER]))
        places = [(parents.index(group), place) for group, place in taken[start : start + BLOCKS_TOGETHER]]
        recipe = CallResults(_add_up, Message(pack(places)), [each.recipe for each in parents], n_parts=1)
        made.append(make_group(session, recipe, parents))
    return made


def _add_up(message: bytes, *sums: Sequence[Any]) -> list[Any]:
    """Return the sum of some sums of blocks in a list, on a worker."""
    [places] = unpack(message)
    return [reduce(add, [sums[at][place] for at, place in places])]


def wait_for_results(client: Any, futures: Sequence[Any]) -> None:
    """Wait until tasks have ended; raise the error of the first that failed."""
    with client.as_current():
        require("distributed").wait(futures)
    for future in futures:
        if future.status != "finished":
            future.result()


def collect_results(client: Any, futures: Sequence[Any]) -> list[Any]:
    """Return the results of tasks; raise the error of one that failed."""
    found: list[Any] = client.gather(futures)
    return found


def finish_call(groups: Sequence[Group], receive: Callable[[Any, Sequence[Any]], R]) -> R:
    """Return what ``receive`` returns for the tasks of groups; repeat what was lost with workers that died."""
    distributed = require("distributed")
    lost = (distributed.CancelledError, distributed.scheduler.KilledWorker, distributed.comm.CommClosedError)
    session = groups[0].session
    for attempt in range(ATTEMPTS):
        if attempt:
            restore_groups(session, groups)
        try:
            return receive(session.client, [each.future for each in groups])
        except lost as error:
            _release(groups)
            error.__traceback__ = None  # the client may keep the error, which would keep the groups alive
        except BaseException:
            _release(groups)
            raise
    raise WorkersLostError(
        f"workers of the Dask cluster at {session.address} died {ATTEMPTS} times in the same call: look for a lack of "
        "memory in their logs"
    )


def _release(groups: Sequence[Group]) -> None:
    """Let the client forget tasks that failed: their errors refer to these groups."""
    for group in groups:
        if group.future.status not in ("finished", "pending"):
            group.future.release()
