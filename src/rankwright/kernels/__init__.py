"""Numba kernels: arrays in, arrays out, serial over a range of queries or rows; they import nothing of rankwright.

Every kernel releases the GIL and is cached on disk, so that a second process compiles nothing. Kernels take
arrays and scalars only: function arguments, closures and classes would be compiled again in every process.
"""
