"""The tables that a trial leaves for the report."""
