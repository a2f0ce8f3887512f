"""RankNet: cross entropy of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from rankwright.measures import Measure
from rankwright.objectives.base import Objective
from rankwright.objectives.pairwise import Fidelity, Logistic
from rankwright.rankers.listwise.descent_ranker import Descending
from rankwright.rankers.networks.training_options import Training
from rankwright.rankers.parameter_checks import check_among
from rankwright.runtime.backends import Backend


@final
class RankNet(Descending):
    """RankNet, linear or with hidden layers: the cross entropy of pairs of documents with different grades.

    Minimises, over weights w of the scaled features,

        sum over queries of (the mean over) pairs l_i > l_j of log(1 + exp(-(s_i - s_j)))  +  alpha ||w||^2.

    The problem is convex: there is one answer.

    Parameters
    ----------
    measure : str or Measure
        Reports, and selects.
    alpha : float
        L2 strength, against the sum over the queries; the useful range is 1e-6 to 1e3.
    loss : "logistic" or "fidelity"
        The cross entropy, or FRank's loss, which a pair cannot raise above 1, and which is not convex.
    per : "pair" or "query"
        Whether all pairs count alike, or all queries that have any, whatever their number of pairs.
    tol : float
        Training ends where the objective is estimated to be at most this part of it above its minimum: half
        of g' H^-1 g, with the gradient g and the second derivative H as far as L-BFGS knows it. It warns otherwise.
    max_iter : int
        The most steps.
    hidden : sequence of int or None
        The widths of hidden layers: a network, trained by torch, in place of the linear scorer. The model is then the
        epoch that is best on validation queries.
    training : Training, mapping or None
        How a network is trained.
    scale : "standard", "query" or None
        Scaling of the features.
    random_state : int, Generator or None
        Of a network: its first weights, and the order of batches.
    backend : Serial, Threads or None
        Where the work runs; None means all cores.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights in raw units.
    history_ : list of dict
        Of the steps 1, 2, 4, 8, ... and the last, which is the model: ``loss``, ``objective`` (with the penalty),
        ``train``, ``valid``.

    Notes
    -----
    Burges et al. (2005). Gradients are summed per document, not per pair. By L-BFGS (optimisers/descent.py) in place of
    stochastic steps.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(20, random_state=0)
    >>> bool(RankNet().fit(queries).score(queries) > 0.6)
    True
    """

    def __init__(
        self,
        *,
        measure: str | Measure = "ndcg@10",
        alpha: float = 1.0,
        loss: str = "logistic",
        per: str = "query",
        tol: float = 1e-10,
        max_iter: int = 500,
        hidden: Sequence[int] | None = None,
        training: Training | Mapping[str, Any] | None = None,
        scale: str | None = "standard",
        random_state: int | np.random.Generator | None = 0,
        backend: Backend | None = None,
    ) -> None:
        self.measure = measure
        self.alpha = alpha
        self.loss = loss
        self.per = per
        self.tol = tol
        self.max_iter = max_iter
        self.hidden = hidden
        self.training = training
        self.scale = scale
        self.random_state = random_state
        self.backend = backend

    def _objective(self, measure: Measure) -> Objective:
        check_among("per", self.per, ("pair", "query"))
        check_among("loss", self.loss, ("logistic", "fidelity"))
        return Logistic(self.per) if self.loss == "logistic" else Fidelity(self.per)
