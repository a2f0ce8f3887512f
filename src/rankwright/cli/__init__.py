"""The command line. Modules are imported by the command that uses them, so that ``--help`` answers at once."""

# isort: off  (the order of the help)
from rankwright.cli import models
from rankwright.cli import experiments
from rankwright.cli import catalogue
from rankwright.cli.app import run
# isort: on

__all__ = ["catalogue", "experiments", "models", "run"]
