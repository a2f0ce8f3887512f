"""Rankers that maximise the measure itself by exact line searches."""
