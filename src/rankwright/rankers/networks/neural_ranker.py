"""NeuralRanker: any objective, for a network of any kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.objective_names import as_objective
from rankwright.rankers.base import FitResult
from rankwright.rankers.input_checks import check_strength
from rankwright.rankers.listwise.descent_ranker import adapt_for_training
from rankwright.rankers.networks.epoch_training import Phase
from rankwright.rankers.networks.network_ranker import NetworkDesign, NetworkRanker
from rankwright.rankers.networks.training_options import TrainingOptions, check_hidden
from rankwright.runtime.backends import Backend


@final
@dataclass(kw_only=True, eq=False, repr=False)
class NeuralRanker(NetworkRanker):
    """A network that minimises any objective: a built-in one, or your own function. It needs torch.

    Minimises, over the weights w of the network,

        sum over queries of the objective  +  alpha ||w||^2.

    Parameters
    ----------
    objective : str, Objective or callable
        A name (see ``rankwright.objectives``), an objective such as ``ExpectedMeasure(rw.ERR())``, or a function
        (scores, queries) -> (loss, gradient). Both are sums over the queries that it is given, which are a batch.
    measure : str or Measure
        Measure recorded in `history_` and used to choose the kept epoch; also the one that an objective by name is of,
        if it is of one.
    hidden : sequence of int
        The widths of hidden layers.
    network : torch module, callable or None
        A module that takes a matrix of documents and returns a score for each, or a function of the number of features
        that makes one; in place of ``hidden``.
    alpha : float
        L2 strength, against the sum over the queries; biases are not penalised.
    random_state : int, Generator or None
        The seed of the first weights, the order of batches, and samples.

    Attributes
    ----------
    history_ : list of dict
        A row per epoch: ``loss`` (summed over the queries, as it was met), ``objective`` (with the penalty), ``train``,
        ``valid``, and ``kept`` in the epoch that is the model: the best one on validation queries, or else the last.

    Notes
    -----
    Plain feed-forward networks are saved as arrays, and predict without torch; a module of another kind is kept as
    ``scorer_.module``, and is not saved.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(20, random_state=0)
    >>> training = {"learning_rate": 0.03, "n_epochs": 40}
    >>> ranker = NeuralRanker(objective="lambdas", hidden=(8,), training=training).fit(queries)
    >>> bool(ranker.score(queries) > 0.6)
    True
    """

    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"alpha": (0.0, 1.0, 10.0)}

    objective: Any = "lambdas"
    hidden: Sequence[int] | None = (64,)
    network: Any = None
    alpha: float = 0.0

    def takes_doc_weight(self, measure: Measure) -> bool:
        """Return whether the objective takes document weights."""
        return as_objective(self.objective, adapt_for_training(measure)).takes_doc_weight

    def _find_ineffective(self, measure: Measure, valid: Queries | None) -> Iterator[tuple[str, str]]:
        if self.network is not None:
            if self.hidden:
                yield "hidden", "network says what layers there are"
            yield "training.activation", "network says what is between its layers"
        yield from TrainingOptions.of(self.training).ineffective(is_network=True)

    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> FitResult:
        alpha, hidden = check_strength("alpha", self.alpha), check_hidden(self.hidden)
        if not hidden and self.network is None:
            raise InputError(f"hidden={self.hidden!r}; expected hidden layers (LinearRanker is without)")
        training = TrainingOptions.of(self.training)
        phases = [Phase(as_objective(self.objective, adapt_for_training(measure)), training.n_epochs)]
        design = NetworkDesign(hidden, training, self.scale, self.random_state, self.max_seconds, self.network)
        [outcome] = design.fit(phases, [alpha], train, valid, measure, backend)
        return outcome
