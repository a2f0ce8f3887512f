"""Reports: what an experiment found, as one page, as tables and as text."""

from rankwright.report.texts import comparisons_text, results_json, results_text
from rankwright.report.writing import report_files, write_report

__all__ = ["comparisons_text", "report_files", "results_json", "results_text", "write_report"]
