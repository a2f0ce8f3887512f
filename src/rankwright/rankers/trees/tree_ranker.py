"""The base of all rankers of trees: how trees are grown, the loop, going on from a model, and polishing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.basics.randomness import make_generator
from rankwright.data.categories import Categories, list_categorical
from rankwright.data.feature_numbers import COLUMN_LISTS, find_column_lists, name_features
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.models.model import Model
from rankwright.models.model_files import load
from rankwright.optimisers.ascent import ClimbRules
from rankwright.optimisers.boosting_loop import boost
from rankwright.optimisers.rounds import Deadline, RoundRecorder
from rankwright.optimisers.weak.distributed_trees import explain_refusal
from rankwright.optimisers.weak.regression_trees import LIGHTGBM_NAMES, RegressionTree, check_lightgbm_params
from rankwright.rankers.base import FitResult
from rankwright.rankers.boosting import AdditiveRanker
from rankwright.rankers.common_parameters import SeededRanker
from rankwright.rankers.fit_memory import DataSize, estimate_trees
from rankwright.rankers.input_checks import check_early_stopping, check_number, check_whole
from rankwright.rankers.trees.tree_boosting import GrownTree, TreeStages, join_histories, polish_trees
from rankwright.runtime.backends import Backend
from rankwright.scorers import Trees
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import MAX_LEAVES

_HIGHEST = 1e15  # grade; LightGBM has single precision, and squares
_OF_A_ROUND = ("round", "train", "valid", "kept")

LEAVES = (4, 10, 31)  # of default grids, which have as many combinations for every ranker of trees

_FASTEST = 1e6  # learning rate; from 1 on trees overshoot, and soon their sums are no numbers


@dataclass(kw_only=True, eq=False, repr=False)
class TreeRanker(AdditiveRanker, SeededRanker):
    """A ranker whose scores are a sum of regression trees that LightGBM grows: the base of all rankers of trees.

    Parameters
    ----------
    measure : str or Measure
        Measure recorded in `history_`, which with validation queries chooses how many trees are kept.
    scale : "query", "standard" or None
        Scaling of the features. Only scaling per query makes a difference to trees.
    random_state : int, Generator or None
        The seed of LightGBM, where its parameters ask for anything random, and of the order of the trees in polishing.
    n_estimators : int
        The largest number of trees, those of an earlier model included.
    warm_start : bool
        Whether to continue after the trees of the last fit. The random numbers of LightGBM begin anew.
    init_model : path, optional
        A saved model, or a model file of LightGBM, XGBoost or another library of trees, whose trees the first fit
        continues after.
    num_leaves : int
        The largest number of leaves of a tree.
    min_child_samples : int
        The smallest number of documents in a leaf.
    early_stopping_rounds : int or None
        Stop after this many trees without a better measure on validation queries; None for never.
    polish_rounds : int
        The largest number of rounds of exact line searches on the measure, over the weights of all trees, once these
        are grown; 0 for none. With validation queries the step that is best on them is kept, or the trees as they were
        grown.
    lightgbm_params : mapping or None
        More of LightGBM's parameters, by its full names: ``{"lambda_l2": 1.0, "monotone_constraints": [1, 0]}``.

    Attributes
    ----------
    feature_importances_ : array of shape (n_features,)
        The share of each feature in the gains of all splits.
    booster_ : lightgbm.Booster
        The trees as LightGBM's own model.
    lightgbm_params_ : dict
        The parameters that LightGBM was given.
    """

    allow_nan: ClassVar[bool] = True
    takes_categories: ClassVar[bool] = True
    takes_distributed: ClassVar[bool] = True
    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"num_leaves": LEAVES}
    nested_names: ClassVar[Mapping[str, Collection[str]]] = {"lightgbm_params": LIGHTGBM_NAMES}
    grows_native: ClassVar[bool] = False
    bytes_per_doc: ClassVar[int] = 150

    scale: str | None = None
    n_estimators: int = 100
    num_leaves: int = 31
    min_child_samples: int = 20
    early_stopping_rounds: int | None = None
    polish_rounds: int = 0
    lightgbm_params: Mapping[str, Any] | None = None

    scorer_: Trees = field(init=False)

    @property
    def is_stagewise(self) -> bool:
        """Whether the first trees are the model that fewer rounds would have made: they are not once polished."""
        return self.polish_rounds == 0

    @abstractmethod
    def _stages(self, setting: tuple[Any, ...]) -> TreeStages:
        """Return the boosting of trees for (train, valid, measure, weak, backend)."""

    def _find_ineffective(self, measure: Measure, valid: Queries | None) -> Iterator[tuple[str, str]]:
        if self.scale == "standard":
            yield "scale", "splits depend on the order of a feature's values, which only scale='query' changes"

    def _more_memory(self, size: DataSize) -> float:
        polished = self.n_estimators * size.n_docs * (1 if self.num_leaves <= 256 else 2) if self.polish_rounds else 0
        return polished + estimate_trees(size, self.num_leaves, self.lightgbm_params or {}, self.bytes_per_doc)

    def _rate(self) -> float:
        """Return the factor that LightGBM multiplies the values of a tree by."""
        return 1.0

    @property
    def _native(self) -> bool:
        """Whether trees are for an objective of LightGBM's own."""
        return self.grows_native

    def _explain_not_distributed(self) -> str | None:
        why = explain_refusal(check_lightgbm_params(self.lightgbm_params, native=self._native))
        return None if why is None else f"{why}; without this parameter {type(self).__name__} trains on the cluster"

    def _check_trees(self) -> None:
        """Check the parameters of trees that do not depend on the data."""
        check_lightgbm_params(self.lightgbm_params, native=self._native)
        _check_leaves(self.num_leaves)
        check_whole("min_child_samples", self.min_child_samples, least=1)
        self._rate()

    def _check_own(self, measure: Measure) -> None:
        """Check the parameters that only this ranker has; by default there are none."""

    def _weak(self, names: Sequence[str], categorical: Sequence[int]) -> RegressionTree:
        params, n_features = check_lightgbm_params(self.lightgbm_params, native=self._native), len(names)
        for name in COLUMN_LISTS:
            if params.get(name) is not None:
                params[name] = find_column_lists(params[name], names, name)
        signs = params.get("monotone_constraints")
        if signs is not None and (np.shape(signs) != (n_features,) or not np.isin(signs, (-1, 0, 1)).all()):
            raise InputError(
                f"monotone_constraints={quote(signs)}; expected -1, 0 or 1 for each of {n_features} features"
            )
        held = [names[i] for i in categorical if signs is not None and signs[i] != 0]
        if held:  # LightGBM would end the process
            raise InputError(
                f"monotone_constraints={quote(signs)} for {held[0]}, whose categories have no order; expected 0 for it"
            )
        return RegressionTree(
            _check_leaves(self.num_leaves),
            check_whole("min_child_samples", self.min_child_samples, least=1),
            self._rate(),
            params,
            int(make_generator(self.random_state).integers(2**31 - 1)),
        )

    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> FitResult:
        n_estimators, polish = (
            check_whole("n_estimators", self.n_estimators, least=1),
            check_whole("polish_rounds", self.polish_rounds, least=0),
        )
        early_stopping_rounds = (
            None
            if self.early_stopping_rounds is None
            else check_whole("early_stopping_rounds", self.early_stopping_rounds, least=1)
        )
        self._check_additive()
        self._check_trees()
        self._check_own(measure)
        check_early_stopping("early_stopping_rounds", early_stopping_rounds, valid is not None)
        weak = self._weak(name_features(train.features, train.n_features), list_categorical(train.categories))
        if float(np.abs(train.y).max()) > _HIGHEST:
            raise InputError(f"a grade of {np.abs(train.y).max():g}; LightGBM takes {_HIGHEST:g} at most")
        recorder = RoundRecorder[None](deadline=Deadline(self.max_seconds), early_stopping_rounds=early_stopping_rounds)
        stages = self._stages((train, valid, measure, weak, backend))
        recorder.make_scorer = lambda: Trees(stages.forest.take_first(recorder.n_kept))
        with closing(stages):
            boost(stages, n_estimators, recorder, self._done(train)[:n_estimators])
        n_trees, history = recorder.n_kept, recorder.finish()
        if n_trees and "train" not in history[n_trees - 1]:
            history[n_trees - 1] |= stages.evaluate_training(n_trees)
        forest = stages.forest.take_first(n_trees)
        if polish and n_trees:
            rules = ClimbRules(
                max_rounds=polish, least=0.0 if forest.is_monotone else weak.min_weight, stop=recorder.deadline
            )
            forest, more = polish_trees(forest, train, valid, measure, rules, weak.seed, backend)
            history = join_histories(history, more)
        self.lightgbm_params_ = weak.to_lightgbm(stages.n_threads, **stages.objective_of_lightgbm)
        return FitResult(Trees(forest), history, recorder.deadline.explain(), self._why_no_split(train.n_docs))

    def _why_no_split(self, n_docs: int) -> str:
        """Return why no tree of a model splits, where none does, and the way out."""
        least = self.min_child_samples
        if n_docs < 2 * least:
            return f"{n_docs} documents cannot be split into leaves of {least} or more; lower min_child_samples={least}"
        return "no split of the documents lowers the loss; lower min_child_samples, or check the features"

    def _done(self, train: Queries) -> list[GrownTree]:
        """Return the trees to continue after, with the records of their rounds."""
        forest, history = self._earlier(train)
        if forest is None:
            return []
        notes = [{name: row[name] for name in row if name not in _OF_A_ROUND} for row in history[: len(forest)]]
        notes += [{} for _ in range(len(forest) - len(notes))]
        return [GrownTree(Forest(forest.header, (tree,)), note) for tree, note in zip(forest.trees, notes)]

    def _earlier(self, train: Queries) -> tuple[Forest | None, list[dict[str, Any]]]:
        """Return the trees and the history of the model to continue."""
        model = self._read_earlier()
        if model is None:
            return None, []
        if model.scorer.trees is None:
            raise InputError(f"init_model: a model of {model.ranker}; expected one of trees")
        forest = model.scorer.trees.forest
        if forest.categorical and model.categories is None:
            raise InputError(
                f"init_model: trees of {model.ranker} that split feature {min(forest.categorical) + 1} by category "
                "without the values of the categories; expected a model that Rankwright saved"
            )
        self._check_model(model, train)
        return forest, model.history if model.ranker == type(self).__name__ else []

    def _read_earlier(self) -> Model | None:
        """Return the model to continue, which may be one of another library; None if there is nothing."""
        last = self._last_model()
        return load(self.init_model) if last is None and self.init_model is not None else last

    def _earlier_categories(self, train: Queries) -> Categories | None:
        """Return the categories of the model to continue, whose trees know the numbers of these."""
        model = None if train.categories is None else self._read_earlier()
        return model.categories if model is not None and model.n_features == train.n_features else None

    def _sorts_rows(self) -> bool:
        """Return False: trees have the bits of LightGBM on the caller's rows."""
        return False

    @property
    def feature_importances_(self) -> Floats:
        """Return the summed gain of each feature's splits, as a share of all gains."""
        gains = self._trees.importance()
        shares: Floats = gains / (gains.sum() or 1.0)
        return shares

    @property
    def booster_(self) -> Any:
        """The trees as LightGBM's own Booster."""
        return self._trees.booster()

    def contributions(self, X: Any, *, qid: ArrayLike | None = None) -> Floats:
        """Return SHAP values by document and feature, and the mean score in a last column: a row adds up to the score.

        ``qid`` is needed with arrays under ``scale="query"`` only.
        """
        queries = X if isinstance(X, Queries) else self._group_documents(X, qid)
        return self.to_model().adapt(queries).compute_scores(self._trees.contributions)

    @property
    def _trees(self) -> Trees:
        trees = self.to_model().scorer.trees
        assert trees is not None
        return trees


@dataclass(kw_only=True, eq=False, repr=False)
class GradientTreeRanker(TreeRanker):
    """A ranker of trees with the parameter ``learning_rate``, which multiplies the values of each tree.

    Parameters
    ----------
    learning_rate : float
        The factor that the values of a tree are multiplied by.
    """

    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"num_leaves": LEAVES, "learning_rate": (0.03, 0.1)}

    learning_rate: float = 0.1

    def _rate(self) -> float:
        rate = check_number("learning_rate", self.learning_rate, least=0.0)
        if rate == 0.0:
            raise InputError("learning_rate=0; expected a number above 0")
        if rate > _FASTEST:
            raise InputError(f"learning_rate={rate:g}; expected a number above 0 and at most {_FASTEST:g}")
        return rate


def _check_leaves(value: Any) -> int:
    """Return ``num_leaves`` as an int; raise InputError if it is below 2 or above what a tree can have."""
    num_leaves = check_whole("num_leaves", value, least=2)
    if num_leaves > MAX_LEAVES:
        raise InputError(f"num_leaves={num_leaves}; a tree has {MAX_LEAVES:,} leaves at most")
    return num_leaves
