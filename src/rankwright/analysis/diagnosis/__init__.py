"""Diagnosis: the measure beside the bounds on its loss, what held training back, and what a model makes of features."""

from rankwright.analysis.diagnosis.diagnosis import diagnose
from rankwright.analysis.diagnosis.diagnosis_result import Diagnosis
from rankwright.analysis.diagnosis.explanation import Explanation, explain
from rankwright.analysis.diagnosis.explanation_parts import Slope, Splits, Step, StepFunction
from rankwright.analysis.diagnosis.loss_bounds import BoundAt, Least
from rankwright.analysis.diagnosis.single_weights import Alone
from rankwright.analysis.diagnosis.training_facts import Certificate
from rankwright.analysis.diagnosis.verdicts import Verdict

__all__ = [
    "Alone",
    "BoundAt",
    "Certificate",
    "Diagnosis",
    "Explanation",
    "Least",
    "Slope",
    "Splits",
    "Step",
    "StepFunction",
    "Verdict",
    "diagnose",
    "explain",
]
