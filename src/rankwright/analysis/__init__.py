"""What can be said of a ranking: evaluate, compare, select, test, diagnose, explain."""
