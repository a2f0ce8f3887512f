"""Optimisers: how a ranker is trained. They know no paper."""
