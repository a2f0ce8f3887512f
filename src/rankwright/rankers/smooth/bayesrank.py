"""BayesRank: the measure in the mean over the rankings that scores make probable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.basics.optional_imports import require
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.graded_pairs import compute_misordered_shares
from rankwright.kernels.objectives.hinge_pairs import find_grade_places
from rankwright.measures import Measure, TableMeasure
from rankwright.measures.base import weighted_mean
from rankwright.objectives.listwise_objectives import ExpectedMeasure
from rankwright.optimisers.epochs import ADAPTIVE
from rankwright.optimisers.rounds import Deadline
from rankwright.rankers.base import FitResult
from rankwright.rankers.common_parameters import LinearModelRanker
from rankwright.rankers.fit_memory import VALUE, DataSize
from rankwright.rankers.input_checks import check_among, check_strength, check_whole
from rankwright.rankers.networks.epoch_training import Phase, TrainingData, fit_linear
from rankwright.rankers.networks.network_ranker import NetworkDesign, NetworkRanker
from rankwright.rankers.networks.training_options import TrainingOptions, check_hidden
from rankwright.runtime.backends import Backend

USUAL = TrainingOptions(optimiser=ADAPTIVE, learning_rate=1.0, n_epochs=200, activation="tanh")
_EXACT = 2  # ranks of which the expectation is exact
GAINS = (None, "exp", "linear", "pow2")


@final
@dataclass(kw_only=True, eq=False, repr=False)
class BayesRank(LinearModelRanker, NetworkRanker):
    """BayesRank, linear or a network: maximises the expected measure over rankings drawn by Plackett-Luce.

    Minimises, over the weights of a network (or of a linear scorer),

        sum over queries of E[1 - measure(ranking)]  +  alpha ||w||^2,

    where a ranking has the probability that documents are drawn one after another in its order, each with a chance in
    proportion to exp(score) among those that are left.

    Parameters
    ----------
    measure : str or Measure
        Measure whose expectation is maximised, recorded in `history_`, and used to choose the kept epoch.
    k : int or None
        How many ranks count in training, whatever the measure's cut-off, which precision, recall and a user's measure
        keep in any case; None for the measure's own. One and two, the paper's, are exact; more are sampled.
    gain : None, "exp", "linear" or "pow2"
        The gain of a grade l in training: that of the measure (None), 2^l - 1, l, or 2^l as in eq. (7), with
        which irrelevant documents have a gain too.
    hidden : sequence of int or None
        The widths of hidden layers. Networks need torch; None or () is a linear scorer, which does not.
    n_samples : int
        How many rankings are drawn of each query at each step, for more than two ranks.
    alpha : float
        L2 strength, against the sum over the queries.
    training : TrainingOptions, mapping or None
        Options of training; by default those of algorithm 1: batch descent with an adaptive rate. A mapping such as
        ``{"n_epochs": 50}`` replaces some of them; TrainingOptions replaces all. A linear scorer takes one step an
        epoch with Adam, too.
    random_state : int, Generator or None
        The seed of the first weights, the order of batches, and the samples.

    Attributes
    ----------
    history_ : list of dict
        A row per epoch: ``loss`` (the risk, summed over the queries), ``objective`` (with the penalty), ``expected``
        (the mean of the expected measure), ``misordered`` (the mean share of pairs in the wrong order), ``train``,
        ``valid``, and ``kept`` in the epoch that is the model: the best one on validation queries, or else the last.

    Notes
    -----
    Kuo et al. (2009), eq. (10) to (15) with the loss 1 - E of section 3.2; algorithm 1 with the sign of eq. (15), which
    it prints without the minus of eq. (13). ``expected`` and ``misordered`` are figure 8.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(20, random_state=0)
    >>> bool(BayesRank(hidden=None).fit(queries).score(queries) > 0.6)
    True
    """

    k: int | None = 2
    gain: str | None = None
    hidden: Sequence[int] | None = (10,)
    n_samples: int = 8
    alpha: float = 0.0

    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hidden": ((5,), (10,), (20,))}

    def _more_memory(self, size: DataSize) -> float:
        # a linear scorer is trained on a scaled copy of the features
        return super()._more_memory(size) + (0 if self.hidden else VALUE * size.n_values)

    def _find_ineffective(self, measure: Measure, valid: Queries | None) -> Iterator[tuple[str, str]]:
        if isinstance(self.k, int) and self.k <= _EXACT:
            yield "n_samples", f"the expectation over the first {self.k} ranks is exact; only k above 2 is sampled"
        yield from TrainingOptions.of(self.training, USUAL).ineffective(is_network=bool(check_hidden(self.hidden)))

    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> FitResult:
        alpha, hidden = check_strength("alpha", self.alpha), check_hidden(self.hidden)
        training = TrainingOptions.of(self.training, USUAL)
        objective = self._objective(measure)

        places = find_grade_places(train.y, train.indptr)

        def observe(scores: Floats) -> dict[str, Any]:
            return {
                "misordered": weighted_mean(compute_misordered_shares(scores, places, train.indptr), train.query_weight)
            }

        if hidden:
            _require_torch()
            design = NetworkDesign(hidden, training, self.scale, self.random_state, self.max_seconds)
            phases = [Phase(objective, training.n_epochs)]
            [outcome] = design.fit(phases, [alpha], train, valid, measure, backend, observe=observe)
        else:
            deadline = Deadline(self.max_seconds)
            data = TrainingData(train, valid, measure, self.scale, backend)
            outcome = fit_linear(objective, training.for_linear(), alpha, self.random_state, data, deadline, observe)
        total = float(train.query_weight[measure.prepare(train).is_counted].sum())
        history = [{**row, "expected": 1.0 - row["loss"] / total} for row in outcome.history]
        return outcome._replace(history=history)

    def _objective(self, measure: Measure) -> ExpectedMeasure:
        """Return the expected measure to maximise, with a discount that distinguishes all ranks."""
        check_among("gain", self.gain, GAINS)
        k = None if self.k is None else check_whole("k", self.k, least=1)
        target = measure.for_upper_bounds()
        target = target.with_cut_off(k or target.cut_off)
        if self.gain is not None:
            if not isinstance(target, TableMeasure) or target.name not in ("ndcg", "dcg"):
                raise InputError(f"gain={self.gain!r} with {measure}; only NDCG and DCG have gains to choose")
            target = replace(target, gain=self.gain)
        return ExpectedMeasure(target, check_whole("n_samples", self.n_samples, least=1))


def _require_torch() -> None:
    """Raise ImportError if torch is not installed, with the advice to train a linear scorer."""
    try:
        require("torch")
    except ImportError as error:
        raise ImportError(f"{error}, or train a linear scorer: BayesRank(hidden=None)") from error
