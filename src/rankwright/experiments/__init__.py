"""Experiments: data x methods x seeds, selected on validation, measured on test queries, resumable."""

from rankwright.experiments.parsing import experiment_from_json, read_experiment
from rankwright.experiments.reading import read_model, read_results
from rankwright.experiments.running import run_experiment
from rankwright.experiments.search import Search
from rankwright.experiments.spec import Experiment, Method, Published

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
