"""ListMLE: the likelihood of the label order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from rankwright.measures import Measure
from rankwright.objectives.base import Objective
from rankwright.objectives.listwise import Likelihood
from rankwright.rankers.listwise.descent_ranker import Descending
from rankwright.rankers.networks.training_options import Training
from rankwright.runtime.backends import Backend


@final
class ListMLE(Descending):
    """ListMLE, linear or with hidden layers: the order of the grades made as likely as possible under Plackett-Luce.

    Minimises, over weights w of the scaled features,

        sum over queries of sum over j of [log(sum over l_i <= l_j of exp(s_i)) - s_j]  +  alpha ||w||^2.

    The problem is convex: there is one answer.

    Parameters
    ----------
    measure : str or Measure
        Reports, and selects.
    alpha : float
        L2 strength, against the sum over the queries; the useful range is 1e-6 to 1e3.
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
    Xia et al. (2008). Documents of one grade have no order: each is chosen among all of its grade or lower ones, so
    that the order of the rows does not matter. By L-BFGS (optimisers/descent.py), with an L2 penalty that the paper
    does not have.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(20, random_state=0)
    >>> bool(ListMLE().fit(queries).score(queries) > 0.6)
    True
    """

    def __init__(
        self,
        *,
        measure: str | Measure = "ndcg@10",
        alpha: float = 1.0,
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
        self.tol = tol
        self.max_iter = max_iter
        self.hidden = hidden
        self.training = training
        self.scale = scale
        self.random_state = random_state
        self.backend = backend

    def _objective(self, measure: Measure) -> Objective:
        return Likelihood()
