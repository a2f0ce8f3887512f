"""Plans: the messages to workers that make groups of parts, with all that they are made of and that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rankwright.runtime.dask_groups import DelayedParts, Group, KeptParts, Recipe
from rankwright.runtime.dask_session import Session
from rankwright.runtime.dask_store import Place, Step


class SlotPlan(NamedTuple):
    """A plan of one message: the recipes that a slot of a worker follows, in order.

    Parameters
    ----------
    place : Place
        Where the parts are made.
    recipes : list of Recipe
        The recipes, parents first.
    freed : list of list of Recipe
        For each recipe those whose parts are not needed after it.
    """

    place: Place
    recipes: list[Recipe]
    freed: list[list[Recipe]]


class Plan(NamedTuple):
    """A plan of what is to be made: stages, one after another, of messages that are sent at the same time.

    Parameters
    ----------
    stages : list of list of SlotPlan
        The messages of each stage, which need what those of earlier stages make on other workers.
    names : dict of Recipe to int
        The numbers under which the parts are to be kept. No number is used twice.
    moved : dict of Recipe to KeptParts
        Where parts are that are only to be moved, because another worker has their slot now.
    returned : set of Recipe
        Those whose parts come back, and are not kept.
    groups : list of Group
        The groups that are made, and that must be kept until the end: some are of no other use.
    """

    stages: list[list[SlotPlan]]
    names: dict[Recipe, int]
    moved: dict[Recipe, KeptParts]
    returned: set[Recipe]
    groups: list[Group]

    def list_steps(self, slot: SlotPlan) -> list[Step]:
        """Return the plan of a slot as steps for a worker."""
        return [
            self._describe_step(recipe, [self.names[each] for each in freed])
            for recipe, freed in zip(slot.recipes, slot.freed, strict=True)
            if recipe in self.moved or not isinstance(recipe, DelayedParts)  # those Dask makes
        ]

    def list_fetched(self, slot: SlotPlan) -> list[KeptParts]:
        """Return the parts of other workers that the steps of a slot take."""
        taken = {parent: None for each in slot.recipes if each not in self.moved for parent in each.parents}
        made = [parent.kept for parent in taken if parent not in slot.recipes]
        moved = [self.moved[recipe] for recipe in slot.recipes if recipe in self.moved]
        return [kept for kept in (*made, *moved) if kept is not None and kept.place != slot.place]

    def _describe_step(self, recipe: Recipe, freed: list[int]) -> Step:
        """Return a recipe as a step, which takes parts from another worker where they are only to be moved."""
        name = None if recipe in self.returned else self.names[recipe]
        if recipe in self.moved:
            return Step(name, _return_same, None, [self.moved[recipe].name], freed)
        return Step(name, recipe.task, recipe.message, [self._find_name(each) for each in recipe.parents], freed)

    def _find_name(self, recipe: Recipe) -> int:
        """Return the number of parts that are made or to be made."""
        if recipe in self.names:
            return self.names[recipe]
        assert recipe.kept is not None
        return recipe.kept.name


def make_plan(session: Session, wanted: Sequence[Recipe], returned: set[Recipe]) -> Plan:
    """Return the plan to make recipes that are not made; no group is kept of those in ``returned``."""
    places = session.list_places()
    recipes, moved = _list_unmade(session, places, wanted)
    level: dict[Recipe, int] = {}
    for recipe in recipes:
        parents = () if recipe in moved else recipe.parents
        own = [level[parent] + (parent.slot != recipe.slot) for parent in parents if parent in level]
        level[recipe] = max(own, default=0)
    last: dict[Recipe, tuple[int, int]] = {}  # place in the plan of the last child of each
    is_local = dict.fromkeys(recipes, True)
    for at, recipe in enumerate(recipes):
        for parent in () if recipe in moved else recipe.parents:
            if parent in level:
                last[parent] = level[recipe], at
                is_local[parent] &= (level[recipe], recipe.slot) == (level[parent], parent.slot)
    groups, freed = [], dict[int, list[Recipe]]()
    for recipe in recipes:
        group = session.groups.get(id(recipe))
        if group is not None:
            groups.append(group)
        elif recipe not in returned and is_local[recipe] and recipe in last:
            freed.setdefault(last[recipe][1], []).append(recipe)
        elif recipe not in returned:
            groups.append(Group(session, recipe))
    plans: dict[int, dict[int, SlotPlan]] = {}
    for at, recipe in enumerate(recipes):
        own_plan = plans.setdefault(level[recipe], {}).setdefault(
            recipe.slot, SlotPlan(places[recipe.slot % len(places)], [], [])
        )
        own_plan.recipes.append(recipe)
        own_plan.freed.append(freed.get(at, []))
    names = {recipe: next(session.numbers) for recipe in recipes}
    return Plan([list(plans[stage].values()) for stage in sorted(plans)], names, moved, returned, groups)


def _list_unmade(
    session: Session, places: Sequence[Place], wanted: Sequence[Recipe]
) -> tuple[list[Recipe], dict[Recipe, KeptParts]]:
    """Return recipes, and those of all that they are made of, which are not made in their places, parents first.

    Of those that are made in another place, return where; what they are made of does not matter.
    """
    found: dict[Recipe, None] = {}
    moved: dict[Recipe, KeptParts] = {}
    waiting = list(wanted)
    while waiting:
        recipe = waiting.pop()
        kept = recipe.kept
        if recipe in found or (kept is not None and kept.place == places[recipe.slot % len(places)]):
            continue
        found[recipe] = None
        if kept is not None and session.is_open(kept.place):
            moved[recipe] = kept
        else:
            waiting.extend(recipe.parents)
    order = {recipe: at for at, recipe in enumerate(dict.fromkeys([*wanted, *found]))}
    return sorted(found, key=lambda recipe: (recipe.depth, order[recipe])), moved


def _return_same(message: None, parts: Sequence[object]) -> Sequence[object]:
    """Return parts as they are, on a worker."""
    return parts
