"""Run an export: filters, pipeline, writers and report.

May import: `reading`, `formats` and the core.
Used by `ck_pro.trajectory.export`.
"""
