"""Rankwright: train rankers on the measure they are evaluated by.

>>> import rankwright as rw
>>> queries = rw.make_queries(40, random_state=0)
>>> ranker = rw.AdaRank(measure="ndcg@10").fit(queries)
>>> ranker.score(queries) > 0.5
True
"""

from __future__ import annotations

import re
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rankwright.basics.version import __version__ as __version__


def _read_names() -> dict[str, str]:
    """Return the module of each public name, from the lines of this file; nothing where there is no source."""
    try:
        source = __spec__.loader.get_source(__name__) or ""  # type: ignore[union-attr]
    except (AttributeError, OSError):
        source = ""
    return {name: module for module, name in re.findall(r"(?m)^    from (\S+) import \w+ as (\w+)$", source)}


# Names are listed once: type checkers read the imports below, and Python makes a table of their lines, so that each
# module is imported when a name of it is first used. Without source (compiled files only) all are imported at once.
_MODULES = _read_names()
_SUBMODULES = {"plot"}  # modules that are reached as rw.plot, and are no names of their own
_OWN = {*globals(), "_OWN"}

if TYPE_CHECKING or not _MODULES:
    from rankwright.analysis.clicks.examination_estimate import estimate_examination as estimate_examination
    from rankwright.analysis.diagnosis import Diagnosis as Diagnosis
    from rankwright.analysis.diagnosis import Explanation as Explanation
    from rankwright.analysis.diagnosis import diagnose as diagnose
    from rankwright.analysis.diagnosis import explain as explain
    from rankwright.analysis.evaluation import Evaluations as Evaluations
    from rankwright.analysis.evaluation import evaluate as evaluate
    from rankwright.analysis.inspection import Finding as Finding
    from rankwright.analysis.inspection import Inspection as Inspection
    from rankwright.analysis.inspection import inspect as inspect
    from rankwright.analysis.permutation import PermutationImportance as PermutationImportance
    from rankwright.analysis.permutation import permutation_importance as permutation_importance
    from rankwright.analysis.results import Results as Results
    from rankwright.analysis.score_check import ScoreCheck as ScoreCheck
    from rankwright.analysis.score_check import check_parity as check_parity
    from rankwright.analysis.score_check import check_scores as check_scores
    from rankwright.analysis.score_comparison import compare_runs as compare_runs
    from rankwright.analysis.score_comparison import compare_scores as compare_scores
    from rankwright.analysis.selection import QueryKFold as QueryKFold
    from rankwright.analysis.selection import select as select
    from rankwright.basics.errors import ClickLogWarning as ClickLogWarning
    from rankwright.basics.errors import DegenerateModelWarning as DegenerateModelWarning
    from rankwright.basics.errors import FailedCandidateWarning as FailedCandidateWarning
    from rankwright.basics.errors import FixedModelWarning as FixedModelWarning
    from rankwright.basics.errors import IgnoredFileWarning as IgnoredFileWarning
    from rankwright.basics.errors import IneffectiveParameterWarning as IneffectiveParameterWarning
    from rankwright.basics.errors import InputError as InputError
    from rankwright.basics.errors import InspectionWarning as InspectionWarning
    from rankwright.basics.errors import InterruptedFitWarning as InterruptedFitWarning
    from rankwright.basics.errors import KernelCacheWarning as KernelCacheWarning
    from rankwright.basics.errors import MissingQueryIdWarning as MissingQueryIdWarning
    from rankwright.basics.errors import PartialResponseWarning as PartialResponseWarning
    from rankwright.basics.errors import RankwrightWarning as RankwrightWarning
    from rankwright.basics.errors import SplitQueryWarning as SplitQueryWarning
    from rankwright.basics.errors import StoreWarning as StoreWarning
    from rankwright.basics.errors import TrialWarning as TrialWarning
    from rankwright.basics.errors import UnnamedFeaturesWarning as UnnamedFeaturesWarning
    from rankwright.data.click_counts import ClickCounts as ClickCounts
    from rankwright.data.click_findings import ClickFinding as ClickFinding
    from rankwright.data.click_grades import ClickGrades as ClickGrades
    from rankwright.data.click_grades import grade_clicks as grade_clicks
    from rankwright.data.click_log import ClickLog as ClickLog
    from rankwright.data.click_queries import make_click_queries as make_click_queries
    from rankwright.data.click_reading import read_clicks as read_clicks
    from rankwright.data.click_simulation import simulate_clicks as simulate_clicks
    from rankwright.data.conversion import convert as convert
    from rankwright.data.distributed_queries import DistributedQueries as DistributedQueries
    from rankwright.data.document_pools import read_trec as read_trec
    from rankwright.data.engine_logs import read_log as read_log
    from rankwright.data.examination import Examination as Examination
    from rankwright.data.folds import read_folds as read_folds
    from rankwright.data.folds import split_folds as split_folds
    from rankwright.data.judgments import read_judgments as read_judgments
    from rankwright.data.letor import read_letor as read_letor
    from rankwright.data.letor import write_letor as write_letor
    from rankwright.data.mapped import verify_checksums as verify_checksums
    from rankwright.data.mapped_writer import write_queries as write_queries
    from rankwright.data.queries import Queries as Queries
    from rankwright.data.reading import read as read
    from rankwright.data.synthetic import make_queries as make_queries
    from rankwright.data.trec import read_qrels as read_qrels
    from rankwright.data.trec import read_run as read_run
    from rankwright.data.trec import write_run as write_run
    from rankwright.experiments import Experiment as Experiment
    from rankwright.experiments import FixedModel as FixedModel
    from rankwright.experiments import Method as Method
    from rankwright.experiments import PublishedFigure as PublishedFigure
    from rankwright.experiments import RandomSearch as RandomSearch
    from rankwright.experiments import read_experiment as read_experiment
    from rankwright.experiments import read_results as read_results
    from rankwright.experiments import read_trial_model as read_trial_model
    from rankwright.experiments import run_experiment as run_experiment
    from rankwright.measures import AP as AP
    from rankwright.measures import DCG as DCG
    from rankwright.measures import ERR as ERR
    from rankwright.measures import NDCG as NDCG
    from rankwright.measures import RBP as RBP
    from rankwright.measures import RR as RR
    from rankwright.measures import WTA as WTA
    from rankwright.measures import Measure as Measure
    from rankwright.measures import P as P
    from rankwright.measures import Recall as Recall
    from rankwright.measures import make_measure as make_measure
    from rankwright.measures import parse_measure as parse_measure
    from rankwright.models.export.exporting import export as export
    from rankwright.models.file_scoring import score_files as score_files
    from rankwright.models.imports import import_model as import_model
    from rankwright.models.model import Model as Model
    from rankwright.models.model_files import load as load
    from rankwright.models.model_files import save as save
    from rankwright.rankers import DORM as DORM
    from rankwright.rankers import MART as MART
    from rankwright.rankers import SVMNDCG as SVMNDCG
    from rankwright.rankers import AdaRank as AdaRank
    from rankwright.rankers import AutoRanker as AutoRanker
    from rankwright.rankers import BayesRank as BayesRank
    from rankwright.rankers import Blend as Blend
    from rankwright.rankers import BoostedTrees as BoostedTrees
    from rankwright.rankers import CoordinateAscent as CoordinateAscent
    from rankwright.rankers import DirectRank as DirectRank
    from rankwright.rankers import DirectRankTrees as DirectRankTrees
    from rankwright.rankers import FRank as FRank
    from rankwright.rankers import GBRank as GBRank
    from rankwright.rankers import LambdaMART as LambdaMART
    from rankwright.rankers import LambdaRank as LambdaRank
    from rankwright.rankers import LinearRanker as LinearRanker
    from rankwright.rankers import ListMLE as ListMLE
    from rankwright.rankers import ListNet as ListNet
    from rankwright.rankers import NeuralRanker as NeuralRanker
    from rankwright.rankers import PermuRank as PermuRank
    from rankwright.rankers import RankBoost as RankBoost
    from rankwright.rankers import RankCosine as RankCosine
    from rankwright.rankers import Ranker as Ranker
    from rankwright.rankers import RankNet as RankNet
    from rankwright.rankers import RankSVM as RankSVM
    from rankwright.rankers import Regression as Regression
    from rankwright.rankers import SingleFeature as SingleFeature
    from rankwright.rankers import SmoothRank as SmoothRank
    from rankwright.rankers import SoftRank as SoftRank
    from rankwright.rankers import SVMMap as SVMMap
    from rankwright.rankers import TrainingOptions as TrainingOptions
    from rankwright.rankers.training_watch import TrainingRound as TrainingRound
    from rankwright.report import format_leaderboard as format_leaderboard
    from rankwright.report import plot as plot
    from rankwright.report import write_leaderboard as write_leaderboard
    from rankwright.report import write_report as write_report
    from rankwright.runtime.backends import Serial as Serial
    from rankwright.runtime.backends import Threads as Threads
    from rankwright.runtime.dask_backend import Dask as Dask
    from rankwright.scorers.linear import scale_features as scale_features
    from rankwright.tuning import FusionResult as FusionResult
    from rankwright.tuning import PolishResult as PolishResult
    from rankwright.tuning import polish as polish
    from rankwright.tuning import polish_model as polish_model
    from rankwright.tuning import tune_fusion as tune_fusion

__all__ = sorted(
    (
        _MODULES.keys()
        or {name for name, value in globals().items() if name not in _OWN and not isinstance(value, ModuleType)}
    )
    - _SUBMODULES
)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'rankwright' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
