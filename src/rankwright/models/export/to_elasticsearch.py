"""Models of the learning to rank plugin of Elasticsearch."""

from __future__ import annotations

from typing import ClassVar

from rankwright.models.export.ltr_plugin import PluginTarget


class ElasticsearchTarget(PluginTarget):
    """The learning to rank plugin of Elasticsearch, which sends missing values where each split says from 1.5.9 on."""

    name: ClassVar[str] = "elasticsearch"
    title: ClassVar[str] = "Elasticsearch's plugin"
    zero_versions: ClassVar[str] = "versions of the plugin before 1.5.9"
