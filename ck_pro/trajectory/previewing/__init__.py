"""Preview an export: rows as texts with the trained part marked, and their token counts.

May import: `reading`, `labels`, `formats`, `exporting` and the core.
Used by `ck_pro.trajectory.preview` and the viewer, through `preview_export`.
"""
