"""The format of Vespa's search responses, whose hits have the features that a rank profile lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rankwright.basics.errors import InputError, quote
from rankwright.data.json_files import describe_json
from rankwright.data.log_formats import LogFormat, LoggedFeatures, as_mapping, parse_feature

_CACHED = "vespa.summaryFeatures.cached"  # an entry of summaryfeatures that is no feature


class VespaFormat(LogFormat):
    """The format of Vespa: features by name in ``matchfeatures`` or ``summaryfeatures`` of a hit.

    Parameters
    ----------
    log : str, optional
        The field of the features; ``matchfeatures`` by default.
    """

    place = "root.children"
    docid = "id"
    score = "relevance"

    def __init__(self, log: str | None) -> None:
        super().__init__(log or "matchfeatures")

    @staticmethod
    def find_hits(response: Mapping[str, Any]) -> Any:
        """Return the list ``root.children`` of a response; an empty one if nothing was found."""
        root = response.get("root")
        return root.get("children", []) if isinstance(root, Mapping) else None

    @staticmethod
    def find_lack(response: Mapping[str, Any]) -> str | None:
        """Return whether the search failed or did not reach all documents."""
        root = as_mapping(response.get("root"))
        if root.get("errors"):
            return "root.errors"
        return "coverage.full: false" if as_mapping(root.get("coverage")).get("full") is False else None

    def is_hit(self, value: Mapping[str, Any]) -> bool:
        """Return whether there are fields with features."""
        return self.log in as_mapping(value.get("fields"))

    def is_complete(self, hit: Mapping[str, Any]) -> bool:
        """Return True: a hit has all features that the rank profile lists."""
        return True

    def find_places(self, hit: Mapping[str, Any], response: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """Return the hit and its fields."""
        return (hit, as_mapping(hit.get("fields")))

    def read_features(self, hit: Mapping[str, Any], where: str) -> LoggedFeatures:
        """Return the features of a hit; null is an attribute without a value."""
        assert self.log is not None
        found = as_mapping(hit.get("fields")).get(self.log)
        if not isinstance(found, Mapping):
            what = f"no {self.log}" if found is None else f"{self.log} is {describe_json(found)}"
            raise InputError(
                f"{where}: {what}; expected features by name, which match-features of a rank profile lists. Another "
                f"field of theirs is named with log= (--log on the command line), such as {quote('summaryfeatures')}"
            )
        names = [name for name in found if name != _CACHED]
        return LoggedFeatures(names, [parse_feature(found[name], name, where) for name in names])
