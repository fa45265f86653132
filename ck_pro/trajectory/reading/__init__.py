"""Read output rows and journals, one row at a time, in bounded memory.

May import: the core without `testing`.
Used by `formats`, `exporting` and the commands.
"""
