"""Rankers that are feed-forward networks, trained by epochs."""
