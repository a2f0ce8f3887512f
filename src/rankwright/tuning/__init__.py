"""Find exact weights for existing runs, scorers and trees of a model."""

from rankwright.tuning.fusion_result import FusionCounts, FusionGain, FusionResult
from rankwright.tuning.fusion_tuning import tune_fusion
from rankwright.tuning.model_polishing import PolishResult, polish, polish_model

__all__ = ["FusionCounts", "FusionGain", "FusionResult", "PolishResult", "polish", "polish_model", "tune_fusion"]
