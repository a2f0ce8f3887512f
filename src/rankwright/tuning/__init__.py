"""Tuning: exact weights for what is already there."""

from rankwright.tuning.fusion_result import Counts, FusionResult, Gain
from rankwright.tuning.fusion_tuning import tune_fusion
from rankwright.tuning.model_polishing import Polished, polish, polish_model

__all__ = ["Counts", "FusionResult", "Gain", "Polished", "polish", "polish_model", "tune_fusion"]
