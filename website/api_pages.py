"""The API reference: a page for every public name, listed by topic."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import rankwright
from rankwright.measures import DEFINITIONS
from website.contents import API, list_pages, read_page

# Topics of the names of ``rankwright`` by the room that they are from, in the order of the reference.
ROOMS = {
    "rankers": "Rankers",
    "data": "Data",
    "measures": "Measures",
    "analysis": "Evaluation and analysis",
    "models": "Models",
    "tuning": "Weights for runs and models",
    "experiments": "Experiments",
    "report": "Reports",
    "runtime": "Where work runs",
    "basics": "Errors and warnings",
    "scorers": "Scaling",
}

# Public modules beside ``rankwright`` itself.
MODULES = {
    "rankwright.objectives": "Objectives",
    "rankwright.objectives.upper_bounds": "Upper bounds on measures",
    "rankwright.torch": "Losses for torch",
    "rankwright.analysis.significance": "Significance tests",
    "rankwright.report.plot": "Plots",
    "rankwright.scorers": "Scorers",
    "rankwright.papers.simulation": "Simulations of papers",
}
# What scikit-learn adds for the routing of metadata.
SKIPPED_MEMBERS = "set_fit_request, set_predict_request, set_score_request, set_split_request, get_metadata_routing"
SKIPPED_BASES = "object, BaseEstimator, MetadataRequester, tuple, Exception, BaseException, Warning, Module, Generic"


class Topic(NamedTuple):
    """A part of the reference: a title, the module to import from, and the names."""

    title: str
    module: str
    names: tuple[str, ...]


def list_names(module: ModuleType) -> list[str]:
    """Return the public classes and functions of a module that it defines or that are from below it."""
    names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    values = {name: getattr(module, name) for name in names}
    described = (name for name, value in values.items() if inspect.isclass(value) or inspect.isfunction(value))
    return sorted(name for name in described if values[name].__module__.startswith(module.__name__))


def list_topics() -> list[Topic]:
    """Return the topics of the reference, with every public name in one of them."""
    by_room: dict[str, list[str]] = {room: [] for room in ROOMS}
    for name in rankwright.__all__:
        by_room.setdefault(find_room(getattr(rankwright, name)), []).append(name)
    topics = [
        Topic(ROOMS.get(room, room.capitalize()), "rankwright", tuple(names))
        for room, names in by_room.items()
        if names
    ]
    for module, title in MODULES.items():
        topics.append(Topic(title, module, tuple(list_names(import_module(module)))))
    return topics


def find_room(value: Any) -> str:
    """Return the room of the package that defines a class, a function or a maker of measures."""
    return str(getattr(value, "func", value).__module__).split(".")[1]


def find_measure_title(value: Any) -> str | None:
    """Return the full name of a measure, if the value makes one of the built-in measures."""
    return DEFINITIONS[value.args[0]].title if isinstance(value, partial) else None


def find_algorithm_pages() -> dict[str, str]:
    """Return the page of each algorithm by the name of its ranker, which is its title."""
    pages = (page for page in list_pages() if page.startswith("algorithms/"))
    titles = ((read_page(page).splitlines()[0].removeprefix("# "), page) for page in pages)
    return {title: page for title, page in titles if title in rankwright.__all__}


def format_signature(value: type) -> str:
    """Return the parameters of a ranker with their defaults; nothing for other classes, whose signature says it all."""
    if not (issubclass(value, rankwright.Ranker) and is_dataclass(value)):
        return ""
    parameters = (field for field in fields(value) if field.init)
    return "(*, " + ", ".join(f"{each.name}={format_default(each)}" for each in parameters) + ")"


def format_default(parameter: Field[Any]) -> str:
    """Return the default of a parameter as it is written in Python."""
    return "..." if parameter.default is MISSING else repr(parameter.default)


def format_name_page(module: str, name: str, algorithm: str | None) -> str:
    """Return the page of a class or function, as reStructuredText."""
    value = getattr(import_module(module), name)
    lines = [name, "=" * len(name), ""]
    if algorithm:
        lines += [f"When to use it, equations and figures: :doc:`/{algorithm.removesuffix('.md')}`.", ""]
    if title := find_measure_title(value):
        definition = DEFINITIONS[value.args[0]]
        cut_off = "k=None, *, " if definition.takes_cut_off else "*, "
        signature = ", ".join(f"{option}=..." for option in (*definition.options, "dialect"))
        lines += [f".. py:function:: {module}.{name}({cut_off}{signature})", ""]
        lines += [f"   Make a measure: {title}.", "", "   :doc:`/measures` defines the options and the dialects.", ""]
    elif inspect.isclass(value):
        lines += [
            f".. autoclass:: {module}.{name}{format_signature(value)}",
            "   :members:",
            f"   :inherited-members: {SKIPPED_BASES}",
        ]
        lines += [f"   :exclude-members: {SKIPPED_MEMBERS}", ""]
    else:
        lines += [f".. autofunction:: {module}.{name}", ""]
    return "\n".join(lines)


def link_algorithm_page(text: str, name: str) -> str:
    """Return the page of an algorithm with a link to the reference of its ranker, before its first code."""
    link = f"Parameters and methods: [`{name}`](../api/rankwright.{name}.rst)."
    return text.replace("\n\n```python", f" {link}\n\n```python", 1)


def format_topics(topics: list[Topic]) -> str:
    """Return the tables of the reference, with a line for each name."""
    lines: list[str] = []
    for topic in topics:
        pages = [f"/api/{topic.module}.{name}" for name in topic.names]
        values = {name: getattr(import_module(topic.module), name) for name in topic.names}
        titles = {name: find_measure_title(value) for name, value in values.items()}
        names = [f"   ~{topic.module}.{name}" for name in topic.names if titles[name] is None]
        short = topic.module.rpartition(".")[2]
        is_reached = short in rankwright._SUBMODULES  # as rw.plot
        imported = "import rankwright as rw" if topic.module == "rankwright" else f"from {topic.module} import ..."
        imported = f"rw.{short}" if is_reached else imported
        lines += ["", f"## {topic.title}", "", f"`{imported}`", ""]
        lines += ["```{eval-rst}", ".. autosummary::", "   :nosignatures:", "", *names, "```", ""]
        rows = [f"| [`{name}`](/api/{topic.module}.{name}) | {title} |" for name, title in titles.items() if title]
        lines += ["| measure | full name |", "|---|---|", *rows, ""] if rows else []
        lines += ["```{toctree}", ":hidden:", f":caption: {topic.title}", "", *pages, "```", ""]
    return "\n".join(lines)


def make_api_pages() -> Iterator[tuple[str, str]]:
    """Yield the page of every public name, and the list of all."""
    topics, algorithms = list_topics(), find_algorithm_pages()
    lead = read_page(API).split("\n\n")[:2]  # what follows is for readers of the file
    yield API, "\n\n".join(lead) + "\n" + format_topics(topics)
    for topic in topics:
        for name in topic.names:
            algorithm = algorithms.get(name) if topic.module == "rankwright" else None
            yield f"api/{topic.module}.{name}.rst", format_name_page(topic.module, name, algorithm)
