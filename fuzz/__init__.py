"""A fuzzer of everything that Rankwright reads: files are made and damaged at random, and read by two readers.

The one is the library's. The other, the reference, is slow and obvious, and written from the documentation. Both must
refuse a file, or read the same from it; and the library may refuse in no other way than with an ``InputError``, within
ten seconds and a few gigabytes of memory. ``python -m fuzz --help`` says how it is run.
"""
