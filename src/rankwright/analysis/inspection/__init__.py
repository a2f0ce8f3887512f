"""Inspection: a look at a data set before training."""

from rankwright.analysis.inspection.data_inspection import inspect as inspect
from rankwright.analysis.inspection.data_inspection import inspect_quickly as inspect_quickly
from rankwright.analysis.inspection.data_inspection import warn_of_findings as warn_of_findings
from rankwright.analysis.inspection.finding_kinds import KINDS as KINDS
from rankwright.analysis.inspection.finding_kinds import Finding as Finding
from rankwright.analysis.inspection.inspection_result import Inspection as Inspection
