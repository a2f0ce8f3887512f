"""Rankers that boost regression trees."""
