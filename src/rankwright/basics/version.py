"""The version, which the build reads here and reports print."""

__version__ = "0.1.0"
