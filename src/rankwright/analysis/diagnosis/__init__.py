"""Diagnosis: the measure beside the bounds on its loss, what held training back, and what a model makes of features."""

from rankwright.analysis.diagnosis.diagnosis_result import Diagnosis as Diagnosis
from rankwright.analysis.diagnosis.loss_bounds import BestScale as BestScale
from rankwright.analysis.diagnosis.loss_bounds import UpperBoundValues as UpperBoundValues
from rankwright.analysis.diagnosis.ranker_diagnosis import diagnose as diagnose
from rankwright.analysis.diagnosis.single_weights import SingleWeightGains as SingleWeightGains
from rankwright.analysis.diagnosis.verdicts import Certificate as Certificate
from rankwright.analysis.diagnosis.verdicts import Verdict as Verdict
from rankwright.analysis.explanation import Explanation as Explanation
from rankwright.analysis.explanation import explain as explain
from rankwright.analysis.feature_effects import ScoreStep as ScoreStep
from rankwright.analysis.feature_effects import Slope as Slope
from rankwright.analysis.feature_effects import Splits as Splits
from rankwright.analysis.feature_effects import StepFunction as StepFunction
