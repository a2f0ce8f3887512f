"""Kernels that parse text and compare rows."""
