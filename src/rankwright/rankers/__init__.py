"""Rankers: one file per algorithm, one class each.

To add one, write its file, mark its class ``@final`` and import it below: the command line, the contract tests and the
documentation find it in ``RANKERS``.
"""

from rankwright.basics.errors import InputError, suggest
from rankwright.rankers.base import Ranker as Ranker
from rankwright.rankers.blend.auto_ranker import AutoRanker as AutoRanker
from rankwright.rankers.blend.blend import Blend as Blend
from rankwright.rankers.bounds.adarank import AdaRank as AdaRank
from rankwright.rankers.bounds.dorm import DORM as DORM
from rankwright.rankers.bounds.permurank import PermuRank as PermuRank
from rankwright.rankers.bounds.ranksvm import RankSVM as RankSVM
from rankwright.rankers.bounds.svm_map import SVMMap as SVMMap
from rankwright.rankers.bounds.svm_ndcg import SVMNDCG as SVMNDCG
from rankwright.rankers.common_parameters import PathRanker as PathRanker
from rankwright.rankers.exact.coordinate_ascent import CoordinateAscent as CoordinateAscent
from rankwright.rankers.exact.directrank import DirectRank as DirectRank
from rankwright.rankers.listwise.lambdarank import LambdaRank as LambdaRank
from rankwright.rankers.listwise.linear_ranker import LinearRanker as LinearRanker
from rankwright.rankers.listwise.listmle import ListMLE as ListMLE
from rankwright.rankers.listwise.listnet import ListNet as ListNet
from rankwright.rankers.listwise.rankcosine import RankCosine as RankCosine
from rankwright.rankers.listwise.ranknet import RankNet as RankNet
from rankwright.rankers.listwise.regression import Regression as Regression
from rankwright.rankers.listwise.single_feature import SingleFeature as SingleFeature
from rankwright.rankers.networks.neural_ranker import NeuralRanker as NeuralRanker
from rankwright.rankers.networks.training_options import TrainingOptions as TrainingOptions
from rankwright.rankers.smooth.bayesrank import BayesRank as BayesRank
from rankwright.rankers.smooth.smoothrank import SmoothRank as SmoothRank
from rankwright.rankers.smooth.softrank import SoftRank as SoftRank
from rankwright.rankers.stumps.frank import FRank as FRank
from rankwright.rankers.stumps.rankboost import RankBoost as RankBoost
from rankwright.rankers.trees.boosted_trees import BoostedTrees as BoostedTrees
from rankwright.rankers.trees.directrank_trees import DirectRankTrees as DirectRankTrees
from rankwright.rankers.trees.gbrank import GBRank as GBRank
from rankwright.rankers.trees.lambdamart import LambdaMART as LambdaMART
from rankwright.rankers.trees.mart import MART as MART

RANKERS: tuple[type[Ranker], ...] = tuple(
    sorted(
        (each for each in globals().values() if isinstance(each, type) and getattr(each, "__final__", False)),
        key=lambda ranker: ranker.__name__,
    )
)


def find_ranker(name: str) -> type[Ranker]:
    """Return the class of the ranker with this name, ignoring case, ``-`` and ``_``; raise InputError if none has it.

    >>> find_ranker("single-feature").__name__
    'SingleFeature'
    """
    names = {ranker.__name__.lower(): ranker for ranker in RANKERS}
    wanted = name.lower().replace("-", "").replace("_", "")
    if wanted not in names:
        raise InputError(f"unknown ranker {name!r}; {suggest(wanted, names)}")
    return names[wanted]
