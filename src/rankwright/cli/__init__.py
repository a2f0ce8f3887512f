"""The command line. Modules are imported by the command that uses them, so that ``--help`` answers at once."""

# the order of the help, not of the alphabet
# isort: off
from rankwright.cli import models
from rankwright.cli import tuning
from rankwright.cli import experiments
from rankwright.cli import simulation
from rankwright.cli import catalogue
from rankwright.cli.app import run
# isort: on

__all__ = ["catalogue", "experiments", "models", "run", "simulation", "tuning"]
