"""Rankers that maximise a smoothed measure or an expected measure."""
