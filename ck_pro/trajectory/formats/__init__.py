"""Formats of training data, one module each.

May import: `reading` and the core.
`exporting` uses the table of formats.
"""
