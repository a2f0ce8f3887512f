"""Kernels that compute scores of documents."""
