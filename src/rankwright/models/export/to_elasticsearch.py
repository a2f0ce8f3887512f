"""Models of the learning to rank plugin of Elasticsearch."""

from __future__ import annotations

from typing import ClassVar

from rankwright.models.export.ltr_plugin import PluginTarget


class ElasticsearchTarget(PluginTarget):
    """The learning to rank plugin of Elasticsearch, which sends missing values where each split says."""

    name: ClassVar[str] = "elasticsearch"
    title: ClassVar[str] = "Elasticsearch's plugin"
