"""The result of an inspection, as facts, findings, JSON and text."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np

from rankwright.analysis.inspection.feature_facts import FeatureFacts
from rankwright.analysis.inspection.finding_kinds import KINDS, SEVERITIES, Finding
from rankwright.analysis.inspection.label_leaks import SingleFeatures
from rankwright.analysis.inspection.order_findings import RowOrder
from rankwright.analysis.inspection.query_facts import MOST_GRADES, QueryFacts
from rankwright.basics.errors import make_printable
from rankwright.basics.html_tables import NotebookText
from rankwright.models.model import to_json_value

_WIDTH = 100
_MOST_FEATURES = 60  # in text: of more only those with findings


@dataclass(frozen=True, slots=True, eq=False)
class Inspection(NotebookText):
    """The result of inspecting a data set: facts, and findings with their meaning and the way out.

    Parameters
    ----------
    queries : QueryFacts
        Numbers of queries, documents and grades.
    features : FeatureFacts
        Missing values, extremes, quartiles and so on of each feature.
    findings : tuple of Finding
        What may be wrong, the most severe first.
    alone : SingleFeatures, optional
        How well each feature alone ranks; None without grades.
    row_order : RowOrder, optional
        How well the order of the rows ranks; None without grades.
    against : QueryFacts, optional
        The same of the other set, if one was given.
    """

    queries: QueryFacts
    features: FeatureFacts
    findings: tuple[Finding, ...]
    alone: SingleFeatures | None = None
    row_order: RowOrder | None = None
    against: QueryFacts | None = None

    def __repr__(self) -> str:
        counts = [f"{n} {name}{'s' if n > 1 else ''}" for name, n in self.count_findings().items() if n]
        return f"Inspection({self.queries.n_queries} queries; {', '.join(counts) or 'nothing found'})"

    def __str__(self) -> str:
        return format_text(self)

    def __getitem__(self, kind: str) -> list[Finding]:
        if kind not in KINDS:
            raise KeyError(f"no finding is called {kind!r}; there are {', '.join(KINDS)}")
        return [finding for finding in self.findings if finding.kind == kind]

    def count_findings(self) -> dict[str, int]:
        """Return how many findings there are of each severity."""
        return {name: sum(each.severity == name for each in self.findings) for name in SEVERITIES}

    def to_json(self) -> dict[str, Any]:
        """Return facts and findings as a dictionary that can be written as JSON; NaN becomes null."""
        features = self.features.to_json()
        if self.alone is not None:
            for j, feature in enumerate(features):
                feature["alone"] = float(self.alone.accuracy[j]) * 1.0
                feature["higher_is_better"] = bool(self.alone.rising[j] > 0)
        content = {
            **self.queries.to_json(),
            "sampled_documents": self.features.sampled_docs,
            "row_order": None if self.row_order is None else self.row_order._asdict() | {"z": self.row_order.z},
            "against": None if self.against is None else self.against.to_json(),
            "findings": [finding.to_json() for finding in self.findings],
            "feature_facts": features,
        }
        plain: dict[str, Any] = to_json_value(_replace_nan(content))
        return plain


def _replace_nan(value: Any) -> Any:
    """Return a value with None in place of each number that is not finite."""
    if isinstance(value, dict):
        return {key: _replace_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace_nan(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def format_text(found: Inspection) -> str:
    """Return an inspection as text: facts on the queries, a table of the features, and the findings."""
    parts = ["\n".join(describe_set(found.queries)), _format_features(found), _format_findings(found)]
    if found.against is not None:
        other = [f"  {line}" for line in describe_set(found.against)]
        parts.insert(1, "\n".join(["The other set:", *other]))
    return make_printable("\n\n".join(parts), keep="\n")


def describe_set(facts: QueryFacts) -> list[str]:
    """Return lines of text on the queries and grades of a data set."""
    low, first, middle, third, high = facts.size_quartiles
    lines = [
        f"{facts.n_queries:,} queries, {facts.n_docs:,} documents, {facts.n_features:,} features",
        f"Documents per query: {low:g} to {high:g}, median {middle:g}, quartiles {first:g} and {third:g}",
    ]
    if not len(facts.grades):
        lines.append("Grades: none; whatever needs them was left out")
    elif len(facts.grades) <= MOST_GRADES:
        shares = facts.counts / facts.n_docs
        listed = [f"{grade:g}: {n:,} ({s:.1%})" for grade, n, s in zip(facts.grades, facts.counts, shares, strict=True)]
        lines.append(f"Grades: {', '.join(listed)}")
    else:
        lines.append(f"Grades: {len(facts.grades):,} different, from {facts.grades[0]:g} to {facts.grades[-1]:g}")
    return lines


def _format_features(found: Inspection) -> str:
    """Return the table of the features as aligned text."""
    facts, shown = found.features, np.arange(len(found.features.names))
    note = ""
    if len(shown) > _MOST_FEATURES:
        named = {name for finding in found.findings for name in finding.where}
        shown = np.array([j for j in shown.tolist() if facts.names[j] in named or j < 10][:_MOST_FEATURES])
        note = f"\n{len(shown)} of {len(facts.names):,} features; --json and --page have all."
    header = ["feature", "missing", "zeros", "min", "25%", "median", "75%", "max", "distinct", "alone"]
    rows = [header, *(make_feature_row(found, int(j)) for j in shown)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(w) if c == 0 else cell.rjust(w) for c, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    explained = fill(f"{describe_columns(found)} A v: lower values are better.", _WIDTH)
    return "\n".join(line.rstrip() for line in lines) + note + "\n" + explained


def describe_columns(found: Inspection) -> str:
    """Return sentences on what the columns of the table of features mean."""
    facts, text = found.features, ""
    if facts.sampled_docs < facts.n_docs:
        text = f"Quartiles, distinct values and alone: of a sample of {facts.sampled_docs:,} documents. "
    return (
        f"{text}Alone: of the pairs of different grades, the share that the feature alone puts in the right order; "
        "ties count half."
    )


def make_feature_row(found: Inspection, column: int) -> list[str]:
    """Return the facts on a feature as texts."""
    facts, alone = found.features, ""
    if found.alone is not None and not np.isnan(found.alone.accuracy[column]):
        alone = f"{found.alone.accuracy[column]:.3f}" + ("" if found.alone.rising[column] > 0 else " v")
    shares = [f"{count[column] / facts.n_docs:.1%}" for count in (facts.missing, facts.zeros)]
    values = [facts.low[column], *facts.quantiles[1:4, column], facts.high[column]]
    texts = ["" if np.isnan(value) else f"{value:.4g}" for value in values]
    if facts.is_categorical[column]:
        texts = [""] * len(texts)
    return [facts.names[column], *shares, *texts, f"{facts.distinct[column]:,}", alone]


def _format_findings(found: Inspection) -> str:
    """Return the findings as text, each with its meaning and the way out."""
    if not found.findings:
        return "Nothing found that looks wrong."
    lines = []
    for finding in found.findings:
        head = f"{finding.severity.upper()}: {KINDS[finding.kind].title} ({finding.kind})"
        lines += [
            head,
            fill(f"{finding.what[0].upper()}{finding.what[1:]}.", _WIDTH, initial_indent="  ", subsequent_indent="  "),
        ]
        lines.append(fill(f"Meaning: {finding.meaning}", _WIDTH, initial_indent="  ", subsequent_indent="  "))
        lines.append(fill(f"Way out: {finding.way_out}", _WIDTH, initial_indent="  ", subsequent_indent="  ") + "\n")
    return "\n".join(lines).rstrip()
