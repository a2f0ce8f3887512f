"""Export of models to search engines, ONNX and other libraries, one file per target.

To add a target, write a subclass of ``Target`` in a file of its own and add its name to ``TARGETS``.
"""
