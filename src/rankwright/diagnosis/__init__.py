"""Diagnosis: a ranking's measure beside the bounds on its loss, and what held its training back."""

from rankwright.diagnosis.bounds import BoundAt, Least
from rankwright.diagnosis.diagnosing import diagnose
from rankwright.diagnosis.results import Diagnosis
from rankwright.diagnosis.training import Certificate
from rankwright.diagnosis.verdicts import Verdict
from rankwright.diagnosis.weights import Alone

__all__ = ["Alone", "BoundAt", "Certificate", "Diagnosis", "Least", "Verdict", "diagnose"]
