"""Rankers: one file per algorithm, one class each.

To add one, write its file and put it into the import and ``RANKERS`` below: the command line, the contract tests and
the documentation find it here.
"""

from rankwright.basics.errors import InputError, suggest
from rankwright.rankers.base import Ranker
from rankwright.rankers.bounds.adarank import AdaRank
from rankwright.rankers.bounds.permurank import PermuRank
from rankwright.rankers.bounds.ranksvm import RankSVM
from rankwright.rankers.bounds.svm_map import SVMMap
from rankwright.rankers.bounds.svm_ndcg import SVMNDCG
from rankwright.rankers.exact.coordinate_ascent import CoordinateAscent
from rankwright.rankers.exact.directrank import DirectRank
from rankwright.rankers.listwise.lambdarank import LambdaRank
from rankwright.rankers.listwise.linear_ranker import LinearRanker
from rankwright.rankers.listwise.listmle import ListMLE
from rankwright.rankers.listwise.listnet import ListNet
from rankwright.rankers.listwise.rankcosine import RankCosine
from rankwright.rankers.listwise.ranknet import RankNet
from rankwright.rankers.listwise.regression import Regression
from rankwright.rankers.listwise.single_feature import SingleFeature
from rankwright.rankers.networks.neural_ranker import NeuralRanker
from rankwright.rankers.networks.training_options import TrainingOptions
from rankwright.rankers.regularisation_path import PathRanker
from rankwright.rankers.smooth.bayesrank import BayesRank
from rankwright.rankers.smooth.smoothrank import SmoothRank
from rankwright.rankers.stumps.frank import FRank
from rankwright.rankers.stumps.rankboost import RankBoost
from rankwright.rankers.trees.boosted_trees import BoostedTrees
from rankwright.rankers.trees.directrank_trees import DirectRankTrees
from rankwright.rankers.trees.lambdamart import LambdaMART
from rankwright.rankers.trees.mart import MART

RANKERS: tuple[type[Ranker], ...] = (
    AdaRank,
    BayesRank,
    BoostedTrees,
    CoordinateAscent,
    DirectRank,
    DirectRankTrees,
    FRank,
    LambdaMART,
    LambdaRank,
    LinearRanker,
    ListMLE,
    ListNet,
    MART,
    NeuralRanker,
    PermuRank,
    RankBoost,
    RankCosine,
    RankNet,
    RankSVM,
    Regression,
    SVMMap,
    SVMNDCG,
    SingleFeature,
    SmoothRank,
)

__all__ = [
    "MART",
    "RANKERS",
    "SVMNDCG",
    "AdaRank",
    "BayesRank",
    "BoostedTrees",
    "CoordinateAscent",
    "DirectRank",
    "DirectRankTrees",
    "FRank",
    "LambdaMART",
    "LambdaRank",
    "LinearRanker",
    "ListMLE",
    "ListNet",
    "NeuralRanker",
    "PathRanker",
    "PermuRank",
    "RankBoost",
    "RankCosine",
    "RankNet",
    "RankSVM",
    "Ranker",
    "Regression",
    "SVMMap",
    "SingleFeature",
    "SmoothRank",
    "TrainingOptions",
    "find_ranker",
]


def find_ranker(name: str) -> type[Ranker]:
    """The ranker of this name, ignoring case, ``-`` and ``_``.

    >>> find_ranker("single-feature").__name__
    'SingleFeature'
    """
    names = {ranker.__name__.lower(): ranker for ranker in RANKERS}
    wanted = name.lower().replace("-", "").replace("_", "")
    if wanted not in names:
        raise InputError(f"unknown ranker {name!r}; {suggest(wanted, names)}")
    return names[wanted]
