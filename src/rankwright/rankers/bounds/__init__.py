"""Rankers that minimise upper bounds on the loss of a measure."""
