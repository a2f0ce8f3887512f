"""Reports: what an experiment found, as one page, as tables and as text."""

from rankwright.report.report_files import report_files, write_report
from rankwright.report.texts import comparisons_text, results_json, results_text

__all__ = ["comparisons_text", "report_files", "results_json", "results_text", "write_report"]
