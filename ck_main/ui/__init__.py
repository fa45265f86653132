"""Display, summary, status file, metrics and log of a run.

May import: `runner` and the rooms listed before it.
Used by `cli`.
"""
