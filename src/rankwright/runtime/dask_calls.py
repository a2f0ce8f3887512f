"""Calls of a function on all parts of a data set on the workers, repeated where workers die."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple

from rankwright.basics.optional_imports import require
from rankwright.runtime.backends import BLOCKS_TOGETHER, Shards, count_in_block, sum_in_blocks
from rankwright.runtime.dask_groups import DelayedParts, Group, KeptParts, Recipe, list_groups
from rankwright.runtime.dask_messages import dump_frames, load_frames, pack, unpack
from rankwright.runtime.dask_plans import Plan, SlotPlan, make_plan
from rankwright.runtime.dask_session import ATTEMPTS, Session
from rankwright.runtime.dask_store import DONE, FAILED, Place, keep_parts
from rankwright.runtime.workers.base import WorkersLostError


def plan_call(fn: Callable[..., Any], shards: Shards[Any], arguments: Sequence[Any]) -> list[Group]:
    """Return the groups of what a function returns for every part, which are made when they are used.

    Arguments that are shards give the function their corresponding parts.
    """
    return _plan_call(fn, shards, arguments, lambda number: 1)


def plan_sum(fn: Callable[..., Any], shards: Shards[Any], arguments: Sequence[Any]) -> list[Group]:
    """Return groups of what is left to add up, in order, to get the sum of what a function returns for every part.

    Where there are few parts, the first group adds up its own. Where there are many, workers add up neighbours.
    """
    size = count_in_block(len(shards))
    if size == 1:
        return _plan_call(fn, shards, arguments, lambda number: 1 if number else len(shards))
    return _add_up_blocks(_plan_call(fn, shards, arguments, lambda number: size), size)


def _plan_call(
    fn: Callable[..., Any], shards: Shards[Any], arguments: Sequence[Any], count_summed: Callable[[int], int]
) -> list[Group]:
    """Plan a call as ``plan_call`` does; ``count_summed`` says how many neighbours in a group are added up."""
    of_shards = [position for position, argument in enumerate(arguments) if isinstance(argument, Shards)]
    plain = [None if isinstance(argument, Shards) else argument for argument in arguments]
    columns = [list_groups(each) for each in (shards, *(arguments[position] for position in of_shards))]
    if len({tuple(group.recipe.n_parts for group in column) for column in columns}) > 1:
        raise ValueError("shards that were cut differently cannot be used together")
    message = pack(fn, plain, of_shards)
    return [
        Group(
            row[0].session,
            Recipe(_call_on_group, (message, count_summed(number)), [each.recipe for each in row]),
            row,
        )
        for number, row in enumerate(zip(*columns, strict=True))
    ]


def _call_on_group(message: tuple[bytes, int], *columns: Sequence[Any]) -> list[Any]:
    """Call a function on each part of a group, on a worker, and add up the results of some neighbours."""
    packed, n_summed = message
    fn, arguments, of_shards = unpack(packed)
    results = []
    for parts in zip(*columns, strict=True):
        own = list(arguments)
        for position, part in zip(of_shards, parts[1:], strict=True):
            own[position] = part
        results.append(fn(parts[0], *own))
    return results if n_summed == 1 else sum_in_blocks(results, n_summed)


def _add_up_blocks(groups: Sequence[Group], size: int) -> list[Group]:
    """Return groups of sums of the sums of neighbouring blocks of ``size`` parts, which workers fetch from others.

    Which blocks are added up together depends on their number only, and not on the groups that they lie in.
    """
    taken: list[tuple[Group, int]] = []
    for group in groups:
        taken += [(group, place) for place in range(-(-group.recipe.n_parts // size))]
    made = []
    for start in range(0, len(taken), BLOCKS_TOGETHER):
        parents = list(dict.fromkeys(group for group, _ in taken[start : start + BLOCKS_TOGETHER]))
        places = [(parents.index(group), place) for group, place in taken[start : start + BLOCKS_TOGETHER]]
        recipe = Recipe(_add_up, pack(places), [each.recipe for each in parents], n_parts=1)
        made.append(Group(parents[0].session, recipe, parents))
    return made


def _add_up(message: bytes, *sums: Sequence[Any]) -> list[Any]:
    """Return the sum of some sums of blocks in a list, on a worker."""
    [places] = unpack(message)
    return [reduce(add, [sums[at][place] for at, place in places])]


def make_groups(groups: Sequence[Group]) -> None:
    """Make groups that are not there; raise the error of one that cannot be made."""
    _run(groups, is_returned=False)


def collect_results(groups: Sequence[Group]) -> list[list[Any]]:
    """Return the parts of groups, each of which is made for it and not kept."""
    return _run(groups, is_returned=True)


def _run(groups: Sequence[Group], is_returned: bool) -> list[list[Any]]:
    """Make groups and return their parts, if wanted; repeat what was lost with workers that died."""
    if not groups:
        return []
    session = groups[0].session
    recipes = [group.recipe for group in groups]
    for _ in range(ATTEMPTS):
        try:
            found = _make(session, recipes, set(recipes) if is_returned else set())
        except _WorkerLostError as error:
            for worker in error.args:
                session.give_up(worker)
            continue
        for group in groups:
            group.parents = ()
        return [found[recipe] for recipe in recipes] if is_returned else []
    raise WorkersLostError(
        f"workers of the Dask cluster at {session.address} died {ATTEMPTS} times in the same call: look for a lack of "
        "memory in their logs"
    )


class _WorkerLostError(Exception):
    """The error of a call that workers do not answer, whose addresses are its arguments."""


def _make(session: Session, wanted: Sequence[Recipe], returned: set[Recipe]) -> dict[Recipe, Any]:
    """Make what recipes say, and return the parts of those in ``returned``."""
    plan = make_plan(session, wanted, returned)
    found: dict[Recipe, Any] = {}
    for stage in plan.stages:
        _compute_delayed(session, plan, stage)
        messages = [_prepare_message(plan, slot) for slot in stage]
        answers = _send_all(session, messages)
        for slot, answer in zip(stage, answers, strict=True):
            is_done = isinstance(answer, dict) and answer["state"] == DONE
            _note_kept(session, plan, slot, is_done)
            if is_done:
                own = [recipe for recipe in slot.recipes if recipe in returned]
                found |= zip(own, load_frames(answer["frames"]), strict=True)
        _raise_errors(messages, answers)
    for group in plan.groups:
        group.parents = ()
    return found


class _Message(NamedTuple):
    """A message to a worker: the place of its store, the groups that it fetches from others, and its steps."""

    place: Place
    wanted: list[tuple[str, str, list[int]]]
    frames: list[Any]


def _prepare_message(plan: Plan, slot: SlotPlan) -> _Message:
    """Return the message that makes what the plan of a slot says."""
    wanted: dict[Place, list[int]] = {}
    for kept in plan.list_fetched(slot):
        wanted.setdefault(kept.place, []).append(kept.name)
    steps = plan.list_steps(slot)
    return _Message(slot.place, [(*other, names) for other, names in wanted.items()], dump_frames(steps))


def _send_all(session: Session, messages: Sequence[_Message]) -> list[Any]:
    """Return the answers to messages that are sent at the same time; errors in place of those that do not come."""

    async def send() -> list[Any]:
        calls = [session.call(*message) for message in messages]
        answers: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
        return answers

    return session.run(send)


def _raise_errors(messages: Sequence[_Message], answers: Sequence[Any]) -> None:
    """Raise the first error among answers to messages; those of lost workers come last."""
    lost = set[str]()
    for message, answer in zip(messages, answers, strict=True):
        if isinstance(answer, OSError):
            lost.add(message.place.worker)
        elif isinstance(answer, BaseException):
            raise answer
        elif answer["state"] == FAILED:
            error: BaseException = load_frames(answer["frames"])
            raise error
        elif answer["state"] != DONE:
            lost.update([message.place.worker, *(worker for worker, _, _ in message.wanted)])
    if lost:
        raise _WorkerLostError(*lost)


def _note_kept(session: Session, plan: Plan, slot: SlotPlan, is_done: bool) -> None:
    """Note where parts are kept whose groups are in use; let go of others, and of all where a step failed."""
    freed = {each for own in slot.freed for each in own}
    for recipe in slot.recipes:
        if recipe in plan.returned or (is_done and recipe in freed):
            continue
        made, known = KeptParts(slot.place, plan.names[recipe]), recipe.kept
        if not is_done or (known is not None and known.place == slot.place):  # another thread made them, too
            session.drop(*made)
            continue
        recipe.kept = made
        if known is not None:
            session.drop(*known)


def _compute_delayed(session: Session, plan: Plan, stage: Sequence[SlotPlan]) -> None:
    """Let Dask compute the parts that a stage needs of it, where they are to be kept."""
    distributed, started = require("distributed"), []
    for slot in stage:
        place = slot.place
        for recipe in slot.recipes:
            if isinstance(recipe, DelayedParts) and recipe not in plan.moved:
                with session.detect_lost_scheduler():
                    parts = session.client.compute(recipe.message)
                    name = plan.names[recipe]
                    future = session.submit(place.worker, keep_parts, session.name, place, name, *parts)
                started.append((place.worker, future))
    lost = set[str]()
    for worker, future in started:
        try:
            with session.detect_lost_scheduler():
                is_kept = future.result()
        except (distributed.CancelledError, distributed.scheduler.KilledWorker):
            is_kept = False
        if not is_kept:
            lost.add(worker)
    if lost:
        raise _WorkerLostError(*lost)
