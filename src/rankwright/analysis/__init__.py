"""Analysis of rankings: evaluate, compare, select, test for significance, diagnose, explain."""
