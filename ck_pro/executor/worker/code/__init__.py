"""The code that a model wrote, as the worker runs it: its source, names, output and functions.

May import: the standard library and each other.
`runtime` uses all modules; the parent uses the format of `printing` and the limits of `names`.
"""
