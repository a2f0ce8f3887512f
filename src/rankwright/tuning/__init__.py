"""Tuning: exact weights for what is already there."""

from rankwright.tuning.fusion import tune_fusion
from rankwright.tuning.polishing import Polished, polish
from rankwright.tuning.results import Counts, FusionResult, Gain

__all__ = ["Counts", "FusionResult", "Gain", "Polished", "polish", "tune_fusion"]
