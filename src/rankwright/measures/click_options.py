"""The options of measures from clicks: what goes with what, and the defaults that keep sums unbiased."""

from __future__ import annotations

from collections.abc import Mapping

from rankwright.basics.errors import InputError
from rankwright.measures.click_relevance import CLIPPED
from rankwright.measures.definitions import DEFINITIONS

CLICK_DEFAULTS = {"gain": "linear", "ties": "average"}  # with these a sum is unbiased
_RECIPROCAL = "dcg(discount=reciprocal,clicks=ips)"  # the sum of the reciprocal ranks of relevant documents
_CLICKS_INSTEAD = {"rr": _RECIPROCAL, "err": _RECIPROCAL, "wta": "p@1(clicks=ips)"}


def check_click_options(name: str, dialect: object, options: Mapping[str, object]) -> dict[str, str | float | int]:
    """Return the options that follow from a measure's clicks; raise InputError if they do not go with the others."""
    estimator, allowed = options.get("clicks", "none"), DEFINITIONS[name].click_options
    asked = [option for option in ("clicks", "clip", "floor") if options.get(option, "none") != "none"]
    if asked and not allowed:
        raise InputError(
            f"{name} has no form that is estimated from clicks: it is no sum over documents. "
            f"{_CLICKS_INSTEAD.get(name, 'ndcg(clicks=ips)')} is one"
        )
    if estimator == "none":
        if asked:
            raise InputError(f"{name}: {asked[0]} has no effect without clicks=, such as clicks=ips")
        return {}
    if dialect is not None:
        raise InputError(f"{name}(clicks={estimator}) with dialect={dialect}; tools have no measures from clicks")
    if "clip" in options and estimator not in CLIPPED:
        raise InputError(f"{name}: clip has no effect with clicks={estimator}, whose weights are never large")
    if "rel" in options:
        raise InputError(f"{name}: rel has no effect with clicks={estimator}; the estimated relevance is the gain")
    if options.get("gain", "linear") != "linear":
        raise InputError(
            f"{name}: gain={options['gain']} with clicks={estimator}; the gain is the estimated relevance: "
            "no other function of it is unbiased"
        )
    return {option: value for option, value in CLICK_DEFAULTS.items() if option in DEFINITIONS[name].options}
