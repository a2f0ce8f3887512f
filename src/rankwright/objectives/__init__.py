"""What training minimises, as functions of the scores: knows no features and no model.

Any of these, or a function of your own, can be handed to ``rw.LinearRanker(objective=...)``.
"""

from rankwright.objectives.base import Evaluation, Objective, PreparedObjective
from rankwright.objectives.listwise_objectives import Cosine, ExpectedMeasure, Likelihood, TopOne
from rankwright.objectives.objective_names import OBJECTIVES
from rankwright.objectives.pairwise_objectives import Exponential, Fidelity, Hinge, Logistic, SquaredHinge
from rankwright.objectives.pointwise_objectives import Squares
from rankwright.objectives.smooth_objectives import SoftPositions, SoftRanks
from rankwright.objectives.swap_lambdas import Lambdas

__all__ = [
    "OBJECTIVES",
    "Cosine",
    "Evaluation",
    "ExpectedMeasure",
    "Exponential",
    "Fidelity",
    "Hinge",
    "Lambdas",
    "Likelihood",
    "Logistic",
    "Objective",
    "PreparedObjective",
    "SoftPositions",
    "SoftRanks",
    "SquaredHinge",
    "Squares",
    "TopOne",
]
