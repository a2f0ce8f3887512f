"""The results of an experiment on disk: one SQLite file, checked and repaired."""
