"""Recorded replies: write them with `record:`, replay them with `replay:`, also from whole runs.

May import: `ck_pro.model.backends` and the rooms above `model`.
The schemes `record:` and `replay:` use it; others use `normalise` and `RecordBackend`.
"""
