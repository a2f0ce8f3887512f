"""An interpreter of the models of Elasticsearch's plugin."""

from tests.reference.ltr_plugin import score

__all__ = ["score"]
