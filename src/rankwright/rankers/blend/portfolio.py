"""The portfolio: the members of a default blend, and the settings that are tried of each.

Members and their order were chosen by what each added to the others on held-out queries of real and synthetic data, and
by its time (``docs/blend-study.md``).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from rankwright.basics.errors import InputError, quote
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.models.model import has_missing
from rankwright.rankers.base import Ranker
from rankwright.rankers.blend.candidates import Candidate
from rankwright.rankers.bounds.adarank import AdaRank
from rankwright.rankers.bounds.ranksvm import RankSVM
from rankwright.rankers.bounds.svm_map import SVMMap
from rankwright.rankers.exact.directrank import DirectRank
from rankwright.rankers.input_checks import check_among
from rankwright.rankers.listwise.listmle import ListMLE
from rankwright.rankers.listwise.listnet import ListNet
from rankwright.rankers.listwise.regression import Regression
from rankwright.rankers.smooth.softrank import SoftRank
from rankwright.rankers.stumps.frank import FRank
from rankwright.rankers.stumps.rankboost import RankBoost
from rankwright.rankers.trees.boosted_trees import BoostedTrees
from rankwright.rankers.trees.directrank_trees import DirectRankTrees
from rankwright.rankers.trees.gbrank import GBRank
from rankwright.rankers.trees.lambdamart import LambdaMART
from rankwright.rankers.trees.mart import MART
from rankwright.rankers.trees.tree_ranker import TreeRanker

FAMILIES = ("linear", "stumps", "trees")  # of the rankers, by the scorers that they yield
_ALPHAS = (0.01, 0.1, 1.0, 10.0, 100.0)
_FEW_DOCS, _MANY_DOCS = 50_000, 200_000  # documents up to which trees have few leaves, and from which on many
_MORE_ROUNDS = range(20_000, 100_000)  # documents for which more rounds of sampled trees pay and are affordable
_FEW_FEATURES = 300  # up to which exact searches along single features take little time
_MANY_FEATURES = 1_000  # from which on the matrix of a regression takes long, which no time limit ends
_MOST_PAIRS = 100_000  # up to which a user's measure is computed for swaps of documents: about a second a tree
_FEATURES = {"feature_fraction": 0.5}
_DIVERSE = {**_FEATURES, "bagging_fraction": 0.7, "bagging_freq": 1}

Setting = Mapping[str, Any]
_LOG = logging.getLogger(__name__)


def list_default_candidates(queries: Queries, measure: Measure) -> list[Candidate]:
    """Return the candidates of a default blend that can be fitted to these queries: a few settings of each member."""
    leaves = _choose_leaves(queries.n_docs)
    settings = [{"num_leaves": number} for number in leaves]
    found = [*_list_linear(measure), *_list_trees(measure, settings, 200), *_list_stumps(measure)]
    return [candidate for candidate in found if _can_fit(candidate.estimator, queries, measure)]


def list_auto_candidates(queries: Queries, measure: Measure, families: Collection[str] = FAMILIES) -> list[Candidate]:
    """Return the candidates of an automatic search, those first that gain the most per second of fitting.

    On up to 200,000 documents the first setting of every member comes before the second of any. Raise InputError if no
    ranker of the families takes these data.
    """
    if queries.n_docs > _MANY_DOCS:
        found = list(_list_large(measure, _choose_samples(queries)))
    else:
        settings = _list_tree_settings(queries.n_docs, _choose_samples(queries))
        linear, trees = list(_list_linear(measure)), list(_list_trees(measure, settings, 200))
        found = _interleave_members(
            [*linear[:2], *trees, *_list_stumps(measure), *linear[2:], *_list_slow(queries, measure)]
        )
    found = [candidate for candidate in found if find_family(candidate.estimator) in families]
    kept = [candidate for candidate in found if _can_fit(candidate.estimator, queries, measure)]
    left_out = dict.fromkeys(candidate.name for candidate in found if candidate not in kept)
    if left_out:
        _LOG.info("rankers that do not take these data are left out of the search: %s", ", ".join(left_out))
    if not kept:
        others = ", ".join(repr(each) for each in FAMILIES if each not in families)
        raise InputError(
            f"families={list(families)}: none of their rankers ({', '.join(left_out)}) takes the missing values, "
            "categories, document weights, the number of features or the measure of these data"
            + ("; add 'trees'" if "trees" not in families else f"; add some of {others}" if others else "")
        )
    return kept


def check_families(families: Any) -> tuple[str, ...]:
    """Return families of rankers as a tuple; raise InputError for anything but a list of some of ``FAMILIES``."""
    if isinstance(families, str) or not isinstance(families, Sequence) or not families:
        raise InputError(f"families={quote(families)}; expected a list of some of {', '.join(FAMILIES)}")
    for each in families:
        check_among("families", each, FAMILIES)
    return tuple(families)


def find_family(ranker: Ranker) -> str:
    """Return the family of a ranker, one of ``FAMILIES``.

    >>> [find_family(ranker) for ranker in (Regression(), RankBoost(), MART())]
    ['linear', 'stumps', 'trees']
    """
    if isinstance(ranker, TreeRanker):
        return "trees"
    return "stumps" if isinstance(ranker, (RankBoost, FRank)) else "linear"


def _choose_leaves(n_docs: int) -> tuple[int, int, int]:
    """Return three numbers of leaves for trees on this many documents."""
    return (4, 8, 16) if n_docs <= _FEW_DOCS else (8, 16, 31)


def _choose_samples(queries: Queries) -> Setting:
    """Return what trees sample: of features on a cluster no documents, as LightGBM would draw others on each worker."""
    return _DIVERSE if queries.backend is None else _FEATURES


def _list_tree_settings(n_docs: int, samples: Setting) -> list[Setting]:
    """Return four settings of trees on this many documents, the best choice for all folds first."""
    if n_docs in _MORE_ROUNDS:
        return [
            {"num_leaves": 8, "n_estimators": 600, "lightgbm_params": samples},
            {"num_leaves": 16, "n_estimators": 800, "learning_rate": 0.05, "lightgbm_params": samples},
            {"num_leaves": 31, "n_estimators": 600, "lightgbm_params": samples},
            {"num_leaves": 8, "n_estimators": 600, "min_child_samples": 50},
        ]
    first, second, third = _choose_leaves(n_docs)
    return [
        {"num_leaves": second},
        {"num_leaves": first},
        {"num_leaves": third, "min_child_samples": 50},
        {"num_leaves": second, "lightgbm_params": samples},
    ]


def _can_fit(ranker: Ranker, queries: Queries, measure: Measure) -> bool:
    """Return whether a ranker takes the missing values, categories and document weights of some queries."""
    return (
        (queries.n_features < _MANY_FEATURES or not isinstance(ranker, Regression))
        and not _takes_swaps_in_python(ranker, queries, measure)
        and (queries.backend is None or ranker._explain_not_distributed() is None)
        and (ranker.allow_nan or not has_missing(queries))
        and (ranker.takes_categories or queries.categories is None)
        and (queries.doc_weight is None or ranker.takes_doc_weight(measure))
    )


def _takes_swaps_in_python(ranker: Ranker, queries: Queries, measure: Measure) -> bool:
    """Return whether each tree of a ranker needs a measure of the user's own for too many swaps of documents."""
    if measure.family != "custom" or not isinstance(ranker, (LambdaMART, DirectRankTrees)):
        return False
    return int((queries.sizes * (queries.sizes - 1)).sum()) // 2 > _MOST_PAIRS


