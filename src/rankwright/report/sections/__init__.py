"""The sections of the report, in order. To add one, write a file and a line here."""

from rankwright.report.sections.base import Content, ReportSection
from rankwright.report.sections.bounds_section import BOUNDS
from rankwright.report.sections.duels_section import DUELS
from rankwright.report.sections.features_section import IMPORTANCE, WEIGHTS
from rankwright.report.sections.groups_section import GRADES, GROUPS
from rankwright.report.sections.learning_section import LEARNING
from rankwright.report.sections.polishing_section import POLISHING
from rankwright.report.sections.profiles_section import PROFILES
from rankwright.report.sections.published_section import PUBLISHED
from rankwright.report.sections.restarts_section import RESTARTS
from rankwright.report.sections.results_section import CURVES, RESULTS
from rankwright.report.sections.significance_section import SIGNIFICANCE
from rankwright.report.sections.steps_section import STEPS
from rankwright.report.sections.tree_weights_section import TREE_WEIGHTS
from rankwright.report.sections.trials_section import COSTS, SELECTION

SECTIONS: tuple[ReportSection, ...] = (
    RESULTS,
    PUBLISHED,
    SIGNIFICANCE,
    CURVES,
    LEARNING,
    RESTARTS,
    TREE_WEIGHTS,
    POLISHING,
    BOUNDS,
    GRADES,
    GROUPS,
    DUELS,
    WEIGHTS,
    PROFILES,
    STEPS,
    IMPORTANCE,
    SELECTION,
    COSTS,
)

__all__ = ["SECTIONS", "Content", "ReportSection"]
