"""Objectives: what training minimises, as functions of the scores. They know no features and no model."""
