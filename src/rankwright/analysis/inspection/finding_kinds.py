"""Findings of an inspection: what may be wrong with data, its meaning, and the way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

SEVERITIES = ("problem", "warning", "note")  # results would be wrong; probably not what you want; good to know


class FindingKind(NamedTuple):
    """A kind of finding: its severity, its title, what it means and what to do about it."""

    severity: str
    title: str
    meaning: str
    way_out: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of an inspection.

    Parameters
    ----------
    kind : str
        A key of ``KINDS``, such as "label-leak".
    what : str
        A sentence with what was found, in numbers.
    where : tuple of str
        The features or the query ids that it was found in; empty where it is the whole data set.
    meaning : str
        What it means for training and evaluation.
    way_out : str
        What to do about it.
    severity : {"problem", "warning", "note"}
        Whether results would be wrong, are probably not what you want, or it is good to know.
    """

    kind: str
    what: str
    where: tuple[str, ...]
    meaning: str
    way_out: str
    severity: str

    def __str__(self) -> str:
        return f"{KINDS[self.kind].title}: {self.what}"

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a dictionary that can be written as JSON."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "what": self.what,
            "where": list(self.where),
            "meaning": self.meaning,
            "way_out": self.way_out,
        }


def make_finding(kind: str, what: str, where: Sequence[object] = ()) -> Finding:
    """Return a finding of a kind, with the kind's severity, meaning and way out."""
    known = KINDS[kind]
    return Finding(kind, what, tuple(map(str, where)), known.meaning, known.way_out, known.severity)


