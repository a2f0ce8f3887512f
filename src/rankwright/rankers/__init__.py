"""Rankers: one file per algorithm, one class each.

To add one, write its file and put it into the import and ``RANKERS`` below: the command line, the contract tests and
the documentation find it here.
"""

from rankwright.errors import InputError, suggest
from rankwright.rankers.adarank import AdaRank
from rankwright.rankers.base import Ranker
from rankwright.rankers.bayesrank import BayesRank
from rankwright.rankers.boosted_trees import BoostedTrees
from rankwright.rankers.coordinate_ascent import CoordinateAscent
from rankwright.rankers.directrank import DirectRank
from rankwright.rankers.directrank_trees import DirectRankTrees
from rankwright.rankers.frank import FRank
from rankwright.rankers.lambdamart import LambdaMART
from rankwright.rankers.lambdarank import LambdaRank
from rankwright.rankers.linear_ranker import LinearRanker
from rankwright.rankers.listmle import ListMLE
from rankwright.rankers.listnet import ListNet
from rankwright.rankers.mart import MART
from rankwright.rankers.neural_ranker import NeuralRanker
from rankwright.rankers.path import PathRanker
from rankwright.rankers.permurank import PermuRank
from rankwright.rankers.rankboost import RankBoost
from rankwright.rankers.rankcosine import RankCosine
from rankwright.rankers.ranknet import RankNet
from rankwright.rankers.ranksvm import RankSVM
from rankwright.rankers.regression import Regression
from rankwright.rankers.single_feature import SingleFeature
from rankwright.rankers.smoothrank import SmoothRank
from rankwright.rankers.svm_map import SVMMap
from rankwright.rankers.svm_ndcg import SVMNDCG
from rankwright.rankers.training import Training

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
    "Training",
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
