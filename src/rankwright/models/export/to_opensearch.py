"""Models of the learning to rank plugin of OpenSearch."""

from __future__ import annotations

from typing import ClassVar

from rankwright.models.export.ltr_plugin import PluginTarget


class OpenSearchTarget(PluginTarget):
    """The learning to rank plugin of OpenSearch, which sends missing values where each split says from 3.8 on."""

    name: ClassVar[str] = "opensearch"
    title: ClassVar[str] = "OpenSearch"
    zero_versions: ClassVar[str] = "OpenSearch before 3.2"
    right_versions: ClassVar[str | None] = "OpenSearch 3.2 to 3.7"
