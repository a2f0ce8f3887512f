"""Inspection of a data set before training: facts, and findings with their meaning and the way out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from rankwright.analysis.inspection.document_sample import draw_sample
from rankwright.analysis.inspection.feature_facts import describe_features
from rankwright.analysis.inspection.feature_findings import find_copied_columns, find_feature_faults
from rankwright.analysis.inspection.finding_kinds import SEVERITIES, Finding
from rankwright.analysis.inspection.id_features import find_id_features
from rankwright.analysis.inspection.inspection_result import Inspection
from rankwright.analysis.inspection.label_leaks import find_label_leaks, find_label_names
from rankwright.analysis.inspection.order_findings import find_query_order, find_row_order, measure_row_order
from rankwright.analysis.inspection.query_facts import describe_queries, find_grade_faults, find_query_faults
from rankwright.analysis.inspection.row_findings import find_copied_rows
from rankwright.analysis.inspection.row_scan import compute_feature_keys, compute_recoded_keys, scan_rows, scan_sample
from rankwright.analysis.inspection.set_findings import (
    InspectedSet,
    find_new_categories,
    find_other_features,
    find_other_grades,
    find_shared_queries,
    find_shared_rows,
    find_shifts,
)
from rankwright.basics.errors import InputError, InspectionWarning, warn
from rankwright.data.queries import Categories, Queries
from rankwright.runtime.backends import Backend, resolve

SAMPLED_DOCS = 100_000
QUICK_DOCS = 10_000
_QUICK_QUERIES = 100  # with one id in both sets, whose documents are compared


def inspect(queries: Queries, against: Queries | None = None, *, backend: Backend | None = None) -> Inspection:
    """Inspect a data set before training: facts on queries, grades and features, and findings of what may be wrong.

    Parameters
    ----------
    queries : Queries
        The data set, such as the training queries; it may be a mapped file that is larger than memory.
    against : Queries, optional
        Another set that should be apart, such as the test queries: what is in both is found, and what differs.
    backend : Serial, Threads or None
        Where the work runs; None means all cores.

    Returns
    -------
    Inspection
        Facts and findings; ``print`` shows them as text, ``to_json`` makes a dictionary.

    Notes
    -----
    All rows are read once. Missing values, zeros, extremes and copies are exact; quartiles, distinct values, and how
    well a feature alone ranks, come from a sample of 100,000 documents of whole queries. Of data on a cluster, whose
    rows are read there, it has at most a twentieth. ``docs/inspect.md`` lists the findings, and how their
    thresholds were chosen.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(50, random_state=0)
    >>> leaking = queries.with_X(np.column_stack([queries.X[:, :4], 7 - 2 * queries.y]).astype(np.float32))
    >>> [finding.kind for finding in inspect(leaking).findings if finding.severity == "problem"]
    ['label-leak']
    """
    for given in (queries, queries if against is None else against):
        if not isinstance(given, Queries):
            raise InputError(
                f"found a {type(given).__name__}; expected Queries: rw.read(file), rw.Queries.from_frame(frame)"
            )
    backend = resolve(backend, queries, against)
    own = _scan_set(queries, backend)
    other = None if against is None else _scan_set(against, backend, queries.categories)
    facts = describe_queries(queries)
    findings = [*find_query_faults(facts, queries.qid), *find_grade_faults(facts)]
    alone, order = None, None
    if queries.has_grades:
        alone, leaks = find_label_leaks(own.sample, own.facts, backend)
        order = measure_row_order(own.queries.y, own.queries.indptr)
        findings += [*leaks, *find_row_order(own.queries, own.sample, own.facts.names), *find_query_order(own.queries)]
    findings += [
        *(find_label_names(queries.features or ())),
        *find_id_features(own.queries, own.sample, own.facts),
        *find_feature_faults(own.facts, own.sample),
        *find_copied_columns(own.queries, own.facts, backend),
        *find_copied_rows(own.queries, own.row_keys),
    ]
    if other is not None:
        findings += _compare_sets(own, other)
    other_facts = None if against is None else describe_queries(against)
    return Inspection(facts, own.facts, tuple(_sort(findings)), alone, order, other_facts)


def _scan_set(queries: Queries, backend: Backend, categories: Categories | None = None) -> InspectedSet:
    """Return what is found out about a set's rows and features; hashes of rows number categories as given."""
    grouped = queries.grouped()
    sample, scan = draw_sample(grouped, SAMPLED_DOCS), scan_rows(grouped, backend)
    keys, own = scan.row_keys, grouped.categories
    if categories is not None and own is not None and len(own) == len(categories) and own != categories:
        keys = compute_recoded_keys(grouped, categories, backend)
    return InspectedSet(grouped, keys, sample, describe_features(scan, sample, grouped, backend))


