"""Run experiments: methods are selected on validation queries, measured on test queries, and resumed after a stop."""

from rankwright.experiments.experiment_run import run_experiment as run_experiment
from rankwright.experiments.fixed_models import FixedModel as FixedModel
from rankwright.experiments.methods import Method as Method
from rankwright.experiments.methods import RandomSearch as RandomSearch
from rankwright.experiments.result_reading import read_results as read_results
from rankwright.experiments.result_reading import read_trial_model as read_trial_model
from rankwright.experiments.spec import Experiment as Experiment
from rankwright.experiments.spec import PublishedFigure as PublishedFigure
from rankwright.experiments.spec import experiment_from_json as experiment_from_json
from rankwright.experiments.spec import read_experiment as read_experiment
