"""Kernels for training: bins, stumps, line searches, linear systems."""
