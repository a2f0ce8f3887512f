"""Run commands; each command imports the modules that it uses, so that ``--help`` is fast."""

# the order of the help, not of the alphabet
# isort: off
from rankwright.cli import model_commands as models
from rankwright.cli import auto_commands as automatic
from rankwright.cli import evaluation_commands as evaluation
from rankwright.cli import export_commands as exports
from rankwright.cli import data_commands as data
from rankwright.cli import click_commands as clicks
from rankwright.cli import tuning_commands as tuning
from rankwright.cli import experiment_commands as experiments
from rankwright.cli import simulation_commands as simulation
from rankwright.cli import catalogue
from rankwright.cli import warm_commands as warming_up
from rankwright.cli.app import run
# isort: on

__all__ = [
    "automatic",
    "catalogue",
    "clicks",
    "data",
    "evaluation",
    "experiments",
    "exports",
    "models",
    "run",
    "simulation",
    "tuning",
    "warming_up",
]
