"""What training minimises, as functions of the scores: knows no features and no model.

Any of these, or a function of your own, can be handed to ``rw.LinearRanker(objective=...)``.
"""

from rankwright.objectives.base import Evaluation as Evaluation
from rankwright.objectives.base import Objective as Objective
from rankwright.objectives.base import PreparedObjective as PreparedObjective
from rankwright.objectives.listwise_objectives import Cosine as Cosine
from rankwright.objectives.listwise_objectives import ExpectedMeasure as ExpectedMeasure
from rankwright.objectives.listwise_objectives import Likelihood as Likelihood
from rankwright.objectives.listwise_objectives import TopOne as TopOne
from rankwright.objectives.noisy_objectives import NoisyRanks as NoisyRanks
from rankwright.objectives.objective_names import OBJECTIVES as OBJECTIVES
from rankwright.objectives.pairwise_objectives import Exponential as Exponential
from rankwright.objectives.pairwise_objectives import Fidelity as Fidelity
from rankwright.objectives.pairwise_objectives import Hinge as Hinge
from rankwright.objectives.pairwise_objectives import Logistic as Logistic
from rankwright.objectives.pairwise_objectives import SquaredHinge as SquaredHinge
from rankwright.objectives.pointwise_objectives import Squares as Squares
from rankwright.objectives.smooth_objectives import SigmoidRanks as SigmoidRanks
from rankwright.objectives.smooth_objectives import SoftPositions as SoftPositions
from rankwright.objectives.swap_lambdas import Lambdas as Lambdas
