"""Kernels for losses of scores and their derivatives."""