def list_names(names: Sequence[object], most: int = 5) -> str:
    """Return names as text, such as "a, b and 3 more".

    >>> list_names(["a", "b", "c"]), list_names(range(1, 9), 3)
    ('a, b, c', '1, 2, 3 and 5 more')
    """
    shown = ", ".join(str(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


KINDS = {
    "label-leak": FindingKind(
        "problem",
        "A feature gives the label away",
        "One feature alone ranks nearly perfectly. It was probably made from the labels, or after them. A model will "
        "rely on it and fail where it is not known.",
        "Leave the feature out, unless it is known before a document is judged.",
    ),
    "label-name": FindingKind(
        "warning",
        "A feature has the name of a label",
        "A column of grades that is read as a feature gives the label away.",
        "Name the column of grades by --label, and leave other columns of grades out by --ignore.",
    ),
    "row-order": FindingKind(
        "warning",
        "The order of the rows gives the label away",
        "The place of a document in its query goes with its grade, more than chance explains. Tools that leave tied "
        "documents in their order get figures that are too high. So do models that see row numbers or ids.",
        "Compare tools on shuffled rows, and keep ids out of the features. Rankwright's default measures never use the "
        "order of the rows. If rows are sorted by a feature on purpose, nothing is wrong.",
    ),
    "query-order": FindingKind(
        "note",
        "The order of the queries goes with their grades",
        "Queries that come early have other grades than queries that come late. A split at one place in the file gives "
        "parts that are not alike.",
        "Split at random: rw.split_folds and rw.QueryKFold(shuffle=True) do.",
    ),
    "id-feature": FindingKind(
        "warning",
        "A feature looks like an id",
        "Numbers that only name or count queries, documents or rows carry no meaning. A model can learn them by heart.",
        "Leave the feature out (--ignore), or give it its role: --qid or --docid.",
    ),
    "negative-grades": FindingKind(
        "problem",
        "Grades below 0",
        "No measure is defined for them, so evaluation refuses them.",
        "Set them to 0 if they mean spam or not relevant; leave the documents out if they mean not judged.",
    ),
    "grades-like-scores": FindingKind(
        "warning",
        "Labels look like scores",
        "Grades have many values that are not whole. NDCG takes 2^grade as gain, so figures depend on the unit of "
        "the scores, and documents below 1 are not relevant to MAP, MRR and precision.",
        "Turn scores into a few grades, or choose a measure with linear gain: ndcg@10(gain=linear).",
    ),
    "high-grades": FindingKind(
        "warning",
        "Grades are high",
        "The gain of NDCG and ERR is 2^grade - 1: each grade counts twice the one below. The documents of the highest "
        "grades decide everything.",
        "Use fewer grades, or a linear gain: ndcg@10(gain=linear).",
    ),
    "grade-gaps": FindingKind(
        "note",
        "Grades have gaps",
        "Whole grades between the lowest and the highest never occur. The gain 2^grade - 1 counts the gaps.",
        "Number the grades 0, 1, 2, ... unless the gaps are meant.",
    ),
    "few-queries": FindingKind(
        "warning",
        "There are very few queries",
        "Measures are means over queries. With so few, differences between rankers are chance.",
        "Judge more queries. If there are more, check that the query ids are read from the right column (--qid).",
    ),
    "no-relevant-document": FindingKind(
        "note",
        "Queries without a relevant document",
        "Every ranking of them has the same value: 0, or none where a measure leaves such queries out. They lower "
        "means and teach nothing.",
        "Leave them out, or use empty=skip: ndcg@10(empty=skip). Compare only figures that treat them alike.",
    ),
    "equal-grades": FindingKind(
        "note",
        "Queries whose documents have one grade",
        "Every ranking of them is as good as any other: they teach nothing and raise means.",
        "Nothing must be done. To learn more from them, judge documents of other grades.",
    ),
    "single-document": FindingKind(
        "note",
        "Queries with one document",
        "There is nothing to rank. If most queries are so, the query ids may be wrong.",
        "Check that the query ids are read from the right column (--qid).",
    ),
    "tied-top-grades": FindingKind(
        "note",
        "Ties at the top",
        "More than ten documents of a query share its highest grade. Measures of the first ten ranks cannot tell good "
        "rankings of it apart.",
        "Use a larger cut-off, or finer grades.",
    ),
    "constant-feature": FindingKind(
        "note",
        "Features that never vary",
        "A feature with one value for all documents teaches nothing.",
        "Nothing must be done. If it should vary, check how it is made.",
    ),
    "empty-feature": FindingKind(
        "warning",
        "Features without any value",
        "All values are missing.",
        "Check how the feature is made and read, or leave it out.",
    ),
    "missing-values": FindingKind(
        "note",
        "Missing values",
        "Only trees, RankBoost and blends of them take missing values; other rankers refuse them.",
        "Use a ranker of trees, or fill the values in.",
    ),
    "missing-as-number": FindingKind(
        "note",
        "A number that may stand for a missing value",
        "A value such as -1 or 9999 lies apart from all others. Linear models and networks take it for a quantity.",
        "Make it NaN (missing) for rankers of trees, or a value that means as much as not known.",
    ),
    "query-feature": FindingKind(
        "note",
        "Features that are constant within every query",
        "Such a feature alone cannot order the documents of a query, so linear rankers cannot use it. Trees and "
        "networks can, together with others.",
        "Leave it out for linear rankers.",
    ),
    "outliers": FindingKind(
        "warning",
        "Huge outliers",
        "A few values are more than 10,000 times as far from the median as 98% of the others. They decide the standard "
        "deviation, so scaled features are nearly constant.",
        "Correct or cap them, take logarithms, or use a ranker of trees, which sees the order of values only.",
    ),
    "duplicated-columns": FindingKind(
        "note",
        "Features that are copies",
        "Features are equal in every row. Copies add nothing, share the weights of linear models and split the "
        "importance of trees.",
        "Keep one of each.",
    ),
    "duplicated-rows": FindingKind(
        "note",
        "Documents that no feature tells apart",
        "Documents of a query have equal features, so every model gives them equal scores. Rows may have been written "
        "twice.",
        "Remove rows that were written twice. Otherwise nothing must be done.",
    ),
    "contradictory-rows": FindingKind(
        "note",
        "Equal documents with different grades",
        "Documents of a query have equal features but different grades. No model can rank them right.",
        "If they are copies of one document, keep one judgment. Otherwise add features that tell them apart.",
    ),
    "duplicated-docids": FindingKind(
        "warning",
        "A document occurs twice in a query",
        "The same document id occurs more than once in a query, so a document counts more than once.",
        "Keep one row of each document, or check the column of document ids (--docid).",
    ),
    "shared-queries": FindingKind(
        "problem",
        "Queries are in both sets",
        "Queries of one set, with all their documents, are in the other. Figures on them do not show how a model ranks "
        "new queries.",
        "Remove them from one of the sets.",
    ),
    "split-queries": FindingKind(
        "warning",
        "Query ids in both sets have other documents",
        "A split may have cut queries apart, or different queries have the same id.",
        "Split by query: rw.split_folds, rw.QueryKFold. Give different queries different ids.",
    ),
    "shared-rows": FindingKind(
        "warning",
        "Documents are in both sets",
        "Rows of one set have exactly the features of rows of the other, in queries of other ids, and more often than "
        "between queries of one set.",
        "Check how the sets were split. Remove the rows from one of them.",
    ),
    "other-features": FindingKind(
        "problem",
        "The sets have different features",
        "Their features differ in number, names or order. A model of one set cannot rank the other, or would mix the "
        "features up.",
        "Write both sets with the same features. Tables are read by name: features=model.features.",
    ),
    "lost-feature": FindingKind(
        "warning",
        "A feature varies in one set only",
        "A feature has one value, or none, in one set and several in the other. A model that relies on it will fail.",
        "Check how the feature is made for both sets, or leave it out.",
    ),
    "feature-shift": FindingKind(
        "warning",
        "A feature has another distribution in the other set",
        "Values differ more than chance explains: another unit, another scale, another time. A model sees documents "
        "unlike those it learned from.",
        "Make the feature the same way for both sets, or leave it out.",
    ),
    "other-grades": FindingKind(
        "warning",
        "The sets have different grades",
        "Grades that are frequent in one set are absent from the other, or the shares of grades differ more than "
        "chance explains.",
        "Judge both sets on one scale.",
    ),
    "new-categories": FindingKind(
        "note",
        "Categories in one set only",
        "Values of a categorical feature occur in the other set only. A model treats them as missing.",
        "Nothing must be done if they are few. Otherwise use training data that has them.",
    ),
}