def _list_linear(measure: Measure) -> Iterator[Candidate]:
    """Yield linear members, most of them for several strengths of their penalty at once."""
    yield Candidate("regression", Regression(measure=measure), (0.001, *_ALPHAS, 1000.0))
    yield Candidate("ranksvm", RankSVM(loss="squared_hinge", measure=measure), (0.1, 1.0, 10.0, 100.0, 1000.0))
    yield Candidate("listmle", ListMLE(measure=measure), _ALPHAS)
    yield Candidate("adarank", AdaRank(measure=measure))
    yield Candidate("svmmap", SVMMap(measure=measure), (0.1, 1.0, 10.0, 100.0))


def _list_trees(measure: Measure, settings: Sequence[Setting], n_estimators: int) -> Iterator[Candidate]:
    """Yield members of boosted trees on four losses, each in several settings."""
    params: dict[str, Any] = {"measure": measure, "n_estimators": n_estimators}
    yield from _list_settings("listnet-trees", BoostedTrees(objective="top_one", **params), settings)
    yield from _list_settings("lambdamart", LambdaMART(**params), settings)
    yield from _list_settings("mart", MART(**params), settings)
    few = [{"num_leaves": setting["num_leaves"]} for setting in settings[:2]]
    yield from _list_settings("gbrank", GBRank(learning_rate=0.3, **params), few)


def _list_stumps(measure: Measure) -> Iterator[Candidate]:
    """Yield members of boosted stumps."""
    yield Candidate("rankboost", RankBoost(measure=measure))
    yield Candidate("frank", FRank(n_estimators=200, measure=measure))


def _list_slow(queries: Queries, measure: Measure) -> Iterator[Candidate]:
    """Yield members that take longer for what they bring."""
    yield from _list_settings(
        "directranktrees", DirectRankTrees(measure=measure), [{"num_leaves": 8}, {"num_leaves": 4}]
    )
    if queries.n_features <= _FEW_FEATURES:
        yield Candidate("directrank", DirectRank(n_restarts=3, measure=measure))
    yield Candidate("softrank", SoftRank(measure=measure))


def _list_large(measure: Measure, samples: Setting) -> Iterator[Candidate]:
    """Yield candidates for large data: many trees, which a time limit may cut short, and fast linear models."""
    params: dict[str, Any] = {"measure": measure, "n_estimators": 1000}
    settings: list[Setting] = [{"num_leaves": leaves, "lightgbm_params": samples} for leaves in (31, 63)]
    yield from _list_settings("lambdamart", LambdaMART(**params), settings)
    yield from _list_settings("lightgbm-lambdarank", LambdaMART(lambdas="lightgbm", **params), settings)
    yield from _list_settings("mart", MART(**params), settings)
    yield from _list_settings("listnet-trees", BoostedTrees(objective="top_one", **params), settings[1:2])
    yield Candidate("listnet", ListNet(measure=measure), (0.01, 1.0, 100.0))
    yield Candidate("regression", Regression(measure=measure), (0.001, *_ALPHAS, 1000.0))
    yield Candidate("ranksvm", RankSVM(loss="squared_hinge", measure=measure), (1.0, 100.0))
    yield Candidate("rankboost", RankBoost(measure=measure))


def _list_settings(name: str, ranker: Ranker, settings: Sequence[Setting]) -> Iterator[Candidate]:
    """Yield a candidate for each setting of a member's parameters."""
    for setting in settings:
        yield Candidate(name, type(ranker)(**{**ranker.get_params(), **setting}))


def _interleave_members(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates such that the first of every member comes before the second of any."""
    counts: dict[str, int] = {}
    keyed = []
    for candidate in candidates:
        counts[candidate.name] = counts.get(candidate.name, -1) + 1
        keyed.append((counts[candidate.name], candidate))
    return [candidate for _, candidate in sorted(keyed, key=lambda pair: pair[0])]
