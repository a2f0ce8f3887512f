"""Reports of an experiment or of an automatic search: one page, tables and text."""

from rankwright.report import plot as plot
from rankwright.report.leaderboard_page import write_leaderboard
from rankwright.report.leaderboard_text import format_leaderboard
from rankwright.report.page import list_report_files, write_report
from rankwright.report.text_tables import format_comparisons, format_results, make_results_json

__all__ = [
    "format_comparisons",
    "format_leaderboard",
    "format_results",
    "list_report_files",
    "make_results_json",
    "plot",
    "write_leaderboard",
    "write_report",
]
