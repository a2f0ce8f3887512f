"""Diagnosis: the measure beside the bounds on its loss, what held training back, and what a model makes of features."""

from rankwright.analysis.diagnosis.diagnosis_result import Diagnosis
from rankwright.analysis.diagnosis.loss_bounds import BestScale, UpperBoundValues
from rankwright.analysis.diagnosis.ranker_diagnosis import diagnose
from rankwright.analysis.diagnosis.single_weights import SingleWeightGains
from rankwright.analysis.diagnosis.training_facts import Certificate
from rankwright.analysis.diagnosis.verdicts import Verdict
from rankwright.analysis.explanation import Explanation, explain
from rankwright.analysis.feature_effects import ScoreStep, Slope, Splits, StepFunction

__all__ = [
    "BestScale",
    "Certificate",
    "Diagnosis",
    "Explanation",
    "ScoreStep",
    "SingleWeightGains",
    "Slope",
    "Splits",
    "StepFunction",
    "UpperBoundValues",
    "Verdict",
    "diagnose",
    "explain",
]
