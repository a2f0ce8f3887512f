"""Estimates from click logs: how probable it is that each position is looked at."""
