"""The sections of the report, in order. To add one, write a file and a line here."""

from rankwright.report.sections.base import Content, ReportSection
from rankwright.report.sections.bounds import BOUNDS
from rankwright.report.sections.costs import COSTS
from rankwright.report.sections.curves import CURVES
from rankwright.report.sections.duels import DUELS
from rankwright.report.sections.grades import GRADES
from rankwright.report.sections.groups import GROUPS
from rankwright.report.sections.importance import IMPORTANCE
from rankwright.report.sections.learning import LEARNING
from rankwright.report.sections.polishing import POLISHING
from rankwright.report.sections.profiles import PROFILES
from rankwright.report.sections.published import PUBLISHED
from rankwright.report.sections.restarts import RESTARTS
from rankwright.report.sections.results import RESULTS
from rankwright.report.sections.selection import SELECTION
from rankwright.report.sections.significance import SIGNIFICANCE
from rankwright.report.sections.steps import STEPS
from rankwright.report.sections.tree_weights import TREE_WEIGHTS
from rankwright.report.sections.weights import WEIGHTS

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
