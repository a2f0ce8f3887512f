"""Import of models of other libraries, one file per library.

To add one, write a module with ``recognises_object``, ``recognises_file``, ``import_object`` and ``import_file``, and
add it to ``_LIBRARIES``.
"""

from __future__ import annotations

from rankwright.models.imports.importing import as_model as as_model
from rankwright.models.imports.importing import import_model as import_model
from rankwright.models.imports.importing import parse_file as parse_file
