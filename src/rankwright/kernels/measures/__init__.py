"""Kernels for sorting, measure values and their jumps along lines."""