def _compare_sets(first: InspectedSet, second: InspectedSet) -> Iterator[Finding]:
    """Yield findings on two sets that should be apart and alike."""
    named = first.queries.features is not None and second.queries.features is not None
    yield from find_other_features(first.facts, second.facts, named)
    places = {name: j for j, name in enumerate(second.facts.names)}
    columns = [(i, places[name]) for i, name in enumerate(first.facts.names) if name in places]
    if first.queries.n_features == second.queries.n_features:
        yield from find_shared_queries(first.queries, second.queries, first.row_keys, second.row_keys)
        yield from find_shared_rows(first, second)
    yield from find_shifts(first, second, columns)
    yield from find_new_categories(first, second, columns)
    if first.queries.has_grades and second.queries.has_grades:
        yield from find_other_grades(first.queries, second.queries)


def _sort(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with the most severe first."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def inspect_quickly(
    queries: Queries, against: Queries | None = None, *, backend: Backend | None = None
) -> list[Finding]:
    """Return the findings that make results worthless without any other sign, from a sample of 10,000 documents.

    These are features that give the label away or look like ids, the order of the rows, labels that look like scores
    and, of another set, queries that are in both under one id.
    """
    backend, grouped = resolve(backend, queries, against), queries.grouped()
    sample = draw_sample(grouped, QUICK_DOCS)
    facts = describe_features(scan_sample(sample), sample, grouped, backend)
    findings = [*find_label_names(queries.features or ()), *find_id_features(grouped, sample, facts)]
    if queries.has_grades:
        findings += find_label_leaks(sample, facts, backend)[1]
        findings += find_row_order(grouped, sample, facts.names)
        findings += [each for each in find_grade_faults(describe_queries(queries)) if each.kind == "grades-like-scores"]
    if against is not None and against.n_features == queries.n_features:
        findings += _find_same_queries(grouped, against.grouped())
    return _sort(findings)


def _find_same_queries(first: Queries, second: Queries) -> Iterator[Finding]:
    """Yield a finding if queries of one id have the same documents in both sets; at most 100 of one id are compared."""
    places = {str(query): at for at, query in enumerate(first.qid.tolist())}
    both = [(places[str(query)], at) for at, query in enumerate(second.qid.tolist()) if str(query) in places]
    if both:
        ours, theirs = (np.array(each) for each in zip(*both[:_QUICK_QUERIES], strict=True))
        one, other = first.take(ours), second.take(theirs)
        found = find_shared_queries(one, other, *(part.compute_scores(compute_feature_keys) for part in (one, other)))
        yield from (finding for finding in found if finding.kind == "shared-queries")


def warn_of_findings(queries: Queries, against: Queries | None = None, *, backend: Backend | None = None) -> None:
    """Inspect a data set quickly, and issue one warning if something was found."""
    findings = inspect_quickly(queries, against, backend=backend)
    if findings:
        more = f" And {len(findings) - 3} more." if len(findings) > 3 else ""
        listed = ". ".join(str(finding) for finding in findings[:3])
        warn(f"{listed}.{more} What it means and the way out: rankwright inspect", InspectionWarning)
