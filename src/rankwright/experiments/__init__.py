"""Run experiments: methods are selected on validation queries, measured on test queries, and resumed after a stop."""

from rankwright.experiments.experiment_run import run_experiment
from rankwright.experiments.methods import Method
from rankwright.experiments.parameter_search import RandomSearch
from rankwright.experiments.result_reading import read_results, read_trial_model
from rankwright.experiments.spec import Experiment, PublishedFigure
from rankwright.experiments.spec_files import experiment_from_json, read_experiment

__all__ = [
    "Experiment",
    "Method",
    "PublishedFigure",
    "RandomSearch",
    "experiment_from_json",
    "read_experiment",
    "read_results",
    "read_trial_model",
    "run_experiment",
]
