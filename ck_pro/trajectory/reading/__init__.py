"""Reads output rows and journals, one row at a time, within bounded memory.

May import: the core without `testing`.
`formats`, `exporting` and the commands use it.
"""
