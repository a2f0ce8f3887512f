"""Diagnosis: the measure beside the bounds on its loss, what held training back, and what a model makes of features."""

from rankwright.diagnosis.bounds import BoundAt, Least
from rankwright.diagnosis.diagnosing import diagnose
from rankwright.diagnosis.explaining import Explanation, explain
from rankwright.diagnosis.parts import Slope, Splits, Step, StepFunction
from rankwright.diagnosis.results import Diagnosis
from rankwright.diagnosis.training import Certificate
from rankwright.diagnosis.verdicts import Verdict
from rankwright.diagnosis.weights import Alone

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
