"""An export from its input to its files: filters, pipeline, writers and the report.

May import: `reading`, `formats` and the core.
`ck_pro.trajectory.export` uses it.
"""
