"""Recorded replies: written by `record:`, answered by `replay:`, from recordings or whole runs.

May import: `ck_pro.model.backends` and the rooms above `model`.
The back ends `record:` and `replay:` use it.
"""
