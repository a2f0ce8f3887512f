"""The sections of the report, in the order of a reader's questions. To add one, write a file and a line here."""

from rankwright.report.sections.base import Content, ReportSection
from rankwright.report.sections.bounds_section import BOUNDS
from rankwright.report.sections.costs_section import COSTS
from rankwright.report.sections.data_section import DATA
from rankwright.report.sections.duels_section import DUELS
from rankwright.report.sections.features_section import IMPORTANCE, WEIGHTS
from rankwright.report.sections.grades_section import GRADES
from rankwright.report.sections.learning_section import LEARNING
from rankwright.report.sections.permutation_section import PERMUTATION
from rankwright.report.sections.polishing_section import POLISHING
from rankwright.report.sections.profiles_section import PROFILES
from rankwright.report.sections.provenance_section import PROVENANCE
from rankwright.report.sections.published_section import PUBLISHED
from rankwright.report.sections.queries_section import QUERIES
from rankwright.report.sections.restarts_section import RESTARTS
from rankwright.report.sections.results_section import RESULTS
from rankwright.report.sections.selection_section import SELECTION
from rankwright.report.sections.significance_section import SIGNIFICANCE
from rankwright.report.sections.steps_section import STEPS
from rankwright.report.sections.tree_weights_section import TREE_WEIGHTS

SECTIONS: tuple[ReportSection, ...] = (
    RESULTS,
    PUBLISHED,
    SIGNIFICANCE,
    DUELS,
    QUERIES,
    GRADES,
    COSTS,
    LEARNING,
    PERMUTATION,
    SELECTION,
    DATA,
    PROVENANCE,
    # method internals, folded
    WEIGHTS,
    PROFILES,
    IMPORTANCE,
    STEPS,
    RESTARTS,
    TREE_WEIGHTS,
    POLISHING,
    BOUNDS,
)

__all__ = ["SECTIONS", "Content", "ReportSection"]
