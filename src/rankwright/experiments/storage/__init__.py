"""Keep the results of an experiment in one SQLite file, which is checked and repaired."""
