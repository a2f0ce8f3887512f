"""Tuning: exact weights for what is already there."""

from rankwright.tuning.fusion import tune_fusion
from rankwright.tuning.polishing import Polished, polish, polish_model
from rankwright.tuning.results import Counts, FusionResult, Gain

__all__ = ["Counts", "FusionResult", "Gain", "Polished", "polish", "polish_model", "tune_fusion"]
