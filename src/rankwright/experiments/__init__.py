"""Experiments: data x methods x seeds, selected on validation, measured on test queries, resumable."""

from rankwright.experiments.experiment_run import run_experiment
from rankwright.experiments.parameter_search import Search
from rankwright.experiments.result_reading import read_model, read_results
from rankwright.experiments.spec import Experiment, Method, Published
from rankwright.experiments.spec_files import experiment_from_json, read_experiment

__all__ = [
    "Experiment",
    "Method",
    "Published",
    "Search",
    "experiment_from_json",
    "read_experiment",
    "read_model",
    "read_results",
    "run_experiment",
]
