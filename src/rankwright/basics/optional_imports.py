"""The one place that imports optional packages and says which extra is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# package -> the extra of rankwright that brings it
_EXTRAS = {
    "torch": "torch",
    "distributed": "dask",
    "onnx": "onnx",
    "xgboost": "xgboost",
    "pandas": "pandas",
    "pyarrow": "tables",
}


def require(package: str) -> Any:
    """Import an optional package, or raise an ImportError that names the extra to install.

    >>> require("nothing_of_the_kind")
    Traceback (most recent call last):
    ...
    ImportError: this needs nothing_of_the_kind; install it with: pip install nothing_of_the_kind
    """
    try:
        return import_module(package)
    except ImportError as error:
        extra = _EXTRAS.get(package)
        remedy = f"'rankwright[{extra}]'" if extra else package
        raise ImportError(f"this needs {package}; install it with: pip install {remedy}") from error
