"""Reports of an experiment: one page, tables and text."""

from rankwright.report.page import list_report_files, write_report
from rankwright.report.text_tables import format_comparisons, format_results, make_results_json

__all__ = ["format_comparisons", "format_results", "list_report_files", "make_results_json", "write_report"]
